/* claim_kinds.c - claims on the recipes: mutex, the sides of a read-write lock, semaphore, latch.
 * Called by claim.c through the table at the end. Invariant: each claim has recipe objects of its
 * own, so that one owner, 0, is enough. */
#include <string.h>

#include "clave/async/latch.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "recipe/election/latch_internal.h"
#include "recipe/lock/mutex_parts.h"
#include "recipe/semaphore/semaphore_internal.h"
#include "web/session/claim.h"

static int64_t claim_deadline(const struct claim *c)
{
    return c->trying ? CLAVE_TRY : CLAVE_NEVER;
}

/* ---- lock, read, write ----------------------------------------------------------------------- */

static void claim_on_mutex_event(clave_async_mutex *m, const clave_mutex_event *ev, void *arg)
{
    struct claim *c = arg;
    (void)m;
    if (ev->kind == CLAVE_MUTEX_QUEUED)
        clave__claim_moved(c, ev->ahead);
    else if (ev->kind == CLAVE_MUTEX_LOST)
        clave__claim_lost(c, ev->why);
    else if (ev->kind == CLAVE_MUTEX_ASKED)
        clave__claim_asked(c);
}

static void claim_on_acquired(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct claim *c = arg;
    (void)owner;
    if (!clave__claim_repaid(c) || c->mutex != m)
        return; /* dropped: it was canceled */
    if (err == CLAVE_OK)
        clave__claim_granted(c);
    else
        clave__claim_failed(c, err);
}

static clave_mutex_options claim_mutex_options(struct claim *c)
{
    return (clave_mutex_options){.size = sizeof(clave_mutex_options),
                                 .data = c->data,
                                 .len = c->len,
                                 .revocable = c->revocable,
                                 .event_cb = claim_on_mutex_event,
                                 .event_arg = c};
}

static clave_err claim_acquire_mutex(struct claim *c)
{
    clave__mutex_set_place(c->mutex, &c->place);
    return clave__claim_owe(
        c, clave_async_mutex_acquire(c->mutex, 0, claim_deadline(c), claim_on_acquired, c));
}

static clave_err claim_begin_lock(struct claim *c)
{
    clave_mutex_options o = claim_mutex_options(c);
    clave_err err = clave_async_mutex_new(&c->mutex, c->part.s->client, c->path, &o);
    return err == CLAVE_OK ? claim_acquire_mutex(c) : err;
}

static clave_err claim_begin_side(struct claim *c,
                                  clave_async_mutex *(*side)(struct clave_async_rwlock *))
{
    clave_mutex_options o = claim_mutex_options(c);
    clave_err err = clave_async_rwlock_new(&c->rwlock, c->part.s->client, c->path, &o);
    if (err != CLAVE_OK)
        return err;
    c->mutex = side(c->rwlock);
    return claim_acquire_mutex(c);
}

static clave_err claim_begin_read(struct claim *c)
{
    return claim_begin_side(c, clave_async_rwlock_read);
}

static clave_err claim_begin_write(struct claim *c)
{
    return claim_begin_side(c, clave_async_rwlock_write);
}

static bool claim_mutex_grant(const struct claim *c, clave_grant *out)
{
    return clave_async_mutex_grant(c->mutex, 0, out);
}

static void claim_on_released(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg)
{
    struct claim *c = arg;
    (void)owner;
    if (clave__claim_repaid(c) && c->mutex == m)
        clave__claim_left(c, err);
}

static clave_err claim_release_mutex(struct claim *c)
{
    return clave__claim_owe(c, clave_async_mutex_release(c->mutex, 0, claim_on_released, c));
}

static void claim_drop_mutex(struct claim *c)
{
    clave_async_mutex *m = c->rwlock ? NULL : c->mutex;
    clave_async_rwlock *rw = c->rwlock;
    c->mutex = NULL;
    c->rwlock = NULL;
    clave_async_mutex_free(m);
    clave_async_rwlock_free(rw);
}

/* ---- semaphore ------------------------------------------------------------------------------- */

static void claim_on_lease_event(clave_async_semaphore *s, const clave_lease_event *ev, void *arg)
{
    struct claim *c = arg;
    (void)s;
    if (ev->kind == CLAVE_LEASE_QUEUED)
        clave__claim_moved(c, ev->ahead);
    else if (ev->kind == CLAVE_LEASE_LOST)
        clave__claim_lost(c, ev->why);
    else if (ev->kind == CLAVE_LEASE_ASKED)
        clave__claim_asked(c);
}

