#include "allocator.h"

#include <stdbool.h>
#include <stdlib.h>

static bool is_refused(struct allocator *p)
{
    if (p->fail_in == 0 || --p->fail_in > 0)
        return false;
    p->refused++;
    p->refused_ever++;
    return true;
}

static void *take(void *arg, size_t size)
{
    struct allocator *p = arg;
    void *block = is_refused(p) ? NULL : malloc(size);
    if (!block)
        return NULL;
    p->blocks++;
    return block;
}

static void *change(void *arg, void *block, size_t size)
{
    struct allocator *p = arg;
    if (!block)
        return take(arg, size);
    return is_refused(p) ? NULL : realloc(block, size);
}

static void give_back(void *arg, void *block)
{
    struct allocator *p = arg;
    p->blocks -= block ? 1 : 0;
    free(block);
}

void allocator_init(struct allocator *p)
{
    *p = (struct allocator){.mem = {take, change, give_back, p}};
}
