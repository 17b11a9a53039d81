/* exchange_memory.c - see exchange_memory.h. Called by every handler. */
#include "web/http/exchange_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "web/http/exchange.h"

enum { CHUNK = 496 };

struct exchange_chunk {
    struct exchange_chunk *next;
    size_t used, size;
    _Alignas(max_align_t) char bytes[];
};

void *clave__web_alloc(struct web_exchange *x, size_t n)
{
    struct exchange_chunk *k = x->chunks;
    n = (n + _Alignof(max_align_t) - 1) / _Alignof(max_align_t) * _Alignof(max_align_t);
    if (!k || k->size - k->used < n) {
        size_t size = n > CHUNK ? n : CHUNK;
        k = clave__mem_alloc(&x->web->mem, sizeof *k + size);
        if (!k)
            return NULL;
        *k = (struct exchange_chunk){.next = x->chunks, .size = size};
        x->chunks = k;
    }
    void *p = k->bytes + k->used;
    k->used += n;
    return p;
}

char *clave__web_strndup(struct web_exchange *x, const char *s, size_t n)
{
    char *copy = clave__web_alloc(x, n + 1);
    if (copy) {
        memcpy(copy, s, n);
        copy[n] = '\0';
    }
    return copy;
}

char *clave__web_sprintf(struct web_exchange *x, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *text = n < 0 ? NULL : clave__web_alloc(x, (size_t)n + 1);
    if (text) {
        va_start(ap, fmt);
        vsnprintf(text, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    return text;
}

char *clave__web_child(struct web_exchange *x, const char *dir, const char *name)
{
    char *path = clave__web_alloc(x, strlen(dir) + strlen(name) + 2);
    if (path)
        clave__path_put_child(path, dir, name);
    return path;
}

void clave__exchange_memory_free(struct web_exchange *x)
{
    for (struct exchange_chunk *next; x->chunks; x->chunks = next) {
        next = x->chunks->next;
        clave__mem_free(&x->web->mem, x->chunks);
    }
}
