/* semaphore.h - the semaphore, blocking, for threads: Curator's InterProcessSemaphoreV2. The
 * asynchronous form, which describes the leases, the limits and the options, is
 * clave/async/semaphore.h; both forms share one queue.
 *
 * Owners   a lease is not bound to a thread: any thread that has it may release it.
 * Threads  any thread may call anything here. On the loop's thread (in a callback) the calls that
 *          wait return ELOOPTHREAD.
 * Times    timeout_ms is in milliseconds from now; negative: no limit. */
#ifndef CLAVE_SEMAPHORE_H
#define CLAVE_SEMAPHORE_H

#include "clave/async/semaphore.h"
#include "clave/grant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_semaphore clave_semaphore; /* opaque: the semaphore */
typedef struct clave_lease clave_lease;         /* opaque: one lease of it */

/* Makes a semaphore on `path`. On CLAVE_OK *out belongs to the caller, who frees it with
 * clave_semaphore_free; on an error it is NULL. `o` is as for clave_async_semaphore_new; its event
 * callback runs on the loop's thread. The semaphore may outlive the session: see
 * clave_client_close.
 * EPATH: the path is not valid. EINVAL: a limit of 0 that is not shared, or an option out of range.
 * ENOMEM. ECLOSED: the session has ended. */
CLAVE_MAKING clave_err clave_semaphore_new(clave_semaphore **out, clave_client *client,
                                           const char *path, const clave_semaphore_options *o);
/* Releases all leases, including those that threads still have, whose handles become invalid, and
 * frees the semaphore. No thread may be waiting in it. NULL is ignored. */
CLAVE_EXPORT void clave_semaphore_free(clave_semaphore *s);

/* Acquires n leases, all or none, into out[0..n); each is the caller's to release. timeout_ms 0:
 * only if n leases are free now, not counting those that others are waiting for; on EBUSY
 * clave_client_errmsg says how many are held and how many wait. On any error out[0..n) is NULL.
 * EBUSY, EUNREACHABLE: not acquired in time, with the same distinction as in clave_mutex_acquire.
 * ECANCELED: clave_semaphore_cancel. EDEADLOCK: see detect_deadlocks_ms in clave_mutex_options.
 * EINVAL: n is 0 or more than a limit that is not shared. ENOAUTH and other final errors: the
 * server refused a node. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_semaphore_acquire(clave_semaphore *s, size_t n, int64_t timeout_ms,
                                               clave_lease **out);
/* Copies the text of the latest deadlock into buf, as clave_mutex_deadlock. Until it is released, a
 * lease counts as held by the thread that acquired it. */
CLAVE_METHOD const char *clave_semaphore_deadlock(clave_semaphore *s, char *buf, size_t cap);
/* Makes every acquire that waits in another thread return ECANCELED. Does not wait; also legal in
 * callbacks. */
CLAVE_METHOD void clave_semaphore_cancel(clave_semaphore *s);

/* Releases a lease and does not wait for the server, as clave_mutex_release. The handle is invalid
 * afterwards, whatever is returned. ELOST: the lease had been lost; EMAXHOLD: its maximum time had
 * passed; ESILENT: its work was silent for too long; in all three it is released all the same.
 * ECLOSED: the session has ended. */
CLAVE_METHOD clave_err clave_lease_release(clave_lease *l);
/* The same, but returns when the server has confirmed it. ETIMEDOUT: released, and the delete
 * continues in the background. */
CLAVE_METHOD clave_err clave_lease_release_confirmed(clave_lease *l, int64_t timeout_ms);

/* The grant of a lease, as clave_mutex_grant. ELOST: the lease was lost. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_lease_grant(clave_lease *l, clave_grant **out);

#ifdef __cplusplus
}
#endif
#endif
