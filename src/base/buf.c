/* buf.c - the byte queue of buf.h. */
#include "base/buf.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_CAP = 256 };

void clave__buf_fini(struct buf *b)
{
    clave__mem_free(b->mem, b->data);
    *b = (struct buf){.mem = b->mem, .max = b->max};
}

static void buf_close_gap(struct buf *b)
{
    if (!b->head)
        return;
    memmove(b->data, b->data + b->head, b->tail - b->head);
    b->tail -= b->head;
    b->head = 0;
}

clave_err clave__buf_grow(struct buf *b, size_t n)
{
    size_t len = b->tail - b->head;
    assert(len <= b->max);
    if (n > b->max - len)
        return CLAVE_ETOOBIG;
    /* Moving pays only if it copies no more bytes than it frees. */
    if (n <= b->cap - len && b->head >= len) {
        buf_close_gap(b);
        return CLAVE_OK;
    }
    size_t first = b->max < FIRST_CAP ? b->max : FIRST_CAP;
    size_t cap = b->cap ? b->cap : first;
    while (cap < len + n)
        cap = cap > b->max / 2 ? b->max : cap * 2;
    uint8_t *grown = clave__mem_alloc(b->mem, cap);
    if (!grown)
        return CLAVE_ENOMEM;
    if (len)
        memcpy(grown, b->data + b->head, len);
    clave__mem_free(b->mem, b->data);
    b->data = grown;
    b->head = 0;
    b->tail = len;
    b->cap = cap;
    return CLAVE_OK;
}

clave_err clave__buf_append(struct buf *b, const void *p, size_t n)
{
    clave_err err = clave__buf_reserve(b, n);
    if (err)
        return err;
    if (n)
        memcpy(b->data + b->tail, p, n);
    b->tail += n;
    return CLAVE_OK;
}

void clave__buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->tail - b->head);
    b->head += n;
    if (b->head == b->tail)
        b->head = b->tail = 0;
}

void clave__buf_trim(struct buf *b, size_t keep)
{
    if (b->head == b->tail && b->cap > keep)
        clave__buf_fini(b);
}

clave_err clave__buf_set_text(struct buf *b, const char *text)
{
    assert((uintptr_t)text - (uintptr_t)b->data >= b->cap); /* not one of its own */
    clave__buf_clear(b);
    return clave__buf_append(b, text, strlen(text) + 1);
}
