/* tree_walk.h - a tree of nodes, read level by level with many requests in flight.
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
    size_t parent; /* index; the root's is its own */
    unsigned depth;
    size_t first_child, nchildren; /* consecutive, sorted by name */
    clave_err err;                 /* of reading it: ENOAUTH, or ENONODE when it has been deleted */
    void *data;
    size_t len;
    char **names; /* names of the children, until they are nodes themselves */
};

/* Parents precede their children. */
struct tree_walk {
    struct tree_walk_node *nodes;
    size_t n, cap;
};

struct tree_walk_options {
    unsigned max_depth; /* 0: the root alone */
    bool data;
    int64_t timeout_ms;
};

/* Reads the tree below path. An error of a single node is kept in it; an error of the root, or one
 * that ends the walk, is returned. Call tree_walk_fini() in either case. */
clave_err tree_walk_read(clave_client *c, const char *path, const struct tree_walk_options *options,
                         struct tree_walk *out);
void tree_walk_fini(struct tree_walk *w);

/* The node after i in the order of a listing (each before its children); w->n: none. */
size_t tree_walk_next(const struct tree_walk *w, size_t i);

/* The part after the last '/'. */
const char *tree_walk_name(const struct tree_walk_node *node);

/* Sorts names as listings do. */
void tree_walk_sort_names(char **names, size_t n);

#endif
