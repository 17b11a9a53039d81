/* deadlock.h - deadlocks across processes, looked for by a call that waits. What counts as one, and
 * how it is told, stands in clave/async/deadlock.h, which this includes. */
#ifndef CLAVE_DEADLOCK_H
#define CLAVE_DEADLOCK_H

#include "clave/async/deadlock.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_deadlocks {
    clave_deadlock *list;
    size_t n;
} clave_deadlocks;
/* As clave_async_deadlocks_find, for any thread but the loop's own. *out is the caller's, to be
 * given to clave_deadlocks_free; NULL with any error. ETIMEDOUT; ELOOPTHREAD. */
CLAVE_EXPORT clave_err clave_deadlocks_find(clave_client *s, const char *const *roots,
                                            size_t nroots, int64_t timeout_ms,
                                            clave_deadlocks **out);
/* NULL is ignored. */
CLAVE_EXPORT void clave_deadlocks_free(clave_deadlocks *d);

#ifdef __cplusplus
}
#endif
#endif
