/* once.h - a job that several processes start and one of them runs, for threads:
 * clave/async/once.h, which says what counts and by whose clock, under a lock (clave/mutex.h) that
 * the calling thread holds.
 *
 *     const clave_once_options o = {.size = sizeof o, .path = "/report-once", .period_ms = HOUR};
 *     if (clave_once_begin(&job, lock, &o, 5000, NULL) == CLAVE_OK)
 *         err = clave_once_end(job, make_report(), 5000);
 *     clave_mutex_release(lock);
 */
#ifndef CLAVE_ONCE_H
#define CLAVE_ONCE_H

#include "clave/async/once.h"
#include "clave/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_once clave_once; /* opaque */

/* May it be run? On CLAVE_OK *out is the caller's, for clave_once_end or _free. EDONE: no. `former`
 * (may be NULL) is filled with both, but for the identity.
 * ENOTHELD: this thread does not hold the lock; ELOST: not any more; ETIMEDOUT: no answer in time,
 * and perhaps it is on record as started; and as clave_async_once_begin. It may outlive the lock
 * and the session: see clave_client_close. */
CLAVE_EXPORT clave_err clave_once_begin(clave_once **out, clave_mutex *l,
                                        const clave_once_options *o, int64_t timeout_ms,
                                        clave_once_record *former);
/* How it went, on record, while the lock is still held; frees the job whatever it returns. ELOST:
 * the lock is gone, and the job stays on record as started; ETIMEDOUT: no answer in time; and as
 * clave_async_once_end. Any thread. */
CLAVE_EXPORT clave_err clave_once_end(clave_once *j, bool succeeded, int64_t timeout_ms);
/* Says nothing of how it went. NULL is ignored. */
CLAVE_EXPORT void clave_once_free(clave_once *j);

#ifdef __cplusplus
}
#endif
#endif
