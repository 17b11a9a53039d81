/* async/lock_delay.h - a pause after a holder that was lost: Consul's and Chubby's lock-delay.
 *
 * A process that has lost a lock may not know it yet, and one of its writes may still be on its way
 * to a service that cannot check tokens. With a delay, the next holder waits first, so that a late
 * write arrives before its work and not in the middle of it.
 *
 * The holder creates a mark, a node of its own, and deletes it before the release. A mark that
 * exists at the next grant was left by a holder that lost the lock, and the delay begins: it is
 * measured from this grant, which is after the loss, by the new holder's own clock. The lock is
 * held during the delay, so all clients wait, whatever library they use. A holder that is lost
 * during the delay leaves the mark, and the next one begins the delay again.
 *
 * Only holders that use this recipe leave marks and wait: a holder with Curator, kazoo, or clave
 * without this leaves no mark when it is lost, and begins at once. It costs two requests at the
 * beginning and one at the end. Each write is one transaction with a check of the lock node.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. */
#ifndef CLAVE_ASYNC_LOCK_DELAY_H
#define CLAVE_ASYNC_LOCK_DELAY_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_delay clave_async_delay; /* opaque */

typedef void clave_async_delay_cb(clave_async_delay *d, clave_err err, void *arg);
/* The previous holder lost the lock, and the delay begins. `who` is the identity in its mark; valid
 * during the call only. */
typedef void clave_delay_event_cb(clave_async_delay *d, const clave_identity *who, int64_t delay_ms,
                                  void *arg);

typedef struct clave_delay_options {
    size_t size;           /* CLAVE_DELAY_OPTIONS_INIT sets it: clave/options.h */
    const char *path;      /* the mark's node: the same for all users of this lock, not below
                              its path; missing parents are created; copied */
    int64_t delay_ms;      /* 0: only leave the mark, for others */
    const clave_acl *acls; /* of the mark; NULL: open; copied */
    size_t nacls;
    const clave_identity *identity; /* of this holder, for others to see; copied; may be NULL */
    clave_delay_event_cb *event_cb; /* may be NULL */
    void *event_arg;
} clave_delay_options;
#define CLAVE_DELAY_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_delay_options)

/* Call it with the grant (of a mutex, the write side of a read-write lock or a latch) and before
 * the work. On CLAVE_OK *out belongs to the caller, who frees it with clave_async_delay_free; on an
 * error it is NULL. cb runs once, later: CLAVE_OK: begin the work. ELOST: the lock is gone (at
 * once, if that is known). ENOAUTH, EINVALIDACL, ETOOBIG: the server refused the mark. ECONNLOSS
 * and others of its class: it gave up after 16 attempts. ENOMEM. ECLOSED. At once: EPATH: the
 * mark's path is not valid. EINVAL: the options. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_delay_begin(clave_async_delay **out,
                                               const clave_async_grant *grant,
                                               const clave_delay_options *o,
                                               clave_async_delay_cb *cb, void *arg);
/* The work is over: deletes the mark. Release the lock afterwards; there is no need to wait for cb,
 * since a session's requests are executed in order. cb (may be NULL) runs once, later: CLAVE_OK.
 * ELOST: the lock is gone, and the mark remains. ECONNLOSS and others of its class: an answer was
 * lost, and the mark may remain. Others as above. At once: EINVAL: no delay has begun, or it was
 * already ended. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_delay_end(clave_async_delay *d, clave_async_delay_cb *cb,
                                             void *arg);
/* Frees it; no callback follows, and a delete that was sent is not undone. Without
 * clave_async_delay_end the mark remains. NULL is ignored. */
CLAVE_EXPORT void clave_async_delay_free(clave_async_delay *d);

#ifdef __cplusplus
}
#endif
#endif
