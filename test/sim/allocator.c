#include "allocator.h"

#include <stdbool.h>
#include <stdlib.h>

static bool is_refused(struct purse *p)
{
    if (p->fail_in == 0 || --p->fail_in > 0)
        return false;
    p->refused++;
    p->refused_ever++;
    return true;
}

static void *take(void *arg, size_t size)
{
    struct purse *p = arg;
    void *block = is_refused(p) ? NULL : malloc(size);
    if (!block)
        return NULL;
    p->blocks++;
    return block;
}

static void *change(void *arg, void *block, size_t size)
{
    struct purse *p = arg;
    if (!block)
        return take(arg, size);
    return is_refused(p) ? NULL : realloc(block, size);
}

static void give_back(void *arg, void *block)
{
    struct purse *p = arg;
    p->blocks -= block ? 1 : 0;
    free(block);
}

void purse_init(struct purse *p)
{
    *p = (struct purse){.mem = {take, change, give_back, p}};
}
