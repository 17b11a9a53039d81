/* cache_stat.c - the encoding of a Stat in the cache; see cache_stat.h. Numbers of variable length:
 * what a node is made with is given once, and the rest as the distance from it, which is 0 for most
 * nodes. Called by cache_tree.c. */
#include "recipe/cache/cache_stat.h"

/* Seven bits a byte, the lowest first; the top bit says that another byte follows. */
static uint8_t *cache_stat_put_number(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static const uint8_t *cache_stat_get_number(const uint8_t *p, uint64_t *v)
{
    unsigned shift = 0;
    *v = 0;
    do {
        *v |= (uint64_t)(*p & 0x7f) << shift;
        shift += 7;
    } while (*p++ & 0x80);
    return p;
}

/* Signed ones: the sign in the lowest bit, so that small distances are short either way. */
static uint8_t *cache_stat_put_signed(uint8_t *p, int64_t v)
{
    return cache_stat_put_number(p, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

static const uint8_t *cache_stat_get_signed(const uint8_t *p, int64_t *v)
{
    uint64_t u;
    p = cache_stat_get_number(p, &u);
    *v = (int64_t)((u >> 1) ^ (u & 1 ? UINT64_MAX : 0));
    return p;
}

static uint8_t *cache_stat_put_int(uint8_t *p, int32_t v)
{
    return cache_stat_put_signed(p, v);
}

static const uint8_t *cache_stat_get_int(const uint8_t *p, int32_t *v)
{
    int64_t wide;
    p = cache_stat_get_signed(p, &wide);
    *v = (int32_t)wide;
    return p;
}

static int64_t cache_stat_distance(int64_t to, int64_t from)
{
    return (int64_t)((uint64_t)to - (uint64_t)from);
}

static int64_t cache_stat_moved(int64_t from, int64_t by)
{
    return (int64_t)((uint64_t)from + (uint64_t)by);
}

size_t clave__cache_stat_put(uint8_t out[CACHE_STAT_MAX], const clave_stat *s)
{
    uint8_t *p = out;
    p = cache_stat_put_signed(p, s->czxid);
    p = cache_stat_put_signed(p, cache_stat_distance(s->mzxid, s->czxid));
    p = cache_stat_put_signed(p, cache_stat_distance(s->pzxid, s->czxid));
    p = cache_stat_put_signed(p, s->ctime);
    p = cache_stat_put_signed(p, cache_stat_distance(s->mtime, s->ctime));
    p = cache_stat_put_number(p, (uint64_t)s->ephemeral_owner);
    p = cache_stat_put_int(p, s->version);
    p = cache_stat_put_int(p, s->cversion);
    p = cache_stat_put_int(p, s->aversion);
    p = cache_stat_put_int(p, s->data_length);
    p = cache_stat_put_int(p, s->num_children);
    return (size_t)(p - out);
}

clave_stat clave__cache_stat_get(const uint8_t *p)
{
    clave_stat s;
    int64_t by;
    uint64_t owner;
    p = cache_stat_get_signed(p, &s.czxid);
    p = cache_stat_get_signed(p, &by);
    s.mzxid = cache_stat_moved(s.czxid, by);
    p = cache_stat_get_signed(p, &by);
    s.pzxid = cache_stat_moved(s.czxid, by);
    p = cache_stat_get_signed(p, &s.ctime);
    p = cache_stat_get_signed(p, &by);
    s.mtime = cache_stat_moved(s.ctime, by);
    p = cache_stat_get_number(p, &owner);
    s.ephemeral_owner = (int64_t)owner;
    p = cache_stat_get_int(p, &s.version);
    p = cache_stat_get_int(p, &s.cversion);
    p = cache_stat_get_int(p, &s.aversion);
    p = cache_stat_get_int(p, &s.data_length);
    cache_stat_get_int(p, &s.num_children);
    return s;
}
