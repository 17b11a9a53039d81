/* jute.h - ZooKeeper's primitive encodings (big-endian), read and written with a
 * sticky error: after the first fault every call is a no-op that yields zeros, so
 * one check at the end is enough. Reading allocates nothing: strings, buffers
 * and vectors are slices of the frame. */
#ifndef CLAVE_WIRE_JUTE_H
#define CLAVE_WIRE_JUTE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "clave/err.h"

/* A string or a buffer: n bytes at p, not NUL-terminated. n = -1 is null. */
struct jbytes {
    const char *p;
    int32_t n;
};

#define JBYTES_NULL ((struct jbytes){NULL, -1})

static inline struct jbytes clave__jbytes_n(const void *p, size_t n)
{
    assert(n <= INT32_MAX);
    return (struct jbytes){p, (int32_t)n};
}

/* NULL gives null. */
static inline struct jbytes clave__jbytes(const char *s)
{
    return s ? clave__jbytes_n(s, strlen(s)) : JBYTES_NULL;
}

/* Writes four bytes. */
static inline void clave__jute_store(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

bool clave__jbytes_eq(struct jbytes a, struct jbytes b);

/* A vector that was walked once and found well-formed: `count` elements (-1: null)
 * in `n` bytes at p. Read it again with a jreader and the element's own reader. */
struct jvec {
    int32_t count;
    const uint8_t *p;
    size_t n;
};

struct jreader {
    const uint8_t *p;
    size_t n; /* bytes left */
    bool bad; /* sticky */
};

static inline struct jreader clave__jreader(const void *p, size_t n)
{
    return (struct jreader){p, n, false};
}

static inline struct jreader clave__jvec_reader(struct jvec v)
{
    return (struct jreader){v.p, v.n, false};
}

uint8_t clave__jget_byte(struct jreader *r);
/* Any byte other than zero is true. */
static inline bool clave__jget_bool(struct jreader *r)
{
    return clave__jget_byte(r) != 0;
}

int32_t clave__jget_int(struct jreader *r);
int64_t clave__jget_long(struct jreader *r);
/* Sets bad if the length is below -1 or beyond the frame. */
struct jbytes clave__jget_bytes(struct jreader *r);
/* The count of a vector. Sets bad and returns 0 when the count is below -1 or when the rest of
 * the frame cannot hold that many elements of at least `min_each` bytes. */
int32_t clave__jget_count(struct jreader *r, size_t min_each);
/* A vector of strings, each of them checked. */
struct jvec clave__jget_strings(struct jreader *r);

/* Appends to the content of a buf; the first error (ETOOBIG, ENOMEM) sticks. */
struct jwriter {
    struct buf *b;
    clave_err err;
    size_t most; /* how many bytes of content are wanted; only _is_full looks at it */
};

static inline struct jwriter clave__jwriter(struct buf *b)
{
    return (struct jwriter){b, CLAVE_OK, SIZE_MAX};
}

/* True if more was written than `most`, or after an error: then a long list need not be written to
 * its end. */
static inline bool clave__jwriter_is_full(const struct jwriter *w)
{
    return w->err != CLAVE_OK || clave__buf_len(w->b) > w->most;
}

void clave__jput_byte(struct jwriter *w, uint8_t v);

static inline void clave__jput_bool(struct jwriter *w, bool v)
{
    clave__jput_byte(w, v ? 1 : 0);
}

void clave__jput_int(struct jwriter *w, int32_t v);
void clave__jput_long(struct jwriter *w, int64_t v);
void clave__jput_bytes(struct jwriter *w, struct jbytes v);
/* NULL gives null. */
static inline void clave__jput_str(struct jwriter *w, const char *s)
{
    clave__jput_bytes(w, clave__jbytes(s));
}

void clave__jput_vec(struct jwriter *w, struct jvec v); /* as it was read */
/* Overwrites an int `offset` bytes after the head of the buffer's content. */
void clave__jput_int_at(struct jwriter *w, size_t offset, int32_t v);

#endif