static void claim_on_leased(clave_async_semaphore *s, clave_err err,
                            clave_async_lease *const *leases, size_t n, void *arg)
{
    struct claim *c = arg;
    (void)n;
    if (!clave__claim_repaid(c) || c->semaphore != s)
        return;
    c->lease = err == CLAVE_OK ? leases[0] : NULL;
    if (c->lease)
        clave__claim_granted(c);
    else
        clave__claim_failed(c, err);
}

static clave_err claim_begin_semaphore(struct claim *c)
{
    clave_semaphore_options o = CLAVE_SEMAPHORE_OPTIONS_INIT;
    o.limit = c->limit;
    o.data = c->data;
    o.len = c->len;
    o.revocable = c->revocable;
    o.event_cb = claim_on_lease_event;
    o.event_arg = c;
    clave_err err = clave_async_semaphore_new(&c->semaphore, c->part.s->client, c->path, &o);
    if (err != CLAVE_OK)
        return err;
    clave__semaphore_set_place(c->semaphore, &c->place);
    return clave__claim_owe(c, clave_async_semaphore_acquire(c->semaphore, 0, 1, claim_deadline(c),
                                                             claim_on_leased, c));
}

static bool claim_lease_grant(const struct claim *c, clave_grant *out)
{
    return clave_async_lease_grant(c->lease, out);
}

static void claim_on_lease_left(clave_async_semaphore *s, clave_err err, void *arg)
{
    struct claim *c = arg;
    if (clave__claim_repaid(c) && c->semaphore == s)
        clave__claim_left(c, err);
}

static clave_err claim_release_lease(struct claim *c)
{
    clave_async_lease *l = c->lease;
    c->lease = NULL;
    return clave__claim_owe(c, clave_async_lease_release(l, claim_on_lease_left, c));
}

static void claim_drop_semaphore(struct claim *c)
{
    clave_async_semaphore *s = c->semaphore;
    c->semaphore = NULL;
    c->lease = NULL;
    clave_async_semaphore_free(s);
}

/* ---- election -------------------------------------------------------------------------------- */

static void claim_on_latch_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct claim *c = arg;
    (void)l;
    switch (ev->kind) {
    case CLAVE_LATCH_QUEUED:
        clave__claim_moved(c, ev->ahead);
        if (c->trying && ev->ahead > 0 && c->state == CLAIM_WAITING)
            clave__claim_failed(c, CLAVE_EBUSY);
        break;
    case CLAVE_LATCH_LEADER:
        clave__claim_granted(c);
        break;
    case CLAVE_LATCH_NOT_LEADER:
        clave__claim_lost(c, ev->why);
        break;
    case CLAVE_LATCH_ASKED:
        clave__claim_asked(c);
        break;
    case CLAVE_LATCH_FAILED:
        clave__claim_failed(c, ev->why);
        break;
    case CLAVE_LATCH_NEXT:
        break;
    }
}

static clave_err claim_begin_election(struct claim *c)
{
    clave_latch_options o = CLAVE_LATCH_OPTIONS_INIT;
    o.id = c->data;
    o.policy = CLAVE_POLICY_SESSION;
    o.revocable = c->revocable;
    o.event_cb = claim_on_latch_event;
    o.event_arg = c;
    clave_err err = clave_async_latch_new(&c->latch, c->part.s->client, c->path, &o);
    if (err != CLAVE_OK)
        return err;
    clave__latch_set_place(c->latch, &c->place);
    return clave_async_latch_start(c->latch);
}

static bool claim_latch_grant(const struct claim *c, clave_grant *out)
{
    return clave_async_latch_grant(c->latch, out);
}

static void claim_on_latch_closed(clave_async_latch *l, clave_err err, void *arg)
{
    struct claim *c = arg;
    if (clave__claim_repaid(c) && c->latch == l)
        clave__claim_left(c, err);
}

static clave_err claim_release_latch(struct claim *c)
{
    return clave__claim_owe(
        c, clave_async_latch_close(c->latch, CLAVE_CLOSE_SILENT, claim_on_latch_closed, c));
}

static void claim_drop_latch(struct claim *c)
{
    clave_async_latch *l = c->latch;
    c->latch = NULL;
    clave_async_latch_free(l);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct claim_kind kinds[] = {
    {"lock", true, claim_begin_lock, claim_mutex_grant, claim_release_mutex, claim_drop_mutex},
    {"read", false, claim_begin_read, claim_mutex_grant, claim_release_mutex, claim_drop_mutex},
    {"write", true, claim_begin_write, claim_mutex_grant, claim_release_mutex, claim_drop_mutex},
    {"semaphore", false, claim_begin_semaphore, claim_lease_grant, claim_release_lease,
     claim_drop_semaphore},
    {"election", true, claim_begin_election, claim_latch_grant, claim_release_latch,
     claim_drop_latch},
};

const struct claim_kind *clave__claim_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}
