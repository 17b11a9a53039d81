/* semaphore.h - the semaphore, blocking, for threads. The asynchronous form is
 * clave/async/semaphore.h, where the leases, limits and errors are described; both stand in the
 * same queue.
 *
 * A permit is a lease in the hands of a thread, any thread: whoever has the handle may give it
 * back. */
#ifndef CLAVE_SEMAPHORE_H
#define CLAVE_SEMAPHORE_H

#include "clave/async/semaphore.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_semaphore clave_semaphore; /* opaque: the semaphore */
typedef struct clave_lease clave_lease;         /* opaque: one lease of it */

/* As clave_async_semaphore_new; the event callback runs on the loop's thread. It may outlive the
 * session: see clave_client_close. */
CLAVE_EXPORT clave_err clave_semaphore_new(clave_semaphore **out, clave_client *s, const char *path,
                                           const clave_semaphore_options *o);
/* Gives all permits back, those that threads still have included: their handles are gone. Nobody
 * may be waiting. */
CLAVE_EXPORT void clave_semaphore_free(clave_semaphore *p);

/* n permits, all or none, into out[0..n). timeout_ms: 0 only if they are free now, negative for
 * ever. EBUSY, ECANCELED, EDEADLOCK, EUNREACHABLE (never connected within the time), EINVAL,
 * ENOAUTH ... */
CLAVE_EXPORT clave_err clave_semaphore_acquire(clave_semaphore *p, size_t n, int64_t timeout_ms,
                                               clave_lease **out);
/* As clave_mutex_deadlock. Until it is given back, a permit counts as the acquiring thread's. */
CLAVE_EXPORT const char *clave_semaphore_deadlock(clave_semaphore *p, char *buf, size_t cap);
/* Makes every acquire that waits in another thread return ECANCELED. */
CLAVE_EXPORT void clave_semaphore_cancel(clave_semaphore *p);

/* The handle is gone, also with ECLOSED. Does not wait for the server; as clave_mutex_release
 * otherwise. */
CLAVE_EXPORT clave_err clave_lease_release(clave_lease *q);
/* The same, and returns when the server has confirmed it. ETIMEDOUT: given back all the same. */
CLAVE_EXPORT clave_err clave_lease_release_confirmed(clave_lease *q, int64_t timeout_ms);

/* From memory, never waiting on the network: true while it is held and will be for `ms` more. */
CLAVE_EXPORT bool clave_lease_valid_for(clave_lease *q, int64_t ms);
CLAVE_EXPORT int64_t clave_lease_token(clave_lease *q); /* 0: lost */
/* A guarded write, as clave_mutex_multi. */
CLAVE_EXPORT clave_err clave_lease_multi(clave_lease *q, const clave_op *ops, size_t nops,
                                         int64_t timeout_ms, clave_reply **out);

#ifdef __cplusplus
}
#endif
#endif
