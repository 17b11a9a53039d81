/* async/rwlock.h - a fair read-write lock across processes, with the layout of Curator's
 * InterProcessReadWriteLock: <path>/_c_<uuid>-__READ__<10 digits> and ...-__WRIT__..., in one
 * queue. A write waits for everything before it, a read for the writes before it.
 *
 * Its two sides are mutexes: acquire, cancel, release, grant, valid_for, guarded writes and
 * events are those of clave/async/mutex.h, with the same owners on both sides. Between them:
 *
 *   downgrade  a read acquired by the owner of the write is granted at once and takes the
 *              write's place in the queue: release the write after it, and no writer comes
 *              between. If the write is lost before the read stands, the read queues as any
 *              other does.
 *   upgrade    a write asked for by an owner of a read, without the write, would wait for
 *              itself for ever (so it does in Curator): EUPGRADE, at once. */
#ifndef CLAVE_ASYNC_RWLOCK_H
#define CLAVE_ASYNC_RWLOCK_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_rwlock clave_async_rwlock; /* opaque */

/* `o` (may be NULL) is for both sides; its event callback is told the side. `strict` matters
 * to reads: writes list at every hand-over anyway. EPATH, EINVAL, ENOMEM. */
CLAVE_EXPORT clave_err clave_async_rwlock_new(clave_async_rwlock **out, clave_async_client *c,
                                              const char *path, const clave_mutex_options *o);
/* As clave_async_mutex_free, for both sides. NULL is ignored. */
CLAVE_EXPORT void clave_async_rwlock_free(clave_async_rwlock *rw);

/* The sides; they belong to `rw`. In their events `ahead` counts what they wait for: for a
 * read the writes before it. Beyond clave/async/mutex.h, at once: of a read, EINVAL while the owner
 * waits for the write, and ELOST when its write was lost and is not yet given back; of a
 * write, EUPGRADE while the owner holds or waits for a read without holding the write. */
CLAVE_EXPORT clave_async_mutex *clave_async_rwlock_read(clave_async_rwlock *rw);
CLAVE_EXPORT clave_async_mutex *clave_async_rwlock_write(clave_async_rwlock *rw);

typedef enum clave_rwlock_kind {
    CLAVE_RWLOCK_READ = 1,
    CLAVE_RWLOCK_WRITE = 2,
    CLAVE_RWLOCK_BOTH = 3,
} clave_rwlock_kind;
/* Who stands in the queue, as clave_async_participants. */
CLAVE_EXPORT clave_err clave_async_rwlock_participants(clave_async_client *c, const char *path,
                                                       clave_rwlock_kind kind,
                                                       clave_async_participants_cb *cb, void *arg);

#ifdef __cplusplus
}
#endif
#endif
