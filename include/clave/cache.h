/* cache.h - a copy of a node, or of a tree of nodes, in memory, kept up to date, for threads:
 * Curator's CuratorCache. The asynchronous form, which says what the copy promises and describes
 * the options and the events, is clave/async/cache.h.
 *
 *     clave_cache *cache;
 *     err = clave_cache_new(&cache, client, "/settings", NULL, NULL, NULL);
 *     if (err == CLAVE_OK)
 *         err = clave_cache_wait(cache, 10000);
 *     if (err == CLAVE_OK)
 *         err = clave_cache_get(cache, "/settings/colour", &reply);
 *
 * Threads  any thread may call anything here; on the loop's thread (in a callback) the call that
 *          waits, clave_cache_wait, returns ELOOPTHREAD.
 * Queries  are answered on the loop's thread from memory: they never wait for the network, only for
 *          callbacks that run there. They also answer before INITIALIZED, and while the cache is
 *          STALE, with what is known. After the session's end they say ECLOSED, 0 and false.
 * Times    timeout_ms is in milliseconds from now; negative: no limit. */
#ifndef CLAVE_CACHE_H
#define CLAVE_CACHE_H

#include "clave/async/cache.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_cache clave_cache; /* opaque */

/* ---- making and freeing ---------------------------------------------------------------------- */

/* Makes a cache of the tree at `path`, which need not exist, and starts to load it; does not wait.
 * `o` and `cb` may be NULL, and are as for clave_async_cache_new. The filter and `cb` run on the
 * loop's thread. `cb` gets the asynchronous cache, which it may query but not free; it may free
 * this one. On CLAVE_OK *out belongs to the caller, who frees it with clave_cache_free; on an error
 * it is NULL. The cache may outlive the session: see clave_client_close. EPATH: the path is not
 * valid. EINVAL: the options. ENOMEM. ECLOSED: the session has ended. */
CLAVE_MAKING clave_err clave_cache_new(clave_cache **out, clave_client *client, const char *path,
                                       const clave_cache_options *o, clave_async_cache_cb *cb,
                                       void *arg);
/* Stops following changes and frees the cache; no event follows. No thread may be in a call on it.
 * NULL is ignored. */
CLAVE_EXPORT void clave_cache_free(clave_cache *cache);

/* Waits until the cache is current: INITIALIZED, or RESYNCED if it was STALE. It may return before
 * the callback of that event has. ETIMEDOUT: not in time. EUNREACHABLE: the same, and the session
 * was never connected. ENOAUTH: the path may not be read. ENOMEM: the cache has ENDED because
 * memory ran out. ECLOSED: the session has ended. */
CLAVE_METHOD clave_err clave_cache_wait(clave_cache *cache, int64_t timeout_ms);

/* ---- queries --------------------------------------------------------------------------------- */

/* Copies a node's data and stat, as clave_get reads them; *out is the caller's (clave_reply_free),
 * NULL on an error. Its data is also NULL if the cache does not keep it; stat.data_length then
 * tells whether there is any. ENONODE: the cache has no node there. ENOAUTH: the node may not be
 * read. ENOMEM, ECLOSED. */
CLAVE_METHOD clave_err clave_cache_get(clave_cache *cache, const char *path, clave_reply **out);
/* Copies the names of a node's children, in no order, and its stat, as clave_children reads them.
 * Otherwise as clave_cache_get. */
CLAVE_METHOD clave_err clave_cache_children(clave_cache *cache, const char *path,
                                            clave_reply **out);
/* Visits the node at `path` and all below it, as clave_async_cache_walk, on the loop's thread, so
 * all nodes are as of one moment. ENONODE, ENOMEM, ECLOSED. */
CLAVE_METHOD clave_err clave_cache_walk(clave_cache *cache, const char *path,
                                        clave_cache_visit_cb *visit, void *arg);
/* The cache's status. All zeros: the session has ended. */
CLAVE_METHOD clave_cache_status clave_cache_status_of(clave_cache *cache);

#ifdef __cplusplus
}
#endif
#endif
