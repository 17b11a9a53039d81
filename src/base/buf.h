/* buf.h - a byte queue that grows up to a maximum given to _init.
 *
 * Invariant: head <= tail <= cap <= max. The bytes in [head, tail) are the content.
 * Pointers into it are valid until the next call that may grow or consume. */
#ifndef CLAVE_BASE_BUF_H
#define CLAVE_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "clave/err.h"
#include "clave/mem.h"

struct buf {
    const struct clave_mem *mem; /* borrowed */
    uint8_t *data;
    size_t head;
    size_t tail;
    size_t cap;
    size_t max;
};

static inline void clave__buf_init(struct buf *b, const struct clave_mem *mem, size_t max)
{
    *b = (struct buf){.mem = mem, .max = max};
}

void clave__buf_fini(struct buf *b);

/* Where there is no room for n more bytes: see below. */
clave_err clave__buf_grow(struct buf *b, size_t n);

/* Makes room for n more bytes at data + tail. ETOOBIG: over the maximum; ENOMEM. */
static inline clave_err clave__buf_reserve(struct buf *b, size_t n)
{
    return n <= b->cap - b->tail ? CLAVE_OK : clave__buf_grow(b, n);
}

clave_err clave__buf_append(struct buf *b, const void *p, size_t n);
/* Drops n bytes from the front (n <= length). An empty buffer keeps its capacity. */
void clave__buf_consume(struct buf *b, size_t n);
static inline void clave__buf_clear(struct buf *b)
{
    b->head = b->tail = 0;
}

/* The content is this text, with its NUL; not one of the buffer's own. */
clave_err clave__buf_set_text(struct buf *b, const char *text);
/* Frees the memory of an empty buffer whose capacity is larger than `keep`. */
void clave__buf_trim(struct buf *b, size_t keep);

static inline size_t clave__buf_len(const struct buf *b)
{
    return b->tail - b->head;
}

static inline uint8_t *clave__buf_bytes(const struct buf *b)
{
    return b->data ? b->data + b->head : NULL;
}

/* What _set_text has set; "" when the buffer is empty. */
static inline const char *clave__buf_text(const struct buf *b)
{
    return clave__buf_len(b) > 0 ? (const char *)b->data + b->head : "";
}

#endif
