/* tree_walk.h - a tree of nodes, which is read level by level with many requests in flight.
 *
 * Map of src/cmd/znodes, what the verbs of znodes share:
 *   node_reader      one node: get, getacl, stat
 *   node_data        what create and set write; guard: --guard
 *   tree_walk        a tree of nodes
 *   request_window   many requests of one session in flight */
#ifndef CLAVE_CMD_ZNODES_TREE_WALK_H
#define CLAVE_CMD_ZNODES_TREE_WALK_H

#include "clave/client.h"

struct tree_walk_node {
    char *path;
    size_t parent; /* index of the parent; the root is its own */
    unsigned depth;
    size_t first_child, nchildren; /* the children are consecutive, sorted by name */
    clave_err err;                 /* error of reading it: ENOAUTH, or ENONODE if it was deleted */
    void *data;
    size_t len;
    char **names; /* names of the children, until they are nodes of the list */
};

/* In `nodes`, parents precede their children. */
struct tree_walk {
    struct tree_walk_node *nodes;
    size_t n, cap;
};

struct tree_walk_options {
    unsigned max_depth; /* 0: only the root */
    bool data;
    int64_t timeout_ms;
};

/* Reads the tree at `path`. An error of a single node is stored in the node; an error of the root,
 * or one that ends the walk, is returned. Call tree_walk_fini() in either case. */
clave_err tree_walk_read(clave_client *c, const char *path, const struct tree_walk_options *options,
                         struct tree_walk *out);
void tree_walk_fini(struct tree_walk *w);

/* The node after node `i` in the order of a listing, in which each node precedes its children;
 * w->n: there is none. */
size_t tree_walk_next(const struct tree_walk *w, size_t i);

/* The last name of the node's path. */
const char *tree_walk_name(const struct tree_walk_node *node);

/* Sorts names the way listings do. */
void tree_walk_sort_names(char **names, size_t n);

#endif
