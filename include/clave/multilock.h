/* multilock.h - several locks as one, blocking, for threads. The asynchronous form, where order,
 * parts and errors are described, is clave/async/multilock.h; both keep the same order.
 *
 * The owner is the calling thread, as in clave/mutex.h. */
#ifndef CLAVE_MULTILOCK_H
#define CLAVE_MULTILOCK_H

#include "clave/async/multilock.h"
#include "clave/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_multilock clave_multilock; /* opaque */

/* `each` is for every lock (may be NULL), as for clave_mutex_new. EINVAL: no parts, or a path
 * twice. EPATH, ENOMEM. It may outlive the session: see clave_client_close. */
CLAVE_EXPORT clave_err clave_multilock_new(clave_multilock **out, clave_client *s,
                                           const clave_multilock_part *parts, size_t n,
                                           const clave_mutex_options *each);
/* As clave_mutex_free, for all of them. NULL is ignored. */
CLAVE_EXPORT void clave_multilock_free(clave_multilock *l);

/* All of them within one time, or none. `failed` (may be NULL): the path of the one that was not
 * acquired; NULL with CLAVE_OK; valid as long as the set. One that is lost while others are
 * waited for sends it back to the beginning. Errors as of clave_mutex_acquire. */
CLAVE_EXPORT clave_err clave_multilock_acquire(clave_multilock *l, int64_t timeout_ms,
                                               const char **failed);
/* One hold of each, in the reverse order, whatever becomes of any. The first error, and its
 * path. */
CLAVE_EXPORT clave_err clave_multilock_release(clave_multilock *l, const char **failed);

/* true while the calling thread holds all of them and will for `ms` more. From memory. */
CLAVE_EXPORT bool clave_multilock_valid_for(clave_multilock *l, int64_t ms);
/* The lock of that path, for its token and guarded writes; not to be freed, acquired or released.
 * NULL: none has this path. */
CLAVE_EXPORT clave_mutex *clave_multilock_at(const clave_multilock *l, const char *path);

#ifdef __cplusplus
}
#endif
#endif
