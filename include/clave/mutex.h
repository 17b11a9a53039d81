/* lock_flags.h - the mutex, blocking, for threads. The asynchronous form, with events of the
 * queue, is clave/async/mutex.h; both stand in the same queue.
 *
 * The owner is the calling thread: reentrant for it, exclusive for all others. For another
 * notion of ownership use the _as forms with a number of your own. */
#ifndef CLAVE_MUTEX_H
#define CLAVE_MUTEX_H

#include "clave/async/mutex.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_mutex clave_mutex; /* opaque */

/* `o` as for clave_async_mutex_new; its event callback runs on the loop's thread. When o or its
 * data is NULL, the node says this host and process, and what it is a part of when a `clave lock`
 * runs it (CLAVE_OWNER). It may outlive the session: see clave_client_close. */
CLAVE_EXPORT clave_err clave_mutex_new(clave_mutex **out, clave_client *s, const char *path,
                                       const clave_mutex_options *o);
/* The simple lock (clave/async/plain_layouts.h): nodes <path>/<prefix><10 digits>. */
CLAVE_EXPORT clave_err clave_mutex_new_simple(clave_mutex **out, clave_client *s, const char *path,
                                              const char *prefix, const clave_mutex_options *o);
/* The two sides of a read-write lock (clave/async/rwlock.h), each a lock in every respect, and to
 * be freed by itself. A thread that holds the write may take the read as well and then give the
 * write back; one that holds or waits for the read alone is refused the write: EUPGRADE. */
CLAVE_EXPORT clave_err clave_rwlock_new(clave_mutex **read, clave_mutex **write, clave_client *s,
                                        const char *path, const clave_mutex_options *reads,
                                        const clave_mutex_options *writes);
/* Releases what is held, and waits at most a second for the server to know of every release. Nobody
 * may be waiting in it: clave_mutex_cancel_as ends a wait. NULL is ignored. */
CLAVE_EXPORT void clave_mutex_free(clave_mutex *l);

/* timeout_ms: 0 only if it is free now, negative for ever. One deadline bounds it all,
 * waiting for a connection included. EBUSY, ECANCELED, EDEADLOCK, EUNREACHABLE (never connected
 * within the time), ENOAUTH ... */
CLAVE_EXPORT clave_err clave_mutex_acquire(clave_mutex *l, int64_t timeout_ms);
/* Gives one hold back and does not wait for the server: Curator's release is one round trip,
 * this one is none. The last hold's delete is sent in the background, ahead of whatever is
 * asked of the session from now on, and again until the node is certainly gone. Before the
 * process ends, clave_mutex_free or clave_client_close waits for it; a process that ends
 * without them leaves the node to the session's timeout.
 * ENOTHELD; ELOST when the hold had been lost, EMAXHOLD when its time had passed: the hold is
 * given back all the same. */
CLAVE_EXPORT clave_err clave_mutex_release(clave_mutex *l);
/* The same, and returns when the server has confirmed it: from then on everybody sees the
 * queue without us. ETIMEDOUT: given back all the same, the delete goes on. Other errors of
 * the delete (ENOAUTH ...): the node stands until the session ends. */
CLAVE_EXPORT clave_err clave_mutex_release_confirmed(clave_mutex *l, int64_t timeout_ms);
/* Makes the acquire that waits in another thread for `owner` return ECANCELED. */
CLAVE_EXPORT clave_err clave_mutex_cancel_as(clave_mutex *l, uint64_t owner);
CLAVE_EXPORT clave_err clave_mutex_acquire_as(clave_mutex *l, uint64_t owner, int64_t timeout_ms);
CLAVE_EXPORT clave_err clave_mutex_release_as(clave_mutex *l, uint64_t owner);
CLAVE_EXPORT clave_err clave_mutex_release_confirmed_as(clave_mutex *l, uint64_t owner,
                                                        int64_t timeout_ms);
/* As clave_async_mutex_deadlock, copied into buf (cut to cap); "" where that is NULL. Returns buf.
 */
CLAVE_EXPORT const char *clave_mutex_deadlock(clave_mutex *l, char *buf, size_t cap);
/* The number that stands for the calling thread, to hand to _cancel_as. */
CLAVE_EXPORT uint64_t clave_mutex_owner_self(void);

/* From memory, never waiting on the network: true while the calling thread holds the lock
 * and will for `ms` more. */
CLAVE_EXPORT bool clave_mutex_valid_for(clave_mutex *l, int64_t ms);
CLAVE_EXPORT int64_t clave_mutex_token(clave_mutex *l); /* 0: not held by this thread */

/* Guarded writes by the calling thread: ELOST when the grant is gone (nothing was done). */
CLAVE_EXPORT clave_err clave_mutex_create(clave_mutex *l, const char *path, const void *data,
                                          size_t len, clave_create_mode mode, int64_t timeout_ms,
                                          clave_reply **out);
CLAVE_EXPORT clave_err clave_mutex_set(clave_mutex *l, const char *path, const void *data,
                                       size_t len, int32_t version, int64_t timeout_ms);
CLAVE_EXPORT clave_err clave_mutex_delete(clave_mutex *l, const char *path, int32_t version,
                                          int64_t timeout_ms);
CLAVE_EXPORT clave_err clave_mutex_multi(clave_mutex *l, const clave_op *ops, size_t nops,
                                         int64_t timeout_ms, clave_reply **out);

#ifdef __cplusplus
}
#endif
#endif
