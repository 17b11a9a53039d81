/* async/cache.h - a copy of a node, or of a tree of nodes, in memory, kept up to date. Curator's
 * CuratorCache (NodeCache, PathChildrenCache, TreeCache).
 *
 * Whenever nothing has changed for a while, the cache equals the tree. Until then each node goes
 * through states it has really had, in their order: quick changes may be seen as one, none is seen
 * twice, and the last one is always seen. A node that was deleted and created again is a new one,
 * also with the same version: it is told by its czxid.
 *
 * First each node that is there is reported as CREATED, then INITIALIZED, then each change as
 * CREATED, CHANGED or DELETED. When the connection goes, the cache is STALE; when it is back, what
 * happened meanwhile is reported as CREATED, CHANGED and DELETED, and then it is RESYNCED. Neither
 * waits for changes to pause.
 *
 * It stands on one persistent recursive watch; on servers before 3.6, which have none, on a data
 * and a child watch for each node.
 *
 * What is kept of a node: its Stat and, if asked for, its data. The server tells of changes of data
 * and of nodes that come and go. So num_children of a node that is followed is counted here, and
 * cversion, pzxid and aversion are those of when the node was last read.
 *
 * A node that may not be read (ENOAUTH) is `unreadable`: neither its data nor what is below it is
 * known. Its Stat is all 0, unless the server answers exists nonetheless, as ZooKeeper did before
 * 3.8.4. Servers send no events of such nodes. So where one was found its siblings are listed again
 * at each change of the children; the first one of a parent that was listed before, and a node
 * whose access list was changed, are found after the next reconnect, or by `refresh_ms`. A node
 * that turns out to be readable, or not to be any more, is DELETED and CREATED.
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
    CLAVE_CACHE_CREATED, /* a node is there: also each one found by the first load */
    CLAVE_CACHE_CHANGED, /* its data was written, perhaps with the same bytes; or it is kept now,
                            where it did not fit before */
    CLAVE_CACHE_DELETED, /* children are reported before their parent */
    CLAVE_CACHE_INITIALIZED, /* once: everything that was there is loaded */
    CLAVE_CACHE_STALE,       /* the connection is gone: what is known may be out of date */
    CLAVE_CACHE_RESYNCED,    /* after STALE: up to date again */
    /* The memory bound is reached: further nodes are left out, and data that does not fit.
     * Once, until everything fits again; then RESYNCED. Also when the children of a node are too
     * many to be listed (ETOOBIG): then what is below that node is left out as long as it exists.
     */
    CLAVE_CACHE_FULL,
    /* The last event: nothing is followed any more. `err` says why: ECLOSED, the client was closed;
     * ENOAUTH, the path may not be read; ENOMEM. What was known is still there. */
    CLAVE_CACHE_ENDED,
} clave_cache_event_type;

/* A node as the cache knows it. What it points to is valid until the callback returns, or outside
 * of callbacks until the next call that may run some. */
typedef struct clave_cache_node {
    const char *path;
    clave_stat stat;
    const void *data; /* NULL: null, not kept, or not readable */
    size_t len;
    bool has_data;   /* `data` is the node's: data is kept, could be read and fits */
    bool unreadable; /* ENOAUTH: it is there, and no more is known, but for `stat` perhaps */
} clave_cache_node;

typedef struct clave_cache_event {
    clave_cache_event_type type;
    const char *path;            /* of the node; of the others the cache's own */
    const clave_cache_node *now; /* CREATED, CHANGED; else NULL */
    const clave_cache_node *was; /* CHANGED, DELETED; else NULL */
    int64_t zxid;                /* INITIALIZED, RESYNCED: as clave_cache_status says now */
    clave_err err;               /* ENDED */
} clave_cache_event;
/* The queries answer with the event done. It may free the cache. */
typedef void clave_async_cache_cb(clave_async_cache *cache, const clave_cache_event *ev, void *arg);

/* ---- life ----------------------------------------------------------------------------------- */

