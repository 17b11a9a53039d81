/* once.h - a job that several processes want to run and only one of them runs, blocking, for
 * threads. The asynchronous form, which explains what counts as done and by which clock, is
 * clave/async/once.h. The job runs under a grant (clave/grant.h). Curator has no such recipe.
 *
 *     const clave_once_options o = {
 *         .size = sizeof o, .path = "/report-once", .period_ms = HOUR};
 *     if (clave_once_begin(&once, grant, &o, 5000, NULL) == CLAVE_OK)
 *         err = clave_once_end(once, make_report(), 5000);
 *     clave_mutex_release(mutex);
 *
 * Any thread may call anything here, one thread at a time for each once; on the loop's thread (in a
 * callback) what waits returns ELOOPTHREAD. timeout_ms is in milliseconds; negative: no limit. */
#ifndef CLAVE_ONCE_H
#define CLAVE_ONCE_H

#include "clave/async/once.h"
#include "clave/grant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_once clave_once; /* opaque: one run of a job */

/* Asks whether the job has to be run now, and if so records that it has started. On CLAVE_OK *out
 * belongs to the caller, for clave_once_end or clave_once_free; on an error it is NULL. `former`
 * (may be NULL) receives the previous run, except for its identity, with CLAVE_OK and EDONE. The
 * once may outlive the grant and the session: see clave_client_close. EDONE: no, another process
 * has run it. ELOST: the grant is over. ETIMEDOUT: no answer in time; the job may be recorded as
 * started. EINVAL: the options. EPATH: the record's path is not valid. ENOAUTH, EINVALIDACL,
 * ETOOBIG: the server refused the record. ECONNLOSS and others of its class: it gave up after 16
 * attempts. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_once_begin(clave_once **out, clave_grant *grant,
                                        const clave_once_options *o, int64_t timeout_ms,
                                        clave_once_record *former);
/* Records how the run ended, while the lock is still held, and frees the once whatever it returns.
 * ELOST: the lock is gone, and the run stays recorded as started. ENONODE: somebody removed the
 * record. ETIMEDOUT, ECONNLOSS and others of that class: the record may have been written. ENOAUTH,
 * ENOMEM, ECLOSED. */
CLAVE_METHOD clave_err clave_once_end(clave_once *once, bool succeeded, int64_t timeout_ms);
/* Frees the once without recording an end: the run stays recorded as started. NULL is ignored. */
CLAVE_EXPORT void clave_once_free(clave_once *once);

#ifdef __cplusplus
}
#endif
#endif
