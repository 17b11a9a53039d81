/* async/multilock.h - several locks as one: Curator's InterProcessMultiLock, with an order of its
 * own, so that two of them over the same paths never wait for each other, one deadline for all,
 * and all or nothing.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules; owners as in
 * clave/async/mutex.h, reentrant for each. */
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

/* EINVAL: no parts, or a path twice. EPATH, ENOMEM. `o` may be NULL. */
CLAVE_EXPORT clave_err clave_async_multilock_new(clave_async_multilock **out, clave_async_client *c,
                                                 const clave_multilock_part *parts, size_t n,
                                                 const clave_multilock_options *o);
/* As clave_async_mutex_free, for all of them. NULL is ignored. */
CLAVE_EXPORT void clave_async_multilock_free(clave_async_multilock *ml);

/* `failed`: the path of the lock that was not acquired, or not given back; NULL with CLAVE_OK
 * and ECANCELED. Valid as long as ml. */
typedef void clave_async_multilock_cb(clave_async_multilock *ml, uint64_t owner, clave_err err,
                                      const char *failed, void *arg);

/* Acquires them all, in the order of their paths, as clave_async_mutex_acquire. With any error none
 * is held by this call. One that is lost while others are waited for sends it back to the
 * beginning, within the deadline. */
CLAVE_EXPORT clave_err clave_async_multilock_acquire(clave_async_multilock *ml, uint64_t owner,
                                                     int64_t deadline, clave_async_multilock_cb *cb,
                                                     void *arg);
CLAVE_EXPORT clave_err clave_async_multilock_cancel(clave_async_multilock *ml, uint64_t owner);
/* Gives one hold of each back, in the reverse order, whatever becomes of any. cb (may be NULL)
 * runs when the nodes of the last hold are all gone, with the first error met, ELOST and EMAXHOLD
 * included, and its path; without it that error is the return value. ENOTHELD. ENOMEM, with cb:
 * not given back. */
CLAVE_EXPORT clave_err clave_async_multilock_release(clave_async_multilock *ml, uint64_t owner,
                                                     clave_async_multilock_cb *cb, void *arg);

/* true when the owner holds all of them, and will for `ms` more after `now`. From memory. */
CLAVE_EXPORT bool clave_async_multilock_valid_for(const clave_async_multilock *ml, uint64_t owner,
                                                  int64_t now, int64_t ms);
/* The lock of that path, for its grant, its guarded writes and what it says of a deadlock; not to
 * be freed, acquired or released. NULL: none has this path. */
CLAVE_EXPORT clave_async_mutex *clave_async_multilock_at(const clave_async_multilock *ml,
                                                         const char *path);

#ifdef __cplusplus
}
#endif
#endif
