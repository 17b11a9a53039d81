/* deadlock.h - finds deadlocks across processes, blocking, for threads. What counts as a deadlock
 * and how it is described: clave/async/deadlock.h, which this includes. Curator has nothing like
 * it.
 *
 * Any thread may call anything here; on the loop's thread (in a callback) what waits returns
 * ELOOPTHREAD. */
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
/* Searches the paths in `roots` and everything below them, for at most timeout_ms (negative: no
 * limit). On CLAVE_OK *out belongs to the caller (clave_deadlocks_free), and its n is 0 if there is
 * no deadlock; on an error it is NULL. EINVAL: no path. EPATH: a path is not valid. ETOOBIG: more
 * than 50000 nodes; clave_client_errmsg says where. ETIMEDOUT: not finished in time. ELOOPTHREAD.
 * ENOMEM. ECLOSED. Otherwise the error of a read. */
CLAVE_METHOD clave_err clave_deadlocks_find(clave_client *client, const char *const *roots,
                                            size_t nroots, int64_t timeout_ms,
                                            clave_deadlocks **out);
/* Frees a result and everything in it. NULL is ignored. */
CLAVE_EXPORT void clave_deadlocks_free(clave_deadlocks *d);

#ifdef __cplusplus
}
#endif
#endif
