/* memory.h - the only door to the allocator. NULL hooks mean libc. */
#ifndef CLAVE_BASE_MEMORY_H
#define CLAVE_BASE_MEMORY_H

#include <stddef.h>

#include "clave/mem.h"

/* The hooks to keep: *m copied, or libc's when m is NULL. */
struct clave_mem clave__mem_or_default(const struct clave_mem *m);

void *clave__mem_alloc(const struct clave_mem *m, size_t size);  /* not zeroed */
void *clave__mem_zalloc(const struct clave_mem *m, size_t size); /* zeroed */
void *clave__mem_realloc(const struct clave_mem *m, void *p, size_t size);
void clave__mem_free(const struct clave_mem *m, void *p); /* NULL is ignored */
char *clave__mem_strdup(const struct clave_mem *m, const char *s);
/* n bytes and a NUL behind them. */
char *clave__mem_strndup(const struct clave_mem *m, const char *s, size_t n);

#endif
