/* tree.h - the znodes by path, who owns which, and the digest over all of them.
 *
 * Whatever allocates is in _new_node; linking, unlinking and changing cannot fail, so a
 * transaction can be taken back. */
#ifndef CLAVE_SERVER_TREE_TREE_H
#define CLAVE_SERVER_TREE_TREE_H

#include "server/request/acl.h"
#include "server/tree/node.h"

/* Whose nodes go when the session does; also for a session that is not known (yet). */
struct owner {
    struct map_node in_tree;
    int64_t id;
    size_t refs; /* nodes made for it, in the tree or not */
    struct list nodes;
};

struct tree {
    const struct clave_mem *mem;
    struct node *root;
    struct map nodes;
    struct map owners;
    struct list swept; /* containers and nodes with a TTL */
    struct acls acls;
    uint64_t digest;
    size_t ephemerals;
    size_t data_bytes; /* of paths and data */
};

/* With /zookeeper, /zookeeper/config and /zookeeper/quota, as Apache makes it. */
clave_err clave__tree_init(struct tree *t, const struct clave_mem *mem);
/* Without any node but a bare root: what a snapshot is loaded into. */
clave_err clave__tree_init_bare(struct tree *t, const struct clave_mem *mem);
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
/* A node that is not in the tree yet. NULL: no memory. */
struct node *clave__tree_new_node(struct tree *t, const struct node_spec *spec);
/* One that is not in the tree (any more). */
void clave__tree_free_node(struct tree *t, struct node *n);
void clave__tree_link(struct tree *t, struct node *parent, struct node *n);
/* It has no children. */
void clave__tree_unlink(struct tree *t, struct node *n);

/* Data for _swap_data. *out NULL when there are no bytes. ENOMEM. */
clave_err clave__tree_copy_data(struct tree *t, struct jbytes data, uint8_t **out);
/* Gives the node `*data` of *len bytes, and the caller what it had. */
void clave__tree_swap_data(struct tree *t, struct node *n, uint8_t **data, int32_t *len);
/* Frees what _swap_data has given back. */
void clave__tree_free_data(struct tree *t, struct node *n, uint8_t *data);
/* The digest follows a Stat that was changed. */
void clave__tree_changed(struct tree *t, struct node *n);

/* NULL: it owns nothing. */
struct owner *clave__tree_find_owner(const struct tree *t, int64_t id);
/* The next node in depth-first order, parents first, below `top`; NULL behind the last. */
struct node *clave__tree_next(const struct node *n, const struct node *top);

#endif
