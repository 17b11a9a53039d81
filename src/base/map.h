/* map.h - an intrusive hash map. The owner embeds a map_node, keeps the key in its
 * own struct and supplies the comparison. Growing may fail without harm: the chains
 * just get longer, so inserting never fails after _init. */
#ifndef CLAVE_BASE_MAP_H
#define CLAVE_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clave/err.h"
#include "clave/mem.h"

struct map_node {
    struct map_node *next;
    uint32_t hash;
};

struct map {
    const struct clave_mem *mem; /* borrowed */
    struct map_node **buckets;
    size_t nbuckets; /* a power of two */
    size_t count;
};

#define MAP_ENTRY(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

typedef bool map_eq(const struct map_node *node, const void *key);

clave_err clave__map_init(struct map *m, const struct clave_mem *mem);
void clave__map_fini(struct map *m); /* frees the buckets, never the nodes */

uint32_t clave__map_hash_bytes(const void *p, size_t n);
uint32_t clave__map_hash_u64(uint64_t v);

struct map_node *clave__map_find(const struct map *m, uint32_t hash, map_eq *eq, const void *key);
void clave__map_insert(struct map *m, struct map_node *node, uint32_t hash);
void clave__map_remove(struct map *m, struct map_node *node);

/* Iterates in bucket order: the next of NULL is the first node, the next of the last is NULL.
 * Ask for a node's successor before removing the node. */
struct map_node *clave__map_next(const struct map *m, const struct map_node *node);

#endif
