/* jute.c - readers and writers of ZooKeeper's primitive encodings; see jute.h. jute_take is the
 * only way to advance a reader, so no getter can read beyond the frame. */
#include "wire/jute.h"

#include <assert.h>
#include <string.h>

bool clave__jbytes_eq(struct jbytes a, struct jbytes b)
{
    return a.n == b.n && (a.n <= 0 || memcmp(a.p, b.p, (size_t)a.n) == 0);
}

static const uint8_t *jute_take(struct jreader *r, size_t n)
{
    if (r->bad || r->n < n) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    r->n -= n;
    return p;
}

uint8_t clave__jget_byte(struct jreader *r)
{
    const uint8_t *p = jute_take(r, 1);
    return p ? *p : 0;
}

int32_t clave__jget_int(struct jreader *r)
{
    const uint8_t *p = jute_take(r, 4);
    if (!p)
        return 0;
    return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

int64_t clave__jget_long(struct jreader *r)
{
    const uint8_t *p = jute_take(r, 8);
    uint64_t v = 0;
    if (!p)
        return 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return (int64_t)v;
}

struct jbytes clave__jget_bytes(struct jreader *r)
{
    int32_t n = clave__jget_int(r);
    if (r->bad || n == -1)
        return JBYTES_NULL;
    if (n < -1) {
        r->bad = true;
        return JBYTES_NULL;
    }
    const uint8_t *p = jute_take(r, (size_t)n);
    return p ? (struct jbytes){(const char *)p, n} : JBYTES_NULL;
}

int32_t clave__jget_count(struct jreader *r, size_t min_each)
{
    assert(min_each > 0);
    int32_t count = clave__jget_int(r);
    if (count < -1 || (count > 0 && (size_t)count > r->n / min_each))
        r->bad = true;
    return r->bad ? 0 : count;
}

struct jvec clave__jget_strings(struct jreader *r)
{
    struct jvec v = {.count = clave__jget_count(r, 4), .p = r->p};
    for (int32_t i = 0; i < v.count && !r->bad; i++)
        clave__jget_bytes(r);
    if (r->bad)
        return (struct jvec){0, NULL, 0};
    v.n = (size_t)(r->p - v.p);
    return v;
}

static uint8_t *jute_reserve(struct jwriter *w, size_t n)
{
    if (!w->err)
        w->err = clave__buf_reserve(w->b, n);
    if (w->err)
        return NULL;
    uint8_t *p = w->b->data + w->b->tail;
    w->b->tail += n;
    return p;
}

void clave__jput_byte(struct jwriter *w, uint8_t v)
{
    uint8_t *p = jute_reserve(w, 1);
    if (p)
        *p = v;
}

void clave__jput_int(struct jwriter *w, int32_t v)
{
    uint8_t *p = jute_reserve(w, 4);
    if (p)
        clave__jute_store(p, (uint32_t)v);
}

void clave__jput_long(struct jwriter *w, int64_t v)
{
    uint8_t *p = jute_reserve(w, 8);
    if (!p)
        return;
    clave__jute_store(p, (uint32_t)((uint64_t)v >> 32));
    clave__jute_store(p + 4, (uint32_t)(uint64_t)v);
}

void clave__jput_bytes(struct jwriter *w, struct jbytes v)
{
    clave__jput_int(w, v.n);
    if (v.n <= 0)
        return;
    uint8_t *p = jute_reserve(w, (size_t)v.n);
    if (p)
        memcpy(p, v.p, (size_t)v.n);
}

void clave__jput_vec(struct jwriter *w, struct jvec v)
{
    clave__jput_int(w, v.count);
    if (v.count <= 0 || !v.n)
        return;
    uint8_t *p = jute_reserve(w, v.n);
    if (p)
        memcpy(p, v.p, v.n);
}

void clave__jput_int_at(struct jwriter *w, size_t offset, int32_t v)
{
    if (w->err)
        return;
    assert(offset + 4 <= clave__buf_len(w->b));
    clave__jute_store(clave__buf_bytes(w->b) + offset, (uint32_t)v);
}
