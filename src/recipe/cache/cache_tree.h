/* cache_tree.h - the nodes of a cache in memory, each of them a single block: header, Stat, name,
 * data. It does not know clients or events.
 *
 * A node is PRESENT if the user knows about it. Other nodes are placeholders for what is being
 * read, or was deleted while a request about it is under way; cache_read.c takes them further. Only
 * a present node has present children. The folder:
 *
 *   persistent_watcher.c   a recipe of its own, which the cache is built on
 *   cache.c                the public calls of the cache, and its events
 *   cache_watch.c          how changes are noticed, and how old the cache can be
 *   cache_read.c           what is requested in which order, and what the answers mean
 *   cache_tree.c           the nodes, their children, their Stats */
#ifndef CLAVE_RECIPE_CACHE_CACHE_TREE_H
#define CLAVE_RECIPE_CACHE_CACHE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash/siphash.h"
#include "base/memory.h"
#include "clave/async/client.h"

enum cache_node_phase {
    CACHE_NODE_IDLE,
    CACHE_NODE_QUEUED, /* has to be requested */
    CACHE_NODE_ASKED,  /* a request is under way */
};

struct cache_node {
    struct cache_children *parent; /* the table that it is in; NULL: it is the root */
    struct cache_children *dir;    /* the table of its own children; NULL: none */
    uint32_t data_len;
    uint32_t name_len : 24;
    uint32_t stat_len : 8; /* 0: it was never read */
    uint32_t phase : 2;    /* enum cache_node_phase */
    uint32_t present : 1;
    uint32_t has_data : 1;
    uint32_t null_data : 1;
    uint32_t followed : 1;   /* its children are wanted */
    uint32_t listed : 1;     /* all children are known, as of the Stat and the events since then */
    uint32_t moved : 1;      /* children came or went since they were listed */
    uint32_t check : 1;      /* not read since the connection came back */
    uint32_t wants_read : 1; /* its Stat has to be read, and its data */
    uint32_t wants_data : 1; /* the Stat is known to be new, so the data has to be read as well */
    uint32_t wants_list : 1;
    uint32_t asked_list : 1; /* ASKED: its children were requested, not the node itself */
    uint32_t owed : 1;       /* QUEUED or ASKED, and the load or the resync waits for that */
    uint32_t left_out : 1;   /* a child did not fit */
    uint32_t lacks_data : 1; /* its data did not fit */
    uint32_t no_data : 1;    /* its data cannot be read */
    uint32_t no_list : 1;    /* its children cannot be listed */
    uint32_t
        denied : 1; /* the last attempt to read its data or its Stat was answered with ENOAUTH */
    uint32_t unreadable : 1; /* present, and reported as unreadable: neither its data nor its
                                children are known */
    uint32_t
        child_watch : 1; /* it needs a child watch, since events do not cover all of its children */
    uint32_t named : 1;  /* it is in the listing that is being processed */
    uint8_t bytes[];     /* Stat, name, NUL, data */
};

/* The children of a node, in no particular order: a hash table with open addressing. */
struct cache_children {
    struct cache_node *owner;
    struct cache_node **slots;
    uint32_t nslots; /* a power of two; 0: no table yet */
    uint32_t count;
    uint32_t present; /* how many of them are present */
    /* The owner's watches on the node, if there are no persistent watches; may be NULL. */
    struct cache_watches *watches;
};

struct cache_tree {
    struct clave_mem mem;
    struct siphash_key key;
    struct cache_node *root; /* its name is the path of the cache */
    struct buf path;         /* has room for the longest path */
    size_t nodes;            /* all nodes */
    size_t count;            /* the present ones */
    size_t bytes;
    /* Frees what cache_children.watches points to. */
    void (*free_watches)(struct cache_watches *w);
};

/* What is stored about a node. */
struct cache_value {
    clave_stat stat;
    const void *data; /* NULL: null */
    size_t len;
    bool has_data;
    bool unreadable;
};

/* ENOMEM. */
clave_err clave__cache_tree_init(struct cache_tree *t, const struct clave_mem *mem, uint64_t seed,
                                 const char *path);
void clave__cache_tree_fini(struct cache_tree *t);

/* The node at an absolute path, present or not; NULL: there is none. */
struct cache_node *clave__cache_tree_find(const struct cache_tree *t, const char *path, size_t n);
struct cache_node *clave__cache_tree_child(const struct cache_tree *t, const struct cache_node *n,
                                           const char *name, size_t len);
/* The parent of a node; NULL if it is the root. */
struct cache_node *clave__cache_tree_parent(const struct cache_node *n);
/* Writes the node's path to a buffer of at least t->path.cap bytes, such as t->path.data. Returns
 * `out`. */
char *clave__cache_tree_path(const struct cache_node *n, uint8_t *out);

/* The most memory that a node with a name of this length can take, not counting its data. */
size_t clave__cache_tree_room(size_t name_len);
/* Adds a node that is not present. ENOMEM. */
clave_err clave__cache_tree_add(struct cache_tree *t, struct cache_node *parent, const char *name,
                                size_t len, struct cache_node **out);
/* Makes the node's table of children, if it has none. ENOMEM. */
clave_err clave__cache_tree_make_dir(struct cache_tree *t, struct cache_node *n);
/* Stores a value. Another block takes the place of *n. Nothing refers to the former block any more:
 * it is returned in *old, and must be passed to _discard. ENOMEM: nothing has changed. */
clave_err clave__cache_tree_store(struct cache_tree *t, struct cache_node **n,
                                  const struct cache_value *v, struct cache_node **old);
void clave__cache_tree_discard(struct cache_tree *t, struct cache_node *old);
void clave__cache_tree_set_present(struct cache_tree *t, struct cache_node *n, bool present);
/* Frees the node unless it is present, has children, or is being waited for, and then its parent in
 * the same way. The root always stays. */
void clave__cache_tree_prune(struct cache_tree *t, struct cache_node *n);

/* The value of a present node. For a node whose children are listed, num_children is as in the
 * tree. */
struct cache_value clave__cache_tree_value(const struct cache_node *n);
/* The node's Stat as it was stored. */
clave_stat clave__cache_tree_stat(const struct cache_node *n);

/* Walks the present nodes below a present `top`, parents before children: returns the node after
 * `at`, beginning with at = top. NULL: there are no more. */
struct cache_node *clave__cache_tree_down(const struct cache_tree *t, const struct cache_node *top,
                                          const struct cache_node *at);
/* A walk that allows each node to be removed, children before parents: starts at the deepest first
 * descendant of `top` and goes on to the node after the one that had this slot of its parent, until
 * `top` itself was reached. */
struct cache_node *clave__cache_tree_deepest(struct cache_node *top);
uint32_t clave__cache_tree_slot(const struct cache_tree *t, const struct cache_node *n);
struct cache_node *clave__cache_tree_after(const struct cache_children *parent, uint32_t slot);

/* The name of a node: name_len bytes, not NUL-terminated. */
const char *clave__cache_children_name(const struct cache_node *n);

#endif
