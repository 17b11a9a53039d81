/* map.c - the hash map of map.h. nbuckets is always a power of two. */
#include "base/map.h"

#include <assert.h>

#include "base/memory.h"

enum { FIRST_BUCKETS = 16 };

clave_err clave__map_init(struct map *m, const struct clave_mem *mem)
{
    *m = (struct map){.mem = mem};
    m->buckets = clave__mem_zalloc(mem, FIRST_BUCKETS * sizeof(struct map_node *));
    if (!m->buckets)
        return CLAVE_ENOMEM;
    m->nbuckets = FIRST_BUCKETS;
    return CLAVE_OK;
}

void clave__map_fini(struct map *m)
{
    clave__mem_free(m->mem, m->buckets);
    *m = (struct map){.mem = m->mem};
}

/* FNV-1a with a final mix, so that the low bits depend on every byte. */
uint32_t clave__map_hash_bytes(const void *p, size_t n)
{
    const uint8_t *b = p;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return clave__map_hash_u64(h);
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

struct map_node *clave__map_find(const struct map *m, uint32_t hash, map_eq *eq, const void *key)
{
    if (!m->nbuckets)
        return NULL;
    struct map_node *n = m->buckets[hash & (m->nbuckets - 1)];
    while (n && !(n->hash == hash && eq(n, key)))
        n = n->next;
    return n;
}

static void map_grow(struct map *m)
{
    size_t nbuckets = m->nbuckets * 2;
    struct map_node **buckets = clave__mem_zalloc(m->mem, nbuckets * sizeof(struct map_node *));
    if (!buckets)
        return;
    for (size_t i = 0; i < m->nbuckets; i++) {
        struct map_node *n = m->buckets[i];
        while (n) {
            struct map_node *next = n->next;
            struct map_node **slot = &buckets[n->hash & (nbuckets - 1)];
            n->next = *slot;
            *slot = n;
            n = next;
        }
    }
    clave__mem_free(m->mem, m->buckets);
    m->buckets = buckets;
    m->nbuckets = nbuckets;
}

void clave__map_insert(struct map *m, struct map_node *node, uint32_t hash)
{
    assert(m->nbuckets);
    if (m->count >= m->nbuckets)
        map_grow(m);
    struct map_node **slot = &m->buckets[hash & (m->nbuckets - 1)];
    node->hash = hash;
    node->next = *slot;
    *slot = node;
    m->count++;
}

void clave__map_remove(struct map *m, struct map_node *node)
{
    struct map_node **slot = &m->buckets[node->hash & (m->nbuckets - 1)];
    while (*slot != node) {
        assert(*slot);
        slot = &(*slot)->next;
    }
    *slot = node->next;
    node->next = NULL;
    m->count--;
}

struct map_node *clave__map_next(const struct map *m, const struct map_node *node)
{
    if (node && node->next)
        return node->next;
    size_t i = node ? (node->hash & (m->nbuckets - 1)) + 1 : 0;
    for (; i < m->nbuckets; i++)
        if (m->buckets[i])
            return m->buckets[i];
    return NULL;
}
