/* async/lock_delay.h - a pause after a holder that was lost: Consul's and Chubby's lock-delay.
 *
 * Who loses a lock may not know it yet: a write of his may still be on its way to somewhere that
 * cannot check tokens. With a delay the next holder waits first, so that what is late arrives
 * before and not during its work.
 *
 * Who holds the lock leaves a mark, a node of its own, and takes it away before the release. A
 * mark that stands at the next grant is that of a holder that was lost, and the delay begins: it
 * is counted from this grant, which is behind the loss, by the new holder's own clock. The lock is
 * held meanwhile, so everybody waits, whatever client it is. A holder that is lost in the delay
 * leaves the mark, and the next begins anew.
 *
 * Only those who take part leave marks and wait: a holder with Curator, kazoo, or without this
 * leaves nothing behind when it is lost, and begins at once. It costs two requests at the beginning
 * and one at the end. Each write is one transaction with a check of the lock node.
 *
 * On the client's thread, under its callback rules. */
#ifndef CLAVE_ASYNC_LOCK_DELAY_H
#define CLAVE_ASYNC_LOCK_DELAY_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_delay clave_async_delay; /* opaque */

typedef void clave_async_delay_cb(clave_async_delay *d, clave_err err, void *arg);
/* The holder before was lost, and the delay begins. `who`: as it says of itself. */
typedef void clave_delay_event_cb(clave_async_delay *d, const clave_identity *who, int64_t delay_ms,
                                  void *arg);

typedef struct clave_delay_options {
    size_t size;           /* CLAVE_DELAY_OPTIONS_INIT sets it: clave/options.h */
    const char *path;      /* the mark's node: the same for all who use this lock, not below its
                              path; missing parents are made; copied */
    int64_t delay_ms;      /* 0: only the mark is left, for others */
    const clave_acl *acls; /* of the mark; NULL: open; copied */
    size_t nacls;
    const clave_identity *identity; /* of this holder, for others to see; copied; may be NULL */
    clave_delay_event_cb *event_cb; /* may be NULL */
    void *event_arg;
} clave_delay_options;
#define CLAVE_DELAY_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_delay_options)

/* After the grant (copied; of a mutex, the write side of a read-write lock or a latch) and before
 * the work.
 * cb runs once: CLAVE_OK: begin; ELOST: the lock is gone; ENOAUTH, EINVALIDACL, ETOOBIG, ENOMEM;
 * ECONNLOSS and others of its class: given up after 16 attempts; ECLOSED.
 * At once: EPATH, EINVAL, ENOMEM, ECLOSED. */
CLAVE_EXPORT clave_err clave_async_delay_begin(clave_async_delay **out, clave_async_client *c,
                                               const clave_grant *grant,
                                               const clave_delay_options *o,
                                               clave_async_delay_cb *cb, void *arg);
/* The work is over: takes the mark away; then release the lock, without waiting if you like (the
 * requests of a session are done in order). `cb` may be NULL; else it runs once: CLAVE_OK; ELOST:
 * the lock is gone, and the mark stands; ECONNLOSS and others of its class: an answer was lost, and
 * the mark may stand or not; others as above.
 * At once: EINVAL: nothing has begun, or its end was told; ENOMEM; ECLOSED. */
CLAVE_EXPORT clave_err clave_async_delay_end(clave_async_delay *d, clave_async_delay_cb *cb,
                                             void *arg);
/* No callback after this; a removal that is under way goes on. Without clave_async_delay_end the
 * mark stands. NULL is ignored. */
CLAVE_EXPORT void clave_async_delay_free(clave_async_delay *d);

#ifdef __cplusplus
}
#endif
#endif
