/* map.h - an intrusive hash map. The owner embeds a map_node, keeps the key in its own struct and
 * supplies the comparison. Growing may fail without harm: the chains just get longer, so inserting
 * never fails after _init. It grows a few buckets with each insert, so that no insert takes long.
 *
 * Bytes that others choose (paths, names, addresses) are hashed with the map's own key: give each
 * map one that they cannot know. */
#ifndef CLAVE_BASE_MAP_H
#define CLAVE_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash/siphash.h"
#include "clave/err.h"
#include "clave/mem.h"

struct map_node {
    struct map_node *next;
    uint32_t hash;
    uint32_t user; /* free for the struct around it: it would be padding */
};

struct map {
    const struct clave_mem *mem; /* borrowed */
    struct map_node **buckets;
    size_t nbuckets; /* a power of two */
    /* While it grows: the previous buckets, half as many, of which those below `moved` are empty.
     * NULL: it is not growing. */
    struct map_node **previous;
    size_t moved;
    size_t count;
    struct siphash_key key;
};

#define MAP_ENTRY(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

typedef bool map_eq(const struct map_node *node, const void *key);

/* `seed` makes the key for _hash_bytes. ENOMEM. */
clave_err clave__map_init(struct map *m, const struct clave_mem *mem, uint64_t seed);
void clave__map_fini(struct map *m); /* frees the buckets, never the nodes */

/* Differs from map to map. */
uint32_t clave__map_hash_bytes(const struct map *m, const void *p, size_t n);
/* For numbers that others cannot choose: the same in every map. */
uint32_t clave__map_hash_u64(uint64_t v);

/* Nodes of one hash are in one chain: those after the one found are reached by `next`. */
struct map_node *clave__map_find(const struct map *m, uint32_t hash, map_eq *eq, const void *key);
void clave__map_insert(struct map *m, struct map_node *node, uint32_t hash);
void clave__map_remove(struct map *m, struct map_node *node);

/* Iterates in bucket order: the next of NULL is the first node, the next of the last is NULL.
 * Ask for a node's successor before removing the node. Inserting ends an iteration. */
struct map_node *clave__map_next(const struct map *m, const struct map_node *node);

/* A walk during which nodes may be inserted and removed, and the map may grow: each node that is
 * there all the time is visited once. Starts as {0}. */
struct map_walk {
    uint64_t order; /* of the hash to go on from; above that of every hash: the walk has ended */
    uintptr_t last; /* the address of the last node visited with that hash */
};
/* Looks at one chain. false: the walk has ended. *node is NULL if there is no (further) node in
 * this one. */
bool clave__map_walk(const struct map *m, struct map_walk *w, struct map_node **node);

#endif
