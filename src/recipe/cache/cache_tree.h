/* cache_tree.h - the nodes of a cache in memory, one block a node: header, Stat, name, data. It
 * knows no client and no events.
 *
 * A node is PRESENT when the user knows of it. Others are places kept for what is being read, or
 * was deleted while a request about it is under way; cache_read.c moves them on. Only a present
 * node has present children.
 *
 * The folder:
 *   persistent_watcher.c   a recipe of its own, on which the cache stands
 *   cache.c                the public calls of the cache, and what the user is told
 *   cache_watch.c          where changes are learned from, and how old it is at most
 *   cache_read.c           what is asked, in which order, and what the answers mean
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
    CACHE_NODE_QUEUED, /* is to be asked for */
    CACHE_NODE_ASKED,  /* a request is under way */
};

struct cache_node {
    struct cache_children *parent; /* NULL: the root */
    struct cache_children *dir;    /* NULL: no children */
    uint32_t data_len;
    uint32_t name_len : 24;
    uint32_t stat_len : 8; /* 0: it was never read */
    uint32_t phase : 2;    /* an enum cache_node_phase */
    uint32_t present : 1;
    uint32_t has_data : 1;
    uint32_t null_data : 1;
    uint32_t followed : 1;   /* its children are wanted */
    uint32_t listed : 1;     /* all children are known, as of the Stat and the events since */
    uint32_t moved : 1;      /* children came or went since they were listed */
    uint32_t check : 1;      /* not read since the connection was back */
    uint32_t wants_read : 1; /* its Stat, and data */
    uint32_t wants_data : 1; /* the Stat is known to be new: data as well */
    uint32_t wants_list : 1;
    uint32_t asked_list : 1;  /* ASKED: for its children, not for itself */
    uint32_t owed : 1;        /* QUEUED or ASKED, and the load or the resync waits for it */
    uint32_t left_out : 1;    /* a child did not fit */
    uint32_t lacks_data : 1;  /* its data did not fit */
    uint32_t no_data : 1;     /* its data cannot be read */
    uint32_t no_list : 1;     /* its children cannot be listed */
    uint32_t denied : 1;      /* ENOAUTH was the answer when its data, or its Stat, was read last */
    uint32_t unreadable : 1;  /* present, and told so: neither data nor children are known */
    uint32_t child_watch : 1; /* wanted: no event tells of all its children */
    uint32_t named : 1;       /* it is in the listing that is being taken */
    uint8_t bytes[];          /* Stat, name, NUL, data */
};

/* The children of a node, in no order: a hash table with open addressing. */
struct cache_children {
    struct cache_node *owner;
    struct cache_node **slots;
    uint32_t nslots; /* a power of two; 0: none yet */
    uint32_t count;
    uint32_t present;              /* how many of them are */
    struct cache_watches *watches; /* of the owner, where there are no persistent ones; or NULL */
};

struct cache_tree {
    struct clave_mem mem;
    struct siphash_key key;
    struct cache_node *root; /* its name is the cache's path */
    struct buf path;         /* has room for the longest */
    size_t nodes;            /* all */
    size_t count;            /* those present */
    size_t bytes;
    /* Frees what cache_dir.watches points to. */
    void (*free_watches)(struct cache_watches *w);
};

/* What is stored of a node. */
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
/* Its parent; NULL: it is the root. */
struct cache_node *clave__cache_tree_parent(const struct cache_node *n);
/* Writes its path to a buffer of at least t->path.cap bytes, as t->path.data is. Returns `out`. */
char *clave__cache_tree_path(const struct cache_node *n, uint8_t *out);

/* How many bytes a node with such a name takes, without data, at most. */
size_t clave__cache_tree_room(size_t name_len);
/* A new place, which is not present. ENOMEM. */
clave_err clave__cache_tree_add(struct cache_tree *t, struct cache_node *parent, const char *name,
                                size_t len, struct cache_node **out);
/* Makes the node's dir, if it has none. ENOMEM. */
clave_err clave__cache_tree_make_dir(struct cache_tree *t, struct cache_node *n);
/* Stores a value: another block takes the place of *n. The former one is *old, to be given to
 * _discard; nothing refers to it. ENOMEM: nothing has changed. */
clave_err clave__cache_tree_store(struct cache_tree *t, struct cache_node **n,
                                  const struct cache_value *v, struct cache_node **old);
void clave__cache_tree_discard(struct cache_tree *t, struct cache_node *old);
void clave__cache_tree_set_present(struct cache_tree *t, struct cache_node *n, bool present);
/* Frees the node, unless it is present, has children, or something waits for it; then its parent
 * likewise. The root stays. */
void clave__cache_tree_prune(struct cache_tree *t, struct cache_node *n);

/* The value of a present node. num_children of a node that is listed is that of the tree. */
struct cache_value clave__cache_tree_value(const struct cache_node *n);
/* Its Stat as it was stored. */
clave_stat clave__cache_tree_stat(const struct cache_node *n);

/* A walk over the present nodes below and including a present `top`, parents before their children:
 * from `at`, at first `top`, to the next one. NULL: the end. */
struct cache_node *clave__cache_tree_down(const struct cache_tree *t, const struct cache_node *top,
                                          const struct cache_node *at);
/* A walk during which each node may be removed, children before their parents: from the deepest of
 * `top` to the one after that which had this slot of its parent, until `top` was. */
struct cache_node *clave__cache_tree_deepest(struct cache_node *top);
uint32_t clave__cache_tree_slot(const struct cache_tree *t, const struct cache_node *n);
struct cache_node *clave__cache_tree_after(const struct cache_children *parent, uint32_t slot);

/* The name of a node, which is no text of its own: name_len bytes. */
const char *clave__cache_children_name(const struct cache_node *n);

#endif
