/* ordered_set.h - an intrusive set in the order of its keys. The owner embeds an ordered_node,
 * keeps the key in its own struct and supplies the comparison. Every call takes time in the
 * logarithm of the number of nodes, whatever order they come in, and needs no memory; so inserting
 * never fails.
 *
 * A node carries marks, bits of the owner's choice, by which the first, the last and the next of
 * some kind are found as fast. Keys are unique.
 *
 * A treap: a search tree by key that is a heap by random ranks. */
#ifndef CLAVE_BASE_ORDERED_SET_H
#define CLAVE_BASE_ORDERED_SET_H

#include <stddef.h>
#include <stdint.h>

struct ordered_node {
    struct ordered_node *left, *right;
    uint32_t rank;
    uint32_t marks; /* of this node; changed by _mark only */
    uint32_t below; /* of this node and of all below it */
};

/* Below 0: the key comes before that of the node. */
typedef int ordered_compare(const void *key, const struct ordered_node *node);

struct ordered {
    struct ordered_node *root;
    size_t count;
    ordered_compare *compare;
    uint64_t seed; /* of the ranks */
};

/* The struct of type `type` whose member `member` is at `ptr`. */
#define ORDERED_ENTRY(ptr, type, member) ((type *)((uintptr_t)(ptr)-offsetof(type, member)))

enum { ORDERED_ANY = 0 }; /* as `marks`: whatever the node's are */

void clave__ordered_init(struct ordered *o, ordered_compare *compare, uint64_t seed);
void clave__ordered_insert(struct ordered *o, struct ordered_node *node, const void *key,
                           uint32_t marks);
/* The node with this key must be there. */
void clave__ordered_remove(struct ordered *o, const void *key);
void clave__ordered_mark(struct ordered *o, struct ordered_node *node, const void *key,
                         uint32_t marks);

/* NULL: there is none. */
struct ordered_node *clave__ordered_find(const struct ordered *o, const void *key);
/* The first or last node with any of these marks. */
struct ordered_node *clave__ordered_first(const struct ordered *o, uint32_t marks);
struct ordered_node *clave__ordered_last(const struct ordered *o, uint32_t marks);
/* The first one after the key, which need not be there: so a walk goes on where it was, whatever
 * has come and gone meanwhile. */
struct ordered_node *clave__ordered_after(const struct ordered *o, const void *key, uint32_t marks);

#endif
