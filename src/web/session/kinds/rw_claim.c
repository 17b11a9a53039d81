/* rw_claim.c - claims on the sides of a read-write lock, which are mutexes (lock_claim.h). */
#include "clave/async/rwlock.h"
#include "web/session/kinds/claim_kinds.h"
#include "web/session/kinds/lock_claim.h"

struct rw_claim {
    struct lock_claim side; /* first; its mutex belongs to `rwlock` */
    clave_async_rwlock *rwlock;
};

static struct rw_claim *rw_claim_of(struct claim *c)
{
    return LIST_ENTRY(c, struct rw_claim, side.claim);
}

/* Those who read at a time cannot share one mark. */
static const char *rw_claim_read_misfit(const struct claim_terms *t)
{
    return t->lock_delay_ms ? "\"lock_delay_ms\" is for lock, write and election"
                            : clave__lock_claim_misfit(t);
}

static clave_err rw_claim_begin(struct claim *c,
                                clave_async_mutex *(*side)(struct clave_async_rwlock *))
{
    struct rw_claim *rw = rw_claim_of(c);
    clave_mutex_options o = clave__lock_claim_options(c);
    clave_err err = clave_async_rwlock_new(&rw->rwlock, c->part.s->client, c->path, &o);
    if (err != CLAVE_OK)
        return err;
    rw->side.mutex = side(rw->rwlock);
    return clave__lock_claim_acquire(&rw->side);
}

static clave_err rw_claim_begin_read(struct claim *c)
{
    return rw_claim_begin(c, clave_async_rwlock_read);
}

static clave_err rw_claim_begin_write(struct claim *c)
{
    return rw_claim_begin(c, clave_async_rwlock_write);
}

static void rw_claim_drop(struct claim *c)
{
    struct rw_claim *rw = rw_claim_of(c);
    clave_async_rwlock *rwlock = rw->rwlock;
    rw->side.mutex = NULL;
    rw->rwlock = NULL;
    clave_async_rwlock_free(rwlock);
}

static clave_err rw_claim_holders(clave_async_client *client, const char *path,
                                  clave_async_participants_cb *cb, void *arg)
{
    return clave_async_rwlock_participants(client, path, CLAVE_RWLOCK_BOTH, cb, arg);
}

const struct claim_kind clave__read_claim = {
    .name = "read",
    .queue = QUEUE_READ,
    .size = sizeof(struct rw_claim),
    .misfit = rw_claim_read_misfit,
    .begin = rw_claim_begin_read,
    .grant = clave__lock_claim_grant,
    .release = clave__lock_claim_release,
    .drop = rw_claim_drop,
    .describe = clave__lock_claim_describe,
    .holders = rw_claim_holders,
};

const struct claim_kind clave__write_claim = {
    .name = "write",
    .queue = QUEUE_WRITE,
    .size = sizeof(struct rw_claim),
    .misfit = clave__lock_claim_misfit,
    .begin = rw_claim_begin_write,
    .grant = clave__lock_claim_grant,
    .release = clave__lock_claim_release,
    .drop = rw_claim_drop,
    .describe = clave__lock_claim_describe,
    .holders = rw_claim_holders,
};
