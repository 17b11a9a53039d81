/* job.h - a job that several processes start and one of them runs, for threads: clave/once.h,
 * which says what counts and by whose clock, under a lock (clave/lock.h) that the calling thread
 * holds.
 *
 *     const clave_once_options o = {.size = sizeof o, .path = "/report-once", .period_ms = HOUR};
 *     if (clave_job_begin(&job, lock, &o, 5000, NULL) == CLAVE_OK)
 *         err = clave_job_end(job, make_report(), 5000);
 *     clave_lock_release(lock);
 */
#ifndef CLAVE_JOB_H
#define CLAVE_JOB_H

#include "clave/lock.h"
#include "clave/once.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_job clave_job; /* opaque */

/* May it be run? On CLAVE_OK *out is the caller's, for clave_job_end or _free. EDONE: no. `former`
 * (may be NULL) is filled with both, but for the identity.
 * ENOTHELD: this thread does not hold the lock; ELOST: not any more; ETIMEDOUT: no answer in time,
 * and perhaps it is on record as started; and as clave_once_begin. It may outlive the lock and
 * the session: see clave_session_close. */
CLAVE_EXPORT clave_err clave_job_begin(clave_job **out, clave_lock *l, const clave_once_options *o,
                                       int64_t timeout_ms, clave_once_record *former);
/* How it went, on record, while the lock is still held; frees the job whatever it returns. ELOST:
 * the lock is gone, and the job stays on record as started; ETIMEDOUT: no answer in time; and as
 * clave_once_end. Any thread. */
CLAVE_EXPORT clave_err clave_job_end(clave_job *j, bool succeeded, int64_t timeout_ms);
/* Says nothing of how it went. NULL is ignored. */
CLAVE_EXPORT void clave_job_free(clave_job *j);

#ifdef __cplusplus
}
#endif
#endif
