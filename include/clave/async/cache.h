/* async/cache.h - a copy of a node, or of a tree of nodes, in memory, kept up to date. Curator's
 * CuratorCache (NodeCache, PathChildrenCache, TreeCache).
 *
 * Whenever nothing has changed for a while, the cache equals the tree. Until then each node goes
 * through states that it really had, in order: changes in quick succession may be seen as one, none
 * is seen twice, and the last one is always seen. A node that was deleted and created again is a
 * new node, even if the version is the same: it is recognised by its czxid.
 *
 * First each existing node is reported as CREATED, then INITIALIZED follows, then each change as
 * CREATED, CHANGED or DELETED. When the connection is lost, the cache is STALE; when it is back,
 * what happened in the meantime is reported as CREATED, CHANGED and DELETED, and then the cache is
 * RESYNCED. Neither INITIALIZED nor RESYNCED waits for changes to pause.
 *
 * It uses a single persistent recursive watch or, on servers before 3.6, which have none, a data
 * watch and a child watch for each node.
 *
 * It keeps the Stat of each node and, if requested, its data. The server announces changes of data,
 * and nodes that come and go. So num_children of a node whose children are followed is counted
 * here, while cversion, pzxid and aversion are from when the node was last read.
 *
 * A node that may not be read (ENOAUTH) is `unreadable`: neither its data nor what is below it is
 * known. Its Stat is all 0, unless the server answers exists nonetheless, as ZooKeeper did before
 * 3.8.4. Servers send no events about such nodes. So where one was found, its siblings are listed
 * again whenever the children change; the first unreadable child of a parent that was already
 * listed, and a node whose access list was changed, are found after the next reconnect, or thanks
 * to `refresh_ms`. A node that becomes readable, or unreadable, is reported as DELETED and CREATED.
 *
 * Memory: a node takes about 100 bytes, its name and its data. Asynchronous, on a
 * clave_async_client and under its thread and callback rules. */
#ifndef CLAVE_ASYNC_CACHE_H
#define CLAVE_ASYNC_CACHE_H

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_cache clave_async_cache; /* opaque */

/* ---- events --------------------------------------------------------------------------------- */

typedef enum clave_cache_event_type {
    CLAVE_CACHE_CREATED, /* a node exists; also reported for each one found by the first load */
    CLAVE_CACHE_CHANGED, /* its data was written, perhaps with the same bytes; or its data is kept
                            now, after it did not fit before */
    CLAVE_CACHE_DELETED, /* children are reported before their parent */
    CLAVE_CACHE_INITIALIZED, /* once: everything that was there is loaded */
    CLAVE_CACHE_STALE,       /* the connection is gone: what the cache has may be out of date */
    CLAVE_CACHE_RESYNCED,    /* after STALE: up to date again */
    /* The memory bound is reached: further nodes, and data that does not fit, are left out.
     * Reported once, until everything fits again, which RESYNCED reports. Also reported if a node
     * has too many children to be listed (ETOOBIG); then what is below that node is left out as
     * long as the node exists. */
    CLAVE_CACHE_FULL,
    /* The last event: the cache is no longer updated. `err` says why: ECLOSED, the client was
     * closed; ENOAUTH, the path may not be read; ENOMEM. The cached nodes can still be read. */
    CLAVE_CACHE_ENDED,
} clave_cache_event_type;

/* A node as the cache knows it. What it points to is valid until the callback returns, or outside
 * of callbacks until the next call that may run some. */
typedef struct clave_cache_node {
    const char *path;
    clave_stat stat;
    const void *data; /* NULL: null, not kept, or not readable */
    size_t len;
    bool has_data;   /* `data` is the node's: the cache keeps data, and it could be read and fits */
    bool unreadable; /* ENOAUTH: the node exists, but nothing else is known about it, except perhaps
                        `stat` */
} clave_cache_node;

typedef struct clave_cache_event {
    clave_cache_event_type type;
    const char *path;            /* the node's; in events without a node, the cache's own */
    const clave_cache_node *now; /* for CREATED and CHANGED; otherwise NULL */
    const clave_cache_node *was; /* for CHANGED and DELETED; otherwise NULL */
    int64_t zxid;  /* for INITIALIZED and RESYNCED: as in clave_cache_status at this time */
    clave_err err; /* for ENDED */
} clave_cache_event;
/* Queries in the callback already reflect the event. It may free the cache. */
typedef void clave_async_cache_cb(clave_async_cache *cache, const clave_cache_event *ev, void *arg);

