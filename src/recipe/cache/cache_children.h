/* cache_children.h - the children of one node of a cache: a hash table with open addressing, whose
 * slots are all that a child costs its parent. Its key keeps names that others choose from meeting
 * in one place. */
#ifndef CLAVE_RECIPE_CACHE_CACHE_CHILDREN_H
#define CLAVE_RECIPE_CACHE_CACHE_CHILDREN_H

#include "recipe/cache/cache_tree.h"

/* The name of a node, which is no text of its own: name_len bytes. */
const char *clave__cache_children_name(const struct cache_node *n);

/* The place of a child, or where it would be; nslots is not 0. */
uint32_t clave__cache_children_place(const struct cache_tree *t, const struct cache_children *d,
                                     const char *name, size_t len);
/* Makes room for one more. ENOMEM. */
clave_err clave__cache_children_reserve(struct cache_tree *t, struct cache_children *d);
/* After _reserve. */
void clave__cache_children_insert(struct cache_tree *t, struct cache_children *d,
                                  struct cache_node *n);
void clave__cache_children_remove(const struct cache_tree *t, struct cache_children *d,
                                  const struct cache_node *n);
/* The first present node from this slot on; NULL: there is none. */
struct cache_node *clave__cache_children_from(const struct cache_children *d, uint32_t at);

#endif
