/* map.c - the hash map of map.h. nbuckets is always a power of two. While the map grows, a node is
 * in the previous buckets if its bucket there was not moved yet, else in the new ones: so each hash
 * has one chain, and each operation looks at one. A new bucket holds nothing, not even NULL, before
 * that: to clear millions of them at once would take milliseconds. */
#include "base/map.h"

#include <assert.h>

#include "base/check.h"
#include "base/memory.h"

/* Moving two buckets with each insert empties the previous ones before the map is full again. */
enum { FIRST_BUCKETS = 16, MOVED_AT_ONCE = 2 };

clave_err clave__map_init(struct map *m, const struct clave_mem *mem, uint64_t seed)
{
    *m = (struct map){.mem = mem, .key = clave__siphash_key(seed)};
    m->buckets = clave__mem_zalloc(mem, FIRST_BUCKETS * sizeof(struct map_node *));
    if (!m->buckets)
        return CLAVE_ENOMEM;
    m->nbuckets = FIRST_BUCKETS;
    return CLAVE_OK;
}

void clave__map_fini(struct map *m)
{
    clave__mem_free(m->mem, m->previous);
    clave__mem_free(m->mem, m->buckets);
    *m = (struct map){.mem = m->mem};
}

uint32_t clave__map_hash_bytes(const struct map *m, const void *p, size_t n)
{
    return (uint32_t)clave__siphash(m->key, p, n);
}

uint32_t clave__map_hash_u64(uint64_t v)
{
    v ^= v >> 33;
    v *= 0xff51afd7ed558ccdu;
    v ^= v >> 33;
    v *= 0xc4ceb9fe1a85ec53u;
    v ^= v >> 33;
    return (uint32_t)v;
}

/* The chain of a hash. */
static struct map_node **map_chain(const struct map *m, uint32_t hash)
{
    size_t before = hash & (m->nbuckets / 2 - 1);
    if (m->previous && before >= m->moved)
        return &m->previous[before];
    return &m->buckets[hash & (m->nbuckets - 1)];
}

/* Which chains there are: see the head of this file. */
static bool map_has_bucket(const struct map *m, size_t i)
{
    return !m->previous || (i & (m->nbuckets / 2 - 1)) < m->moved;
}

static size_t map_check_chain(const struct map *m, struct map_node *const *chain)
{
    size_t n = 0;
    for (const struct map_node *at = *chain; at; at = at->next, n++)
        CHECK(map_chain(m, at->hash) == chain);
    return n;
}

/* Every node is in the chain of its hash, and is counted. */
static void map_check(const struct map *m)
{
    bool is_sparse = m->nbuckets / 16 > m->count + 64; /* it was large: a walk would take long */
    if (is_sparse || !m->nbuckets || !clave__check_is_due(m->count))
        return;
    size_t n = 0, half = m->nbuckets / 2;
    CHECK((m->nbuckets & (m->nbuckets - 1)) == 0);
    CHECK(m->previous ? m->moved < half : m->moved == 0);
    for (size_t i = m->moved; m->previous && i < half; i++)
        n += map_check_chain(m, &m->previous[i]);
    for (size_t i = 0; i < m->nbuckets; i++)
        if (map_has_bucket(m, i))
            n += map_check_chain(m, &m->buckets[i]);
    CHECK(n == m->count);
}

struct map_node *clave__map_find(const struct map *m, uint32_t hash, map_eq *eq, const void *key)
{
    if (!m->nbuckets)
        return NULL;
    struct map_node *n = *map_chain(m, hash);
    while (n && !(n->hash == hash && eq(n, key)))
        n = n->next;
    return n;
}

/* ---- growing --------------------------------------------------------------------------------- */

static void map_move_bucket(struct map *m)
{
    struct map_node *n = m->previous[m->moved];
    m->buckets[m->moved] = m->buckets[m->moved + m->nbuckets / 2] = NULL;
    m->moved++;
    while (n) {
        struct map_node *next = n->next;
        struct map_node **chain = &m->buckets[n->hash & (m->nbuckets - 1)];
        n->next = *chain;
        *chain = n;
        n = next;
    }
}

