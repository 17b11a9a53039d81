/* async/rwlock.h - a fair read-write lock across processes, with the layout of Curator's
 * InterProcessReadWriteLock: <path>/_c_<uuid>-__READ__<10 digits> and ...-__WRIT__..., in one
 * queue. A write waits for everything before it, a read for the writes before it.
 *
 * Its two sides are mutexes: acquire, cancel, release, grant and events are those of
 * clave/async/mutex.h, with the same owners on both sides. Between the sides:
 *
 *   downgrade  a read acquired by the owner of the write is granted at once and takes the write's
 *              place in the queue: release the write after it, and no writer comes between. If the
 *              write is lost before the read's node exists, the read queues like any other.
 *   upgrade    a write requested by an owner of a read that does not hold the write would wait for
 *              itself for ever (as it does in Curator): EUPGRADE, at once.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. The blocking form
 * is clave/rwlock.h. */
#ifndef CLAVE_ASYNC_RWLOCK_H
#define CLAVE_ASYNC_RWLOCK_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_rwlock clave_async_rwlock; /* opaque */

/* Makes both sides; does not contact the server. On CLAVE_OK *out belongs to the caller, who frees
 * it with clave_async_rwlock_free; on an error it is NULL. `o` (may be NULL) applies to both sides;
 * its event callback receives the side. `strict` matters to reads only: writes list at every
 * hand-over anyway. EPATH: the path is not valid. EINVAL: an option is out of range. ENOMEM.
 * ECLOSED. */
CLAVE_MAKING clave_err clave_async_rwlock_new(clave_async_rwlock **out, clave_async_client *c,
                                              const char *path, const clave_mutex_options *o);
/* clave_async_mutex_free for both sides. NULL is ignored. */
CLAVE_EXPORT void clave_async_rwlock_free(clave_async_rwlock *rw);

/* The read side; it belongs to `rw`. In its events `ahead` counts the writes before it. Its acquire
 * can also fail at once: EINVAL: the owner is waiting for the write. ELOST: the owner's write was
 * lost and has not been released yet. */
CLAVE_METHOD clave_async_mutex *clave_async_rwlock_read(clave_async_rwlock *rw);
/* The write side; it belongs to `rw`. In its events `ahead` counts everything before it. Its
 * acquire can also fail at once: EUPGRADE: the owner holds or waits for a read without holding the
 * write. A try looks first, and creates a node, which readers would wait for, only if nobody is
 * there; that costs one more round trip when it is granted. */
CLAVE_METHOD clave_async_mutex *clave_async_rwlock_write(clave_async_rwlock *rw);

typedef enum clave_rwlock_kind {
    CLAVE_RWLOCK_READ = 1,
    CLAVE_RWLOCK_WRITE = 2,
    CLAVE_RWLOCK_BOTH = 3,
} clave_rwlock_kind;
/* Lists the readers, the writers or both, in queue order, as clave_async_participants. */
CLAVE_METHOD clave_err clave_async_rwlock_participants(clave_async_client *c, const char *path,
                                                       clave_rwlock_kind kind,
                                                       clave_async_participants_cb *cb, void *arg);

#ifdef __cplusplus
}
#endif
#endif
