/* semaphore.h - the semaphore, blocking, for threads: Curator's InterProcessSemaphoreV2. The
 * asynchronous form, which describes the leases, the limits and the options, is
 * clave/async/semaphore.h; both forms share one queue.
 *
 * Owners   a lease belongs to whoever has its handle: any thread may release it.
 * Threads  any thread may call anything here. On the loop's thread (in a callback) the calls that
 *          wait return ELOOPTHREAD.
 * Times    timeout_ms is in milliseconds from now; negative: no limit. */
#ifndef CLAVE_SEMAPHORE_H
#define CLAVE_SEMAPHORE_H

#include "clave/async/semaphore.h"
#include "clave/client.h"

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
/* Releases all leases, those that threads still have included, whose handles are then invalid, and
 * frees. No thread may be waiting in it. NULL is ignored. */
CLAVE_EXPORT void clave_semaphore_free(clave_semaphore *s);

/* Acquires n leases, all or none, into out[0..n); each is the caller's to release. timeout_ms 0:
 * only if they are free now. On any error out[0..n) is NULL.
 * EBUSY: not acquired in time. EUNREACHABLE: the same, and the session was never connected;
 * or a try without a connection: nobody knows who holds it.
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
 * passed; with both it is released all the same. ECLOSED: the session has ended. */
CLAVE_METHOD clave_err clave_lease_release(clave_lease *l);
/* The same, but returns when the server has confirmed it. ETIMEDOUT: released, and the delete
 * continues in the background. */
CLAVE_METHOD clave_err clave_lease_release_confirmed(clave_lease *l, int64_t timeout_ms);

/* True while the lease is held and certainly will be for `ms` more milliseconds. From memory: never
 * waits for the network. */
CLAVE_METHOD bool clave_lease_valid_for(clave_lease *l, int64_t ms);
/* The hold deadline: the time (clave_now(), in clave/uv.h) until which nobody else can have this
 * lease. INT64_MIN: it was lost. From memory. */
CLAVE_METHOD int64_t clave_lease_deadline(clave_lease *l);
/* The fencing token: the czxid of the lease's node. 0: it was lost. From memory. */
CLAVE_METHOD int64_t clave_lease_token(clave_lease *l);

/* ---- guarded writes: done only while the lease's node exists -------------------------------- */

/* Creates a node, as clave_create without options. `out` may be NULL; else *out is the caller's
 * (clave_reply_free). ELOST: the lease is gone, and nothing was done. ETIMEDOUT: no answer in time;
 * it may still be done. Others as clave_create. */
CLAVE_METHOD clave_err clave_lease_create(clave_lease *l, const char *path, const void *data,
                                          size_t len, clave_create_mode mode, int64_t timeout_ms,
                                          clave_reply **out);
/* Writes a node's data, as clave_set. ELOST and ETIMEDOUT as above. */
CLAVE_METHOD clave_err clave_lease_set(clave_lease *l, const char *path, const void *data,
                                       size_t len, int32_t version, int64_t timeout_ms);
/* Deletes a node, as clave_delete. ELOST and ETIMEDOUT as above. */
CLAVE_METHOD clave_err clave_lease_delete(clave_lease *l, const char *path, int32_t version,
                                          int64_t timeout_ms);
/* Does several operations in one transaction, as clave_multi; out's op_errs are those of `ops`.
 * ELOST and ETIMEDOUT as above. */
CLAVE_METHOD clave_err clave_lease_multi(clave_lease *l, const clave_op *ops, size_t nops,
                                         int64_t timeout_ms, clave_reply **out);

#ifdef __cplusplus
}
#endif
#endif
