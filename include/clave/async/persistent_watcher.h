/* async/persistent_watcher.h - a watch that stays: on one node, or on a node and everything below
 * it. Curator's PersistentWatcher.
 *
 * It stays at the server after an event, is registered again after each reconnect and in each new
 * session, and its node need not exist. A registration that fails is repeated after 100 ms, then
 * after twice the time each, up to 5 s. Events are those of the server, in its order; there is no
 * catching up: a change while there is no connection has no event. `armed` says whenever
 * events begin anew: read the nodes after it, and then follow the events, to miss nothing.
 * clave/async/cache.h does that.
 *
 * Servers before 3.6 have no such watches. Servers before 3.9 have one watch a node and session: a
 * one-shot watch on the very path of a persistent one would replace it there, so use another client
 * for that.
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
    /* Events come from here on. Requests made now see every change that had none. */
    CLAVE_PERSISTENT_WATCHER_ARMED,
    /* The connection is gone: changes have no event until the next ARMED. */
    CLAVE_PERSISTENT_WATCHER_SUSPENDED,
    CLAVE_PERSISTENT_WATCHER_CREATED,
    CLAVE_PERSISTENT_WATCHER_DELETED,
    CLAVE_PERSISTENT_WATCHER_CHANGED,  /* its data */
    CLAVE_PERSISTENT_WATCHER_CHILDREN, /* a child was created or deleted; never when recursive */
    /* There will be no other event. `err` says why: EUNIMPLEMENTED, a server before 3.6; ENOAUTH;
     * ECLOSED, the client was closed. */
    CLAVE_PERSISTENT_WATCHER_ENDED,
} clave_persistent_watcher_event_type;

typedef struct clave_persistent_watcher_event {
    clave_persistent_watcher_event_type type;
    const char *path; /* of the node; of ARMED, SUSPENDED and ENDED the watcher's own */
    clave_err err;    /* ENDED */
} clave_persistent_watcher_event;
/* What `ev` points to is valid during the call only. It may free the watcher. */
typedef void clave_async_persistent_watcher_cb(clave_async_persistent_watcher *w,
                                               const clave_persistent_watcher_event *ev, void *arg);

typedef struct clave_persistent_watcher_options {
    size_t size;      /* CLAVE_PERSISTENT_WATCHER_OPTIONS_INIT sets it: clave/options.h */
    bool single_node; /* only the node itself, with the CHILDREN events of its children; otherwise
                         the node and all below it */
} clave_persistent_watcher_options;
#define CLAVE_PERSISTENT_WATCHER_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_persistent_watcher_options)

/* Makes a watcher of `path` and asks for the watch. `o` may be NULL. On CLAVE_OK *out belongs to
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
