/* permit.h - the semaphore, blocking, for threads. The asynchronous form is clave/semaphore.h,
 * where the leases, limits and errors are described; both stand in the same queue.
 *
 * A permit is a lease in the hands of a thread, any thread: whoever has the handle may give it
 * back. */
#ifndef CLAVE_PERMIT_H
#define CLAVE_PERMIT_H

#include "clave/semaphore.h"
#include "clave/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_permits clave_permits; /* opaque: the semaphore */
typedef struct clave_permit clave_permit;   /* opaque: one lease of it */

/* As clave_semaphore_new; the event callback runs on the loop's thread. It may outlive the
 * session: see clave_session_close. */
CLAVE_EXPORT clave_err clave_permits_new(clave_permits **out, clave_session *s, const char *path,
                                         const clave_semaphore_options *o);
/* Gives all permits back, those that threads still have included: their handles are gone. Nobody
 * may be waiting. */
CLAVE_EXPORT void clave_permits_free(clave_permits *p);

/* n permits, all or none, into out[0..n). timeout_ms: 0 only if they are free now, negative for
 * ever. EBUSY, ECANCELED, EDEADLOCK, EUNREACHABLE (never connected within the time), EINVAL,
 * ENOAUTH ... */
CLAVE_EXPORT clave_err clave_permits_acquire(clave_permits *p, size_t n, int64_t timeout_ms,
                                             clave_permit **out);
/* As clave_lock_deadlock. Until it is given back, a permit counts as the acquiring thread's. */
CLAVE_EXPORT const char *clave_permits_deadlock(clave_permits *p, char *buf, size_t cap);
/* Makes every acquire that waits in another thread return ECANCELED. */
CLAVE_EXPORT void clave_permits_cancel(clave_permits *p);

/* The handle is gone, also with ECLOSED. Does not wait for the server; as clave_lock_release
 * otherwise. */
CLAVE_EXPORT clave_err clave_permit_release(clave_permit *q);
/* The same, and returns when the server has confirmed it. ETIMEDOUT: given back all the same. */
CLAVE_EXPORT clave_err clave_permit_release_confirmed(clave_permit *q, int64_t timeout_ms);

/* From memory, never waiting on the network: true while it is held and will be for `ms` more. */
CLAVE_EXPORT bool clave_permit_valid_for(clave_permit *q, int64_t ms);
CLAVE_EXPORT int64_t clave_permit_token(clave_permit *q); /* 0: lost */
/* A guarded write, as clave_lock_multi. */
CLAVE_EXPORT clave_err clave_permit_multi(clave_permit *q, const clave_op *ops, size_t nops,
                                          int64_t timeout_ms, clave_reply **out);

#ifdef __cplusplus
}
#endif
#endif
