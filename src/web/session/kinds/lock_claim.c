/* lock_claim.c - see lock_claim.h. */
#include "web/session/kinds/lock_claim.h"

#include <assert.h>

#include "web/session/kinds/claim_kinds.h"

static struct lock_claim *lock_claim_of(struct claim *c)
{
    return LIST_ENTRY(c, struct lock_claim, claim);
}

const char *clave__lock_claim_misfit(const struct claim_terms *t)
{
    return clave__claim_no_semaphore(t);
}

static void lock_claim_on_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct claim *c = arg;
    (void)m;
    if (ev->kind == CLAVE_MUTEX_QUEUED)
        clave__claim_moved(c, ev->ahead, ev->left_over);
    else if (ev->kind == CLAVE_MUTEX_LOST)
        clave__claim_lost(c, ev->why);
    else if (ev->kind == CLAVE_MUTEX_ASKED)
        clave__claim_asked(c);
}

static void lock_claim_on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct claim *c = arg;
    (void)owner;
    if (!clave__claim_repaid(c) || lock_claim_of(c)->mutex != m)
        return; /* dropped: it was canceled */
    if (err == CLAVE_OK)
        clave__claim_granted(c);
    else
        clave__claim_failed(c, err);
}

clave_mutex_options clave__lock_claim_options(struct claim *c)
{
    return (clave_mutex_options){.size = sizeof(clave_mutex_options),
                                 .data = c->data,
                                 .len = c->len,
                                 .revocable = c->revocable,
                                 .max_hold_ms = c->max_hold_ms,
                                 .event_cb = lock_claim_on_event,
                                 .event_arg = c};
}

clave_err clave__lock_claim_acquire(struct lock_claim *l)
{
    assert(l->mutex);
    struct claim *c = &l->claim;
    clave__mutex_set_place(l->mutex, &c->place);
    return clave__claim_owe(c, clave_async_mutex_acquire(l->mutex, 0, clave__claim_deadline(c),
                                                         lock_claim_on_acquired, c));
}

static clave_err lock_claim_begin(struct claim *c)
{
    struct lock_claim *l = lock_claim_of(c);
    assert(!l->mutex);
    clave_mutex_options o = clave__lock_claim_options(c);
    clave_err err = clave_async_mutex_new(&l->mutex, c->part.s->client, c->path, &o);
    return err == CLAVE_OK ? clave__lock_claim_acquire(l) : err;
}

bool clave__lock_claim_grant(const struct claim *c, struct grant_facts *out)
{
    const clave_async_mutex *m = ((const struct lock_claim *)(const void *)c)->mutex;
    return clave__mutex_held(m, 0, out);
}

static void lock_claim_on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct claim *c = arg;
    (void)owner;
    if (clave__claim_repaid(c) && lock_claim_of(c)->mutex == m)
        clave__claim_left(c, err);
}

clave_err clave__lock_claim_release(struct claim *c)
{
    clave_async_mutex *m = lock_claim_of(c)->mutex;
    return clave__claim_owe(c, clave_async_mutex_release(m, 0, lock_claim_on_released, c));
}

clave_err clave__lock_claim_describe(struct claim *c, const clave_identity *said,
                                     queue_described *done, void *arg, size_t *n)
{
    return clave__mutex_describe(lock_claim_of(c)->mutex, 0, said, done, arg, n);
}

static void lock_claim_drop(struct claim *c)
{
    struct lock_claim *l = lock_claim_of(c);
    clave_async_mutex *m = l->mutex;
    l->mutex = NULL;
    clave_async_mutex_free(m);
}

const struct claim_kind clave__lock_claim = {
    .name = "lock",
    .size = sizeof(struct lock_claim),
    .queue = QUEUE_LOCK,
    .misfit = clave__lock_claim_misfit,
    .begin = lock_claim_begin,
    .grant = clave__lock_claim_grant,
    .release = clave__lock_claim_release,
    .drop = lock_claim_drop,
    .describe = clave__lock_claim_describe,
    .holders = clave_async_participants,
};
