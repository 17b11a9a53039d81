/* tree_walk.h - a tree of nodes, read level by level with many requests in flight. */
#ifndef CLAVE_CMD_QUEUE_TREE_WALK_H
#define CLAVE_CMD_QUEUE_TREE_WALK_H

#include "clave/client.h"

struct tree_walk_node {
    char *path;
    size_t parent; /* index; the root's is its own */
    unsigned depth;
    size_t first_child, nchildren; /* they stand together, sorted by name */
    clave_err err;                 /* of reading it: ENOAUTH, or ENONODE when it has vanished */
    void *data;
    size_t len;
    char **names; /* of the children, until they are nodes themselves */
};

/* Parents stand before their children. */
struct tree_walk {
    struct tree_walk_node *nodes;
    size_t n, cap;
};

struct tree_walk_options {
    unsigned max_depth; /* 0: the root alone */
    bool data;
    int64_t timeout_ms;
};

/* Reads the tree below path. An error of a single node stands in it; that of the root, and
 * what ends the walk, is returned. walk_fini() is for either case. */
clave_err tree_walk_read(clave_client *s, const char *path, const struct tree_walk_options *wish,
                         struct tree_walk *out);
void tree_walk_fini(struct tree_walk *w);

/* The node behind i in the order of a listing (each before its children); w->n: none. */
size_t tree_walk_next(const struct tree_walk *w, size_t i);

/* parent + "/" + name, for the caller to free; NULL: no memory. */
char *tree_walk_child_path(const char *parent, const char *name);
/* The part behind the last '/'. */
const char *tree_walk_name(const struct tree_walk_node *node);

/* Sorts names as a listing shows them. */
void tree_walk_sort_names(char **names, size_t n);

#endif
