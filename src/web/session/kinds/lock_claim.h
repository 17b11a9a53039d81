/* lock_claim.h - a claim on a mutex: a lock, or a side of a read-write lock. */
#ifndef CLAVE_WEB_SESSION_KINDS_LOCK_CLAIM_H
#define CLAVE_WEB_SESSION_KINDS_LOCK_CLAIM_H

#include "clave/async/mutex.h"
#include "web/session/claim.h"

struct lock_claim {
    struct claim claim; /* first */
    clave_async_mutex *mutex;
};

/* NULL: the terms are such as a mutex can have. */
const char *clave__lock_claim_misfit(const struct claim_terms *t);
clave_mutex_options clave__lock_claim_options(struct claim *c);
/* `mutex` is set: takes its place there. */
clave_err clave__lock_claim_acquire(struct lock_claim *l);
/* Of struct claim_kind. */
bool clave__lock_claim_grant(const struct claim *c, struct grant_facts *out);
clave_err clave__lock_claim_release(struct claim *c);
clave_err clave__lock_claim_describe(struct claim *c, const clave_identity *said,
                                     queue_described *done, void *arg, size_t *n);

#endif