static void map_move_some(struct map *m)
{
    for (int i = 0; i < MOVED_AT_ONCE && m->moved < m->nbuckets / 2; i++)
        map_move_bucket(m);
    if (m->moved < m->nbuckets / 2)
        return;
    clave__mem_free(m->mem, m->previous);
    m->previous = NULL;
    m->moved = 0;
}

static void map_begin_to_grow(struct map *m)
{
    size_t nbuckets = m->nbuckets * 2;
    struct map_node **buckets = clave__mem_alloc(m->mem, nbuckets * sizeof(struct map_node *));
    if (!buckets)
        return;
    m->previous = m->buckets;
    m->moved = 0;
    m->buckets = buckets;
    m->nbuckets = nbuckets;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

void clave__map_insert(struct map *m, struct map_node *node, uint32_t hash)
{
    map_check(m);
    if (m->previous)
        map_move_some(m);
    else if (m->count >= m->nbuckets)
        map_begin_to_grow(m);
    struct map_node **chain = map_chain(m, hash);
    node->hash = hash;
    node->next = *chain;
    *chain = node;
    m->count++;
    map_check(m);
}

void clave__map_remove(struct map *m, struct map_node *node)
{
    map_check(m);
    struct map_node **link = map_chain(m, node->hash);
    while (*link != node) {
        assert(*link);
        link = &(*link)->next;
    }
    *link = node->next;
    node->next = NULL;
    m->count--;
    map_check(m);
}

/* The first node at or after bucket i of the previous buckets, then of the new ones. */
static struct map_node *map_first_from(const struct map *m, size_t i)
{
    size_t before = m->previous ? m->nbuckets / 2 : 0;
    for (; i < before; i++)
        if (m->previous[i])
            return m->previous[i];
    for (i -= before; i < m->nbuckets; i++)
        if (map_has_bucket(m, i) && m->buckets[i])
            return m->buckets[i];
    return NULL;
}

struct map_node *clave__map_next(const struct map *m, const struct map_node *node)
{
    if (!node)
        return map_first_from(m, m->moved);
    if (node->next)
        return node->next;
    size_t before = node->hash & (m->nbuckets / 2 - 1);
    if (m->previous && before >= m->moved)
        return map_first_from(m, before + 1);
    return map_first_from(m, (m->previous ? m->nbuckets / 2 : 0) +
                                 (node->hash & (m->nbuckets - 1)) + 1);
}

/* ---- walking in pieces ----------------------------------------------------------------------- */

/* The hash with its bits reversed. In this order the nodes of one chain follow one another, however
 * many buckets there are: a bucket is the lowest bits of a hash. */
static uint32_t map_order(uint32_t hash)
{
    hash = (hash >> 1 & 0x55555555u) | (hash & 0x55555555u) << 1;
    hash = (hash >> 2 & 0x33333333u) | (hash & 0x33333333u) << 2;
    hash = (hash >> 4 & 0x0f0f0f0fu) | (hash & 0x0f0f0f0fu) << 4;
    hash = (hash >> 8 & 0x00ff00ffu) | (hash & 0x00ff00ffu) << 8;
    return hash >> 16 | hash << 16;
}

static bool map_is_after(const struct map_node *n, uint32_t order, uintptr_t last)
{
    uint32_t own = map_order(n->hash);
    return own > order || (own == order && (uintptr_t)n > last);
}

bool clave__map_walk(const struct map *m, struct map_walk *w, struct map_node **node)
{
    *node = NULL;
    if (w->order >> 32)
        return false;
    uint32_t order = (uint32_t)w->order, hash = map_order(order);
    for (struct map_node *n = *map_chain(m, hash); n; n = n->next)
        if (map_is_after(n, order, w->last) &&
            (!*node || !map_is_after(n, map_order((*node)->hash), (uintptr_t)*node)))
            *node = n;
    if (*node) {
        *w = (struct map_walk){map_order((*node)->hash), (uintptr_t)*node};
        return true;
    }
    bool moved = !m->previous || (hash & (m->nbuckets / 2 - 1)) < m->moved;
    uint64_t step = ((uint64_t)1 << 32) / (moved ? m->nbuckets : m->nbuckets / 2);
    *w = (struct map_walk){(w->order / step + 1) * step, 0};
    return true;
}
