/* async/persistent_watcher.h - a watch that stays: on one node, or on a node and everything below
 * it. Curator's PersistentWatcher.
 *
 * It stays at the server after an event, is registered again after each reconnect and in each new
 * session, and its node need not exist. A registration that fails is repeated after 100 ms, then
 * after twice as long each time, up to 5 s. Events are the server's, in its order. Nothing is made
 * up for: a change while there is no connection has no event. ARMED says whenever events begin
 * again: to miss nothing, read the nodes after it and then follow the events, as
 * clave/async/cache.h does.
 *
 * Servers before 3.6 have no such watches. Servers before 3.9 have one watch per node and session:
 * a one-shot watch on the very path of a persistent one would replace it there, so use another
 * client for that.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. */
#ifndef CLAVE_ASYNC_PERSISTENT_WATCHER_H
#define CLAVE_ASYNC_PERSISTENT_WATCHER_H

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_persistent_watcher clave_async_persistent_watcher; /* opaque */

typedef enum clave_persistent_watcher_event_type {
    /* From here on changes have events. Requests made now see every change that had none. */
    CLAVE_PERSISTENT_WATCHER_ARMED,
    /* The connection is gone: changes have no event until the next ARMED. */
    CLAVE_PERSISTENT_WATCHER_SUSPENDED,
    CLAVE_PERSISTENT_WATCHER_CREATED,
    CLAVE_PERSISTENT_WATCHER_DELETED,
    CLAVE_PERSISTENT_WATCHER_CHANGED,  /* its data was written */
    CLAVE_PERSISTENT_WATCHER_CHILDREN, /* a child was created or deleted; never when recursive */
    /* There will be no further event. `err` says why: EUNIMPLEMENTED, the server is older than 3.6;
     * ENOAUTH; ECLOSED, the client was closed. */
    CLAVE_PERSISTENT_WATCHER_ENDED,
} clave_persistent_watcher_event_type;

typedef struct clave_persistent_watcher_event {
    clave_persistent_watcher_event_type type;
    const char *path; /* the node's; in ARMED, SUSPENDED and ENDED the watcher's own */
    clave_err err;    /* for ENDED */
} clave_persistent_watcher_event;
/* What `ev` points to is valid during the call only. The callback may free the watcher. */
typedef void clave_async_persistent_watcher_cb(clave_async_persistent_watcher *w,
                                               const clave_persistent_watcher_event *ev, void *arg);

typedef struct clave_persistent_watcher_options {
    size_t size;      /* CLAVE_PERSISTENT_WATCHER_OPTIONS_INIT sets it: clave/options.h */
    bool single_node; /* only the node itself, with the CHILDREN events of its children; otherwise
                         the node and all below it */
} clave_persistent_watcher_options;
#define CLAVE_PERSISTENT_WATCHER_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_persistent_watcher_options)

/* Makes a watcher of `path` and requests the watch. `o` may be NULL. On CLAVE_OK *out belongs to
 * the caller, who frees it with clave_async_persistent_watcher_free; on an error it is NULL. EPATH:
 * the path is not valid. EINVAL: no cb, or the options. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_persistent_watcher_new(clave_async_persistent_watcher **out,
                                                          clave_async_client *c, const char *path,
                                                          const clave_persistent_watcher_options *o,
                                                          clave_async_persistent_watcher_cb *cb,
                                                          void *arg);
/* Removes the watch and frees; no callback follows. NULL is ignored. */
CLAVE_EXPORT void clave_async_persistent_watcher_free(clave_async_persistent_watcher *w);
/* True from ARMED to SUSPENDED. */
CLAVE_METHOD bool clave_async_persistent_watcher_is_armed(const clave_async_persistent_watcher *w);

#ifdef __cplusplus
}
#endif
#endif
