/* rwlock.h - the read-write lock, blocking, for threads: Curator's InterProcessReadWriteLock. The
 * asynchronous form, which explains downgrade and upgrade, is clave/async/rwlock.h; both forms
 * share one queue.
 *
 * Its two sides are mutexes: acquire, release, grant and events are those of clave/mutex.h, and so
 * is the thread rule. */
#ifndef CLAVE_RWLOCK_H
#define CLAVE_RWLOCK_H

#include "clave/async/rwlock.h"
#include "clave/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes both sides. On CLAVE_OK *read and *write belong to the caller, who frees each with
 * clave_mutex_free; on an error both are NULL. `reads` and `writes` (either may be NULL) are the
 * options of each side, as for clave_mutex_new. Does not contact the server.
 *
 * A thread that holds the write may also take the read, and then release the write: a downgrade. A
 * thread that holds or waits for the read alone is refused the write: EUPGRADE.
 *
 * EPATH: the path is not valid. EINVAL: an option is out of range. ENOMEM. ECLOSED: the session has
 * ended. */
CLAVE_METHOD clave_err clave_rwlock_new(clave_mutex **read, clave_mutex **write,
                                        clave_client *client, const char *path,
                                        const clave_mutex_options *reads,
                                        const clave_mutex_options *writes);

#ifdef __cplusplus
}
#endif
#endif
