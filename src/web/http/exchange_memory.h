/* exchange_memory.h - memory that lasts as long as an exchange; NULL: out of memory. */
#ifndef CLAVE_WEB_HTTP_EXCHANGE_MEMORY_H
#define CLAVE_WEB_HTTP_EXCHANGE_MEMORY_H

#include <stddef.h>

struct web_exchange;

void *clave__web_alloc(struct web_exchange *x, size_t n);
char *clave__web_strndup(struct web_exchange *x, const char *s, size_t n);
__attribute__((format(printf, 2, 3))) char *clave__web_sprintf(struct web_exchange *x,
                                                               const char *fmt, ...);

/* The path of a znode's child. */
char *clave__web_child(struct web_exchange *x, const char *dir, const char *name);

/* Of exchange.c: all of it. */
void clave__exchange_memory_free(struct web_exchange *x);

#endif
