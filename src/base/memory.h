/* memory.h - the only way to the allocator. NULL hooks mean libc.
 *
 * The layer src/base knows no protocol and nothing of clients or servers:
 *   memory      allocation through the owner's hooks   list         an intrusive list
 *   buf         a byte queue with a maximum            map          an intrusive hash map
 *   path        znode paths                            ordered_set  a set in the order of keys
 *   err_lookup  the table of errors                    err_class    which errors pass
 *   rand        seeded random numbers, and UUIDs       deadline     arithmetic with moments
 *   json_writer, base64, utf8                          time_format  durations and moments as text
 *   log_line    a line for the owner's log hook        http_reason  "Not Found"
 *   ip_range    addresses, ranges of them, clients     histogram    how often below bounds
 *   sized_options  growing option structs              version      of the library
 *   hash/       crc32, sha1, siphash                   prometheus   pages of metrics
 * Every object here borrows the hooks it was given and keeps no state outside itself. */
#ifndef CLAVE_BASE_MEMORY_H
#define CLAVE_BASE_MEMORY_H

#include <stddef.h>
#include <string.h>

#include "clave/mem.h"

/* The hooks an object should keep: a copy of *m, or libc's when m is NULL. */
struct clave_mem clave__mem_or_default(const struct clave_mem *m);

/* Not zeroed. A size of 0 is passed on as 1, here and in _realloc, so that NULL always means out of
 * memory. */
static inline void *clave__mem_alloc(const struct clave_mem *m, size_t size)
{
    return m->alloc(m->arg, size ? size : 1);
}

static inline void *clave__mem_realloc(const struct clave_mem *m, void *p, size_t size)
{
    return m->realloc(m->arg, p, size ? size : 1);
}

/* NULL is ignored. */
static inline void clave__mem_free(const struct clave_mem *m, void *p)
{
    if (p)
        m->free(m->arg, p);
}

void *clave__mem_zalloc(const struct clave_mem *m, size_t size); /* zeroed */
/* A copy of n bytes with a NUL after them. */
char *clave__mem_strndup(const struct clave_mem *m, const char *s, size_t n);

static inline char *clave__mem_strdup(const struct clave_mem *m, const char *s)
{
    return clave__mem_strndup(m, s, strlen(s));
}

#endif
