/* memory.c - allocation through the owner's hooks; every layer allocates with these and nothing
 * else. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

static void *memory_libc_alloc(void *arg, size_t size)
{
    (void)arg;
    return malloc(size);
}

static void *memory_libc_realloc(void *arg, void *p, size_t size)
{
    (void)arg;
    return realloc(p, size);
}

static void memory_libc_free(void *arg, void *p)
{
    (void)arg;
    free(p);
}

struct clave_mem clave__mem_or_default(const struct clave_mem *m)
{
    static const struct clave_mem libc_hooks = {memory_libc_alloc, memory_libc_realloc,
                                                memory_libc_free, NULL};
    return m ? *m : libc_hooks;
}

void *clave__mem_zalloc(const struct clave_mem *m, size_t size)
{
    void *p = clave__mem_alloc(m, size);
    if (p)
        memset(p, 0, size);
    return p;
}

char *clave__mem_strndup(const struct clave_mem *m, const char *s, size_t n)
{
    char *copy = clave__mem_alloc(m, n + 1);
    if (!copy)
        return NULL;
    if (n)
        memcpy(copy, s, n);
    copy[n] = '\0';
    return copy;
}
