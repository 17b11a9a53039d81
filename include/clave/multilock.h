/* multilock.h - several locks as one, blocking, for threads: Curator's InterProcessMultiLock. The
 * asynchronous form, which describes the order, the parts and the errors, is
 * clave/async/multilock.h; both forms keep the same order.
 *
 * Owner, threads and times are as in clave/mutex.h: the owner is the calling thread. */
#ifndef CLAVE_MULTILOCK_H
#define CLAVE_MULTILOCK_H

#include "clave/async/multilock.h"
#include "clave/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_multilock clave_multilock; /* opaque */

/* Makes a multilock of `n` parts; does not contact the server. On CLAVE_OK *out belongs to the
 * caller, who frees it with clave_multilock_free; on an error it is NULL. `parts` is copied. `each`
 * (may be NULL) are the options of every lock, as for clave_mutex_new. The multilock may outlive
 * the session: see clave_client_close. EINVAL: no parts, a path given twice, an unknown kind, or an
 * option out of range. EPATH: a path is not valid. ENOMEM. ECLOSED: the session has ended. */
CLAVE_MAKING clave_err clave_multilock_new(clave_multilock **out, clave_client *client,
                                           const clave_multilock_part *parts, size_t n,
                                           const clave_mutex_options *each);
/* clave_mutex_free for every lock. NULL is ignored. */
CLAVE_EXPORT void clave_multilock_free(clave_multilock *m);

/* Acquires all locks within one timeout, or none. `failed` (may be NULL) is set to the path of the
 * lock that was not acquired, or to NULL with CLAVE_OK; it is valid until clave_multilock_free. If
 * a lock is lost while the others are still being acquired, the whole acquire starts again. Errors
 * as clave_mutex_acquire. */
CLAVE_METHOD clave_err clave_multilock_acquire(clave_multilock *m, int64_t timeout_ms,
                                               const char **failed);
/* Releases one hold of each lock, in reverse order, continuing after errors. Does not wait for the
 * server. Returns the first error, one of those of clave_mutex_release, and sets `failed` (may be
 * NULL) to the path of that lock. */
CLAVE_METHOD clave_err clave_multilock_release(clave_multilock *m, const char **failed);

/* The lock on `path`, for its grant, its deadlock text, and to cancel a wait in it; do not free,
 * acquire or release it. All locks are held as long as every one of their grants is valid, and
 * clave_grant_multi writes under all of them. NULL: no part has this path. Valid until
 * clave_multilock_free. */
CLAVE_METHOD clave_mutex *clave_multilock_at(const clave_multilock *m, const char *path);

#ifdef __cplusplus
}
#endif
#endif
