/* tree.h - the znodes by path, the owners of ephemeral nodes, and the digest over all nodes.
 *
 * Only _new_node and _copy_data allocate; linking, unlinking and swapping cannot fail, so a
 * transaction can be undone. */
#ifndef CLAVE_SERVER_TREE_TREE_H
#define CLAVE_SERVER_TREE_TREE_H

#include "base/hash/crc32.h"
#include "server/access/acl.h"
#include "server/tree/node.h"

/* A session with ephemeral nodes, which go with it. The session itself need not be known (yet). */
struct owner {
    struct map_node in_tree;
    int64_t id;
    size_t refs; /* its nodes, linked in the tree or not */
    struct list nodes;
};

struct snapshot_save;

struct tree {
    const struct clave_mem *mem;
    struct node *root;
    struct map nodes;
    struct map owners;
    struct list swept;   /* containers and nodes with a TTL */
    struct list cursors; /* those in the nodes of owners */
    struct acls acls;
    int64_t acl_zxid; /* of the newest setACL, which leaves none in its node */
    uint64_t digest;
    struct crc32 crc; /* for the digest */
    size_t ephemerals;
    size_t data_bytes; /* of paths and data */
    bool saved;        /* see struct node */
    /* Runs before a stored field of a linked node changes, and before the node is unlinked; NULL:
     * nobody has to know. */
    void (*before_change)(struct tree *t, struct node *n);
    struct snapshot_save *observer;
};

/* A tree with /zookeeper, /zookeeper/config and /zookeeper/quota, as in Apache. `seed` keys the
 * hash of the paths. ENOMEM. */
clave_err clave__tree_init(struct tree *t, const struct clave_mem *mem, uint64_t seed);
/* A tree with nothing but a bare root, for loading a snapshot. */
clave_err clave__tree_init_bare(struct tree *t, const struct clave_mem *mem, uint64_t seed);
void clave__tree_fini(struct tree *t);

/* "/" and "" are the root. NULL: there is none. */
struct node *clave__tree_find(const struct tree *t, struct jbytes path);
/* The node above this path; NULL: there is none, or no '/' in it. */
struct node *clave__tree_find_parent(const struct tree *t, struct jbytes path);

struct node_spec {
    struct jbytes path;
    struct jbytes data;
    struct node_stat stat; /* num_children is ignored */
    struct acl *acl;       /* the node takes its own reference */
};
/* Makes a node that is not linked in the tree yet. NULL: no memory. */
struct node *clave__tree_new_node(struct tree *t, const struct node_spec *spec);
/* Frees a node that is not linked in the tree. */
void clave__tree_free_node(struct tree *t, struct node *n);
void clave__tree_link(struct tree *t, struct node *parent, struct node *n);
/* The node must have no children. */
void clave__tree_unlink(struct tree *t, struct node *n);

/* Copies data for _swap_data. *out is NULL when there are no bytes. ENOMEM. */
clave_err clave__tree_copy_data(struct tree *t, struct jbytes data, uint8_t **out);
/* Swaps the node's data with `*data` of *len bytes. */
void clave__tree_swap_data(struct tree *t, struct node *n, uint8_t **data, int32_t *len);
/* Frees the data that _swap_data returned. */
void clave__tree_free_data(struct tree *t, struct node *n, uint8_t *data);
/* Call it before a Stat or an access list changes; the other functions do it themselves. */
static inline void clave__tree_before_change(struct tree *t, struct node *n)
{
    if (t->before_change)
        t->before_change(t, n);
}
/* Updates the digest after a Stat has changed. */
void clave__tree_changed(struct tree *t, struct node *n);

/* The owner record of a session; NULL: it owns nothing. */
struct owner *clave__tree_find_owner(const struct tree *t, int64_t id);
/* The next node in depth-first order, parents first, below `top`; NULL after the last. */
struct node *clave__tree_next(const struct node *n, const struct node *top);

#endif
