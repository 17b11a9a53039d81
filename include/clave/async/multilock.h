/* async/multilock.h - several locks as one: Curator's InterProcessMultiLock. Beyond it, the locks
 * are taken in the order of their paths, so that two multilocks over the same paths never wait for
 * each other, one deadline covers all of them, and the result is all or nothing.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules; owners as in
 * clave/async/mutex.h, reentrant for each. The blocking form is clave/multilock.h. */
#ifndef CLAVE_ASYNC_MULTILOCK_H
#define CLAVE_ASYNC_MULTILOCK_H

#include "clave/async/rwlock.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_multilock clave_async_multilock; /* opaque */

typedef enum clave_multilock_kind {
    CLAVE_MULTILOCK_MUTEX,
    CLAVE_MULTILOCK_READ, /* a side of a clave_async_rwlock on that path */
    CLAVE_MULTILOCK_WRITE,
} clave_multilock_kind;

typedef struct clave_multilock_part {
    const char *path;
    clave_multilock_kind kind;
} clave_multilock_part;

/* One of the locks of a hold was lost; the others are still held. `path` and `why` as of
 * CLAVE_MUTEX_LOST. */
typedef struct clave_multilock_event {
    uint64_t owner;
    const char *path;
    clave_err why;
} clave_multilock_event;
typedef void clave_multilock_event_cb(clave_async_multilock *ml, const clave_multilock_event *ev,
                                      void *arg);

typedef struct clave_multilock_options {
    size_t size;                        /* CLAVE_MULTILOCK_OPTIONS_INIT sets it: clave/options.h */
    const clave_mutex_options *each;    /* of every lock, its event callback aside; may be NULL */
    clave_multilock_event_cb *event_cb; /* may be NULL */
    void *event_arg;
} clave_multilock_options;
#define CLAVE_MULTILOCK_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_multilock_options)

/* Makes a multilock of `n` parts; does not contact the server. On CLAVE_OK *out belongs to the
 * caller, who frees it with clave_async_multilock_free; on an error it is NULL. `parts` is copied;
 * `o` may be NULL. EINVAL: no parts, a path given twice, an unknown kind, or an option out of
 * range. EPATH: a path is not valid. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_multilock_new(clave_async_multilock **out, clave_async_client *c,
                                                 const clave_multilock_part *parts, size_t n,
                                                 const clave_multilock_options *o);
/* clave_async_mutex_free for every lock. NULL is ignored. */
CLAVE_EXPORT void clave_async_multilock_free(clave_async_multilock *ml);

/* `failed`: the path of the lock that was not acquired or not released; NULL with CLAVE_OK and
 * ECANCELED. Valid until clave_async_multilock_free. */
typedef void clave_async_multilock_cb(clave_async_multilock *ml, uint64_t owner, clave_err err,
                                      const char *failed, void *arg);

/* Acquires all locks, in the order of their paths; deadline, cb and errors are as in
 * clave_async_mutex_acquire. After an error this call holds none. If a lock is lost while the
 * others are still being acquired, the whole acquire starts again, within the deadline. */
CLAVE_METHOD clave_err clave_async_multilock_acquire(clave_async_multilock *ml, uint64_t owner,
                                                     int64_t deadline, clave_async_multilock_cb *cb,
                                                     void *arg);
/* Ends a pending acquire: its callback runs with ECANCELED, later. ENOTHELD: none is pending. */
CLAVE_METHOD clave_err clave_async_multilock_cancel(clave_async_multilock *ml, uint64_t owner);
/* Releases one hold of each lock, in reverse order, continuing after errors. cb (may be NULL) runs
 * when the nodes of the last hold are all gone, with the first error (ELOST, EMAXHOLD and ESILENT
 * included) and its path; without cb that error is the return value. ENOTHELD: this owner holds
 * nothing. ENOMEM, with cb: nothing was released. */
CLAVE_METHOD clave_err clave_async_multilock_release(clave_async_multilock *ml, uint64_t owner,
                                                     clave_async_multilock_cb *cb, void *arg);

/* The lock on `path`, for its grant and its deadlock text; do not free, acquire or release it. All
 * locks are held as long as every one of their grants is valid, and clave_async_grant_multi writes
 * under all of them. NULL: no part has this path. Valid until clave_async_multilock_free. */
CLAVE_METHOD clave_async_mutex *clave_async_multilock_at(const clave_async_multilock *ml,
                                                         const char *path);

#ifdef __cplusplus
}
#endif
#endif