/* ---- making and freeing ---------------------------------------------------------------------- */

typedef enum clave_cache_take {
    CLAVE_CACHE_TAKE_TREE, /* the node and what is below it */
    CLAVE_CACHE_TAKE_NODE, /* only the node */
    CLAVE_CACHE_TAKE_NOTHING,
} clave_cache_take;
/* Decides about each node below the cache's path, by its path alone: if asked again, it must answer
 * the same. It must not call the cache. */
typedef clave_cache_take clave_cache_filter_cb(const char *path, void *arg);

typedef struct clave_cache_options {
    size_t size;      /* CLAVE_CACHE_OPTIONS_INIT sets it: clave/options.h */
    bool single_node; /* only the node itself, nothing below it */
    bool without_data;
    size_t max_data;  /* data longer than this is not kept; 0: no limit */
    size_t max_nodes; /* 0: no limit */
    size_t max_bytes; /* counted as in clave_cache_status; 0: no limit */
    uint32_t window;  /* nodes read at a time; 0: 256 */
    /* Always do as on a server before 3.6. For tests, and for ensembles with members of both kinds.
     */
    bool without_persistent_watch;
    clave_cache_filter_cb *filter; /* NULL: everything is taken */
    void *filter_arg;
    const clave_mem *mem; /* for the nodes; copied; NULL: the client's */
    /* How often to look for what no event reports: nodes that may not be read, and changed access
     * lists. Each node is read once in this time, in ten steps of at most 300 nodes, except
     * ephemeral nodes with a sequence number, since no other node ever gets the same name. 0:
     * never. */
    uint32_t refresh_ms;
} clave_cache_options;
#define CLAVE_CACHE_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_cache_options)

/* Makes a cache of the tree at `path`, which need not exist, and starts to load it. `o` and `cb`
 * may be NULL. On CLAVE_OK *out belongs to the caller, who frees it with clave_async_cache_free; on
 * an error it is NULL. EPATH: the path is not valid. EINVAL: the options. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_cache_new(clave_async_cache **out, clave_async_client *c,
                                             const char *path, const clave_cache_options *o,
                                             clave_async_cache_cb *cb, void *arg);
/* Stops following changes and frees the cache; no callback follows. NULL is ignored. */
CLAVE_EXPORT void clave_async_cache_free(clave_async_cache *cache);

/* ---- queries --------------------------------------------------------------------------------- */

/* Looks up the node at an absolute path. ENONODE: the cache has no node there. */
CLAVE_METHOD clave_err clave_async_cache_get(const clave_async_cache *cache, const char *path,
                                             clave_cache_node *out);
/* Receives a node; returning false ends the walk. It may query the cache, but not free it. */
typedef bool clave_cache_visit_cb(const clave_cache_node *node, void *arg);
/* Visits the children of the node at `path`, in no order. ENONODE: the cache has no node there.
 * ENOAUTH: it is unreadable, so their names are not known. */
CLAVE_METHOD clave_err clave_async_cache_children(const clave_async_cache *cache, const char *path,
                                                  clave_cache_visit_cb *visit, void *arg);
/* Visits the node at `path` and all below it, parents before their children, otherwise in no order.
 * ENONODE as above. */
CLAVE_METHOD clave_err clave_async_cache_walk(const clave_async_cache *cache, const char *path,
                                              clave_cache_visit_cb *visit, void *arg);
/* The status of a cache at one moment. */
typedef struct clave_cache_status {
    size_t count; /* number of nodes */
    size_t bytes; /* memory that the nodes take, not counting what the allocator adds */
    /* When the cache was last equal to the tree, that is, when nothing was being read. 0: never so
     * far. */
    int64_t zxid;
    bool current;  /* between INITIALIZED or RESYNCED and the next STALE: changes are seen as they
                      happen */
    bool complete; /* false from FULL until everything fits again: something is left out */
} clave_cache_status;
/* The cache's status, answered from memory. */
CLAVE_METHOD clave_cache_status clave_async_cache_status_of(const clave_async_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