typedef enum clave_cache_take {
    CLAVE_CACHE_TAKE_TREE, /* the node and what is below it */
    CLAVE_CACHE_TAKE_NODE, /* only the node */
    CLAVE_CACHE_TAKE_NOTHING,
} clave_cache_take;
/* Decides for each node below the cache's path, by its path alone: asked again, it answers the
 * same. It calls nothing of the cache. */
typedef clave_cache_take clave_cache_filter_cb(const char *path, void *arg);

typedef struct clave_cache_options {
    size_t size;      /* CLAVE_CACHE_OPTIONS_INIT sets it: clave/options.h */
    bool single_node; /* only the node itself, not what is below it */
    bool without_data;
    size_t max_data;  /* data longer than this is not kept; 0: no such bound */
    size_t max_nodes; /* 0: no bound */
    size_t max_bytes; /* as of clave_cache_status; 0: no bound */
    uint32_t window;  /* nodes read at a time; 0: 256 */
    /* Always as for a server before 3.6. For tests, and for ensembles with members of both sorts.
     */
    bool without_persistent_watch;
    clave_cache_filter_cb *filter; /* NULL: everything is taken */
    void *filter_arg;
    const clave_mem *mem; /* of the nodes; copied; NULL: the client's */
    /* How often what no event tells of is looked for: nodes that may not be read, changed access
     * lists. Each node is read once in this time, in tenths of it, and at most 300 in a tenth; but
     * for ephemeral ones with a sequence number, since another never comes by that name. 0: never.
     */
    uint32_t refresh_ms;
} clave_cache_options;
#define CLAVE_CACHE_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_cache_options)

/* Makes a cache of the tree at `path`, which need not exist, and starts to load it. `o` and `cb`
 * may be NULL. On CLAVE_OK *out belongs to the caller, who frees it with clave_async_cache_free; on
 * an error it is NULL. EPATH: the path is not valid. EINVAL: the options. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_cache_new(clave_async_cache **out, clave_async_client *c,
                                             const char *path, const clave_cache_options *o,
                                             clave_async_cache_cb *cb, void *arg);
/* Stops following and frees; no callback follows. NULL is ignored. */
CLAVE_EXPORT void clave_async_cache_free(clave_async_cache *cache);

/* ---- what is known -------------------------------------------------------------------------- */

/* Gives the node at an absolute path. ENONODE: the cache has none there. */
CLAVE_METHOD clave_err clave_async_cache_get(const clave_async_cache *cache, const char *path,
                                             clave_cache_node *out);
/* Gets a node; false ends the walk. It may ask the cache, but not free it. */
typedef bool clave_cache_visit_cb(const clave_cache_node *node, void *arg);
/* Visits the children of the node at `path`, in no order. ENONODE: the cache has no node there.
 * ENOAUTH: it is unreadable, and so are their names. */
CLAVE_METHOD clave_err clave_async_cache_children(const clave_async_cache *cache, const char *path,
                                                  clave_cache_visit_cb *visit, void *arg);
/* Visits the node at `path` and all below it, parents before their children, otherwise in no order.
 * ENONODE as above. */
CLAVE_METHOD clave_err clave_async_cache_walk(const clave_async_cache *cache, const char *path,
                                              clave_cache_visit_cb *visit, void *arg);
/* What it is at one moment. */
typedef struct clave_cache_status {
    size_t count; /* of nodes */
    size_t bytes; /* how much memory the nodes take, without what the allocator adds */
    /* The zxid of the newest point at which the cache was equal to the tree: nothing was being
     * read. 0: there was none yet. */
    int64_t zxid;
    bool current; /* from INITIALIZED to STALE, and from RESYNCED to STALE: changes are seen as they
                     happen */
    bool complete; /* false from FULL on until everything fits: something is left out */
} clave_cache_status;
/* Its status, from memory. */
CLAVE_METHOD clave_cache_status clave_async_cache_status_of(const clave_async_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
