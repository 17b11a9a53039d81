/* mutex.h - the mutex, blocking, for threads: Curator's InterProcessMutex. The asynchronous form,
 * which describes the options and the events, is clave/async/mutex.h; both forms share one queue.
 *
 * Owners   the calling thread owns what it acquires: the mutex is reentrant for that thread and
 *          exclusive for all others. The _as forms take an owner of your own choice, any 64-bit
 *          number.
 * Threads  any thread may call anything here. On the loop's thread (in a callback) the calls that
 *          wait return ELOOPTHREAD.
 * Times    timeout_ms is in milliseconds from now; negative: no limit. */
#ifndef CLAVE_MUTEX_H
#define CLAVE_MUTEX_H

#include "clave/async/mutex.h"
#include "clave/grant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_mutex clave_mutex; /* opaque */

/* Makes a mutex on `path`; does not contact the server. On CLAVE_OK *out belongs to the caller, who
 * frees it with clave_mutex_free; on an error it is NULL. `o` is as for clave_async_mutex_new and
 * may be NULL; its event callback runs on the loop's thread. When `o` or its data is NULL, the lock
 * node names this host and process, and the `clave lock` that runs the process, if any
 * (CLAVE_OWNER). The mutex may outlive the session: see clave_client_close.
 * EPATH: the path is not valid. EINVAL: an option is out of range. ENOMEM. ECLOSED: the session has
 * ended. */
CLAVE_MAKING clave_err clave_mutex_new(clave_mutex **out, clave_client *client, const char *path,
                                       const clave_mutex_options *o);
/* Releases every hold, waits at most a second for the server to confirm, and frees the mutex. No
 * thread may be waiting in the mutex: clave_mutex_cancel_as ends a wait. NULL is ignored. */
CLAVE_EXPORT void clave_mutex_free(clave_mutex *m);

/* Acquires the mutex for the calling thread. timeout_ms 0: only if it is free now. One deadline
 * covers the whole call, waiting for a connection included. On any error nothing was acquired.
 * EBUSY: not acquired in time, and on the present connection a server has shown somebody else
 * before this owner. EUNREACHABLE: not acquired in time, but there was no such answer, because
 * there is no connection, or it is a new one, or the server is silent: nobody knows who holds the
 * mutex. ECANCELED: clave_mutex_cancel_as. EDEADLOCK: see detect_deadlocks_ms in
 * clave_mutex_options. EUPGRADE: see clave/rwlock.h. ELOST: this thread's earlier hold was lost and
 * has not been released yet. ENOAUTH, EINVALIDACL, ESEQUENCE and other final errors: the server
 * refused the lock node. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_mutex_acquire(clave_mutex *m, int64_t timeout_ms);
/* Releases one hold and does not wait for the server: Curator's release costs one round trip, this
 * one none. After the last hold the delete of the lock node is sent in the background, ahead of
 * every later request of the session, and is repeated until the node is certainly gone.
 * clave_mutex_free and clave_client_close wait for it; a process that ends without calling them
 * leaves the node until the session times out.
 * ENOTHELD: this thread holds nothing. ELOST: the hold had been lost; EMAXHOLD: its maximum time
 * had passed; ESILENT: its work was silent for too long; in all three the hold is released all the
 * same. ECLOSED. */
CLAVE_METHOD clave_err clave_mutex_release(clave_mutex *m);
/* The same, but returns when the server has confirmed the delete: from then on everybody sees the
 * queue without this node. ETIMEDOUT: released, and the delete continues in the background. Other
 * errors of the delete (ENOAUTH ...): the node remains until the session ends. */
CLAVE_METHOD clave_err clave_mutex_release_confirmed(clave_mutex *m, int64_t timeout_ms);

/* Makes the acquire of `owner`, waiting in another thread, return ECANCELED. Does not wait; also
 * legal in callbacks. ENOTHELD: this owner is not waiting. ECLOSED. */
CLAVE_METHOD clave_err clave_mutex_cancel_as(clave_mutex *m, uint64_t owner);
/* clave_mutex_acquire for `owner` instead of the calling thread. EINVAL: this owner is already
 * waiting. */
CLAVE_METHOD clave_err clave_mutex_acquire_as(clave_mutex *m, uint64_t owner, int64_t timeout_ms);
/* clave_mutex_release for `owner` instead of the calling thread. */
CLAVE_METHOD clave_err clave_mutex_release_as(clave_mutex *m, uint64_t owner);
/* clave_mutex_release_confirmed for `owner` instead of the calling thread. */
CLAVE_METHOD clave_err clave_mutex_release_confirmed_as(clave_mutex *m, uint64_t owner,
                                                        int64_t timeout_ms);
/* The owner number of the calling thread, for clave_mutex_cancel_as in another thread. Never used
 * again in this process, not even after the thread has ended. */
CLAVE_EXPORT uint64_t clave_mutex_owner_self(void);

/* Copies the text of the latest deadlock (clave_async_mutex_deadlock) into buf, cut to cap bytes,
 * and returns buf; "" if there is none. */
CLAVE_METHOD const char *clave_mutex_deadlock(clave_mutex *m, char *buf, size_t cap);

/* What the calling thread holds: its token, how long it is valid, and the writes that only its
 * holder may do (clave/grant.h). On CLAVE_OK *out belongs to the caller, who frees it with
 * clave_grant_free; on an error it is NULL. Each call returns a reference of its own. Does not wait
 * for the server. ENOTHELD: this thread does not hold it. ELOST: its hold was lost and has not been
 * released yet. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_mutex_grant(clave_mutex *m, clave_grant **out);

#ifdef __cplusplus
}
#endif
#endif
