#include "lib/failmem.h"

#include <stdlib.h>
#include <string.h>

static bool is_due(struct failmem *f)
{
    f->asked++;
    bool due = f->first != 0 && f->asked >= f->first && f->asked - f->first < f->fails;
    f->failed |= due;
    return due;
}

static void *take(void *arg, size_t size)
{
    struct failmem *f = arg;
    void *p = is_due(f) ? NULL : malloc(size);
    f->live += p ? 1 : 0;
    if (p && f->fills)
        memset(p, FAILMEM_FILL, size);
    return p;
}

static void *change(void *arg, void *p, size_t size)
{
    struct failmem *f = arg;
    if (!p)
        return take(arg, size);
    return is_due(f) ? NULL : realloc(p, size);
}

static void give_back(void *arg, void *p)
{
    struct failmem *f = arg;
    f->live -= p ? 1 : 0;
    free(p);
}

void failmem_init(struct failmem *f)
{
    *f = (struct failmem){.mem = {take, change, give_back, f}};
}

void failmem_arm(struct failmem *f, size_t first, size_t fails)
{
    f->asked = 0;
    f->first = first;
    f->fails = fails;
    f->failed = false;
}

void failmem_disarm(struct failmem *f)
{
    f->first = 0;
}
