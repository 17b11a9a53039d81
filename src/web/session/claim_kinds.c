/* claim_kinds.c - the kinds of claims: the recipe that each kind stands on, as a table of functions
 * (struct claim_kind). The state of each kind begins with struct claim. Each claim has recipe
 * objects of its own, so that one owner, 0, is enough.
 *
 * Called by claim.c and session_claims.c through the table. Passes on what the recipe reports
 * (clave__claim_moved, _granted, _failed, _lost, _asked, _left), never inside `begin`. Invariant:
 * after `drop` the recipe reports nothing but the callbacks that are owed, and these are
 * ignored. */
#include "web/session/claim.h"

#include <assert.h>

#include "clave/async/leader.h"
#include "clave/async/mutex.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"

/* What is wrong if terms for a semaphore are given for another kind; NULL: nothing. */
static const char *claim_no_semaphore(const struct claim_terms *t)
{
    return t->limit || t->permits ? "\"limit\" and \"permits\" are for a semaphore" : NULL;
}

/* The max_hold_ms that the recipe enforces; 0: none, since claim.c ends the hold. */
static int64_t claim_recipe_hold_ms(const struct claim *c)
{
    return c->limited ? 0 : c->max_hold_ms;
}

/* ==== locks, and sides of a read-write lock =================================================== */

struct lock_claim {
    struct claim claim; /* first */
    clave_async_mutex *mutex;
    clave_async_rwlock *rwlock; /* the read-write lock that the mutex is a side of; NULL: none */
};

static struct lock_claim *lock_claim_of(struct claim *c)
{
    return LIST_ENTRY(c, struct lock_claim, claim);
}

/* Readers that hold at the same time cannot share one mark. */
static const char *read_claim_misfit(const struct claim_terms *t)
{
    return t->lock_delay_ms ? "\"lock_delay_ms\" is for lock, write and election"
                            : claim_no_semaphore(t);
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
        return; /* the objects were dropped because the claim was canceled */
    if (err == CLAVE_OK)
        clave__claim_granted(c);
    else
        clave__claim_failed(c, err);
}

static clave_err lock_claim_begin(struct claim *c)
{
    struct lock_claim *l = lock_claim_of(c);
    clave_async_client *client = c->part.s->client;
    enum queue_kind queue = c->kind->queue;
    clave_err err;
    assert(!l->mutex && !l->rwlock);
    clave_mutex_options o = CLAVE_MUTEX_OPTIONS_INIT;
    o.data = c->data;
    o.len = c->len;
    o.revocable = c->revocable;
    o.max_hold_ms = claim_recipe_hold_ms(c);
    o.event_cb = lock_claim_on_event;
    o.event_arg = c;
    if (queue == QUEUE_LOCK)
        err = clave_async_mutex_new(&l->mutex, client, c->path, &o);
    else
        err = clave_async_rwlock_new(&l->rwlock, client, c->path, &o);
    if (err != CLAVE_OK)
        return err;
    if (l->rwlock)
        l->mutex = queue == QUEUE_READ ? clave_async_rwlock_read(l->rwlock)
                                       : clave_async_rwlock_write(l->rwlock);
    clave__mutex_set_place(l->mutex, &c->place);
    return clave__claim_owe(c, clave_async_mutex_acquire(l->mutex, 0, clave__claim_deadline(c),
                                                         lock_claim_on_acquired, c));
}

static bool lock_claim_grant(const struct claim *c, struct grant_facts *out)
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

static clave_err lock_claim_release(struct claim *c)
{
    clave_async_mutex *m = lock_claim_of(c)->mutex;
    return clave__claim_owe(c, clave_async_mutex_release(m, 0, lock_claim_on_released, c));
}

static clave_err lock_claim_describe(struct claim *c, const clave_identity *said,
                                     queue_described *done, void *arg, size_t *n)
{
    return clave__mutex_describe(lock_claim_of(c)->mutex, 0, said, done, arg, n);
}

static void lock_claim_drop(struct claim *c)
{
    struct lock_claim *l = lock_claim_of(c);
    clave_async_mutex *m = l->mutex;
    clave_async_rwlock *rwlock = l->rwlock;
    l->mutex = NULL;
    l->rwlock = NULL;
    if (rwlock)
        clave_async_rwlock_free(rwlock);
    else
        clave_async_mutex_free(m);
}

static clave_err rwlock_claim_holders(clave_async_client *client, const char *path,
                                      clave_async_participants_cb *cb, void *arg)
{
    return clave_async_rwlock_participants(client, path, CLAVE_RWLOCK_BOTH, cb, arg);
}

static const struct claim_kind lock_claim_kind = {
    .name = "lock",
    .size = sizeof(struct lock_claim),
    .queue = QUEUE_LOCK,
    .misfit = claim_no_semaphore,
    .begin = lock_claim_begin,
    .grant = lock_claim_grant,
    .release = lock_claim_release,
    .drop = lock_claim_drop,
    .describe = lock_claim_describe,
    .holders = clave_async_participants,
};

static const struct claim_kind read_claim_kind = {
    .name = "read",
    .queue = QUEUE_READ,
    .size = sizeof(struct lock_claim),
    .misfit = read_claim_misfit,
    .begin = lock_claim_begin,
    .grant = lock_claim_grant,
    .release = lock_claim_release,
    .drop = lock_claim_drop,
    .describe = lock_claim_describe,
    .holders = rwlock_claim_holders,
};

static const struct claim_kind write_claim_kind = {
    .name = "write",
    .queue = QUEUE_WRITE,
    .size = sizeof(struct lock_claim),
    .misfit = claim_no_semaphore,
    .begin = lock_claim_begin,
    .grant = lock_claim_grant,
    .release = lock_claim_release,
    .drop = lock_claim_drop,
    .describe = lock_claim_describe,
    .holders = rwlock_claim_holders,
};

/* ==== leases of a semaphore =================================================================== */

struct semaphore_lease {
    clave_async_lease *lease;
    int64_t token;
};

struct semaphore_claim {
    struct claim claim; /* first */
    clave_async_semaphore *semaphore;
    struct semaphore_lease *leases; /* room for its permits */
    size_t n;                       /* how many of them it holds */
    size_t leaving;                 /* how many are being released */
    clave_err left;                 /* the first error of one of those releases */
};

static struct semaphore_claim *semaphore_claim_of(struct claim *c)
{
    return LIST_ENTRY(c, struct semaphore_claim, claim);
}

static const char *semaphore_claim_misfit(const struct claim_terms *t)
{
    return t->limit == 0           ? "a semaphore needs \"limit\": how many may hold it"
           : t->permits > t->limit ? "\"permits\" is more than \"limit\""
           : t->lock_delay_ms      ? "\"lock_delay_ms\" is for lock, write and election"
                                   : NULL;
}

static void semaphore_claim_on_event(clave_async_semaphore *s, const clave_lease_event *ev,
                                     void *arg)
{
    struct claim *c = arg;
    (void)s;
    if (ev->kind == CLAVE_LEASE_QUEUED)
        clave__claim_moved(c, ev->ahead, ev->left_over);
    else if (ev->kind == CLAVE_LEASE_LOST)
        clave__claim_lost(c, ev->why);
    else if (ev->kind == CLAVE_LEASE_ASKED)
        clave__claim_asked(c);
}

static void semaphore_claim_on_leased(clave_async_semaphore *s, clave_err err,
                                      clave_async_lease *const *leases, size_t n, void *arg)
{
    struct claim *c = arg;
    struct semaphore_claim *own = semaphore_claim_of(c);
    if (!clave__claim_repaid(c) || own->semaphore != s)
        return;
    struct grant_facts g;
    for (size_t i = 0; err == CLAVE_OK && i < n; i++) {
        int64_t token = clave__lease_held(leases[i], &g) ? g.token : 0;
        assert(own->n < (c->permits ? c->permits : 1));
        own->leases[own->n++] = (struct semaphore_lease){leases[i], token};
    }
    if (err == CLAVE_OK)
        clave__claim_granted(c);
    else
        clave__claim_failed(c, err);
}

static clave_err semaphore_claim_begin(struct claim *c)
{
    struct semaphore_claim *own = semaphore_claim_of(c);
    assert(!own->semaphore && !own->leases);
    clave_semaphore_options o = CLAVE_SEMAPHORE_OPTIONS_INIT;
    size_t n = c->permits ? c->permits : 1;
    o.limit = c->limit;
    o.data = c->data;
    o.len = c->len;
    o.revocable = c->revocable;
    o.max_hold_ms = claim_recipe_hold_ms(c);
    o.event_cb = semaphore_claim_on_event;
    o.event_arg = c;
    own->leases = clave__mem_zalloc(&c->part.s->all->web->mem, n * sizeof *own->leases);
    if (!own->leases)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_semaphore_new(&own->semaphore, c->part.s->client, c->path, &o);
    if (err != CLAVE_OK)
        return err;
    clave__semaphore_set_place(own->semaphore, &c->place);
    return clave__claim_owe(c, clave_async_semaphore_acquire(own->semaphore, 0, n,
                                                             clave__claim_deadline(c),
                                                             semaphore_claim_on_leased, c));
}

static bool semaphore_claim_grant(const struct claim *c, struct grant_facts *out)
{
    const struct semaphore_claim *own = (const struct semaphore_claim *)(const void *)c;
    int64_t deadline = INT64_MAX;
    for (size_t i = 0; i < own->n; i++) {
        if (!clave__lease_held(own->leases[i].lease, out))
            return false;
        deadline = out->deadline < deadline ? out->deadline : deadline;
    }
    out->deadline = deadline;
    return own->n > 0;
}

/* The newest lease is the claim's own; the others are further nodes. */
static const char *semaphore_claim_more(const struct session_part *p, size_t i)
{
    const struct semaphore_claim *own = (const struct semaphore_claim *)(const void *)p;
    struct grant_facts g;
    return i + 1 < own->n && clave__lease_held(own->leases[i].lease, &g) ? g.node : NULL;
}

static int64_t semaphore_claim_more_token(const struct claim *c, size_t i)
{
    const struct semaphore_claim *own = (const struct semaphore_claim *)(const void *)c;
    return i + 1 < own->n ? own->leases[i].token : 0;
}

static void semaphore_claim_on_left(clave_async_semaphore *s, clave_err err, void *arg)
{
    struct claim *c = arg;
    struct semaphore_claim *own = semaphore_claim_of(c);
    if (!clave__claim_repaid(c) || own->semaphore != s)
        return;
    assert(own->leaving > 0);
    own->left = own->left != CLAVE_OK ? own->left : err;
    if (--own->leaving == 0)
        clave__claim_left(c, own->left);
}

static clave_err semaphore_claim_release(struct claim *c)
{
    struct semaphore_claim *own = semaphore_claim_of(c);
    clave_err err = CLAVE_OK;
    for (; own->n > 0; own->n--) {
        clave_async_lease *l = own->leases[own->n - 1].lease;
        clave_err one =
            clave__claim_owe(c, clave_async_lease_release(l, semaphore_claim_on_left, c));
        own->leaving += one == CLAVE_OK;
        err = one != CLAVE_OK ? one : err; /* this lease was lost already */
    }
    own->left = err;
    return own->leaving > 0 ? CLAVE_OK : err;
}

static clave_err semaphore_claim_describe(struct claim *c, const clave_identity *said,
                                          queue_described *done, void *arg, size_t *n)
{
    return clave__semaphore_describe(semaphore_claim_of(c)->semaphore, said, done, arg, n);
}

static void semaphore_claim_drop(struct claim *c)
{
    struct semaphore_claim *own = semaphore_claim_of(c);
    clave_async_semaphore *s = own->semaphore;
    own->semaphore = NULL;
    own->n = own->leaving = 0;
    clave_async_semaphore_free(s);
    clave__mem_free(&c->part.s->all->web->mem, own->leases);
    own->leases = NULL;
}

static const struct claim_kind semaphore_claim_kind = {
    .name = "semaphore",
    .size = sizeof(struct semaphore_claim),
    .queue = QUEUE_LEASE,
    .misfit = semaphore_claim_misfit,
    .begin = semaphore_claim_begin,
    .grant = semaphore_claim_grant,
    .more = semaphore_claim_more,
    .more_token = semaphore_claim_more_token,
    .release = semaphore_claim_release,
    .drop = semaphore_claim_drop,
    .describe = semaphore_claim_describe,
    .holders = clave_async_semaphore_participants,
};

/* ==== leaderships ============================================================================= */

struct election_claim {
    struct claim claim; /* first */
    clave_async_latch *latch;
};

static struct election_claim *election_claim_of(struct claim *c)
{
    return LIST_ENTRY(c, struct election_claim, claim);
}

static void election_claim_on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct claim *c = arg;
    (void)l;
    switch (ev->kind) {
    case CLAVE_LATCH_QUEUED:
        clave__claim_moved(c, ev->ahead, ev->left_over);
        if (c->trying && ev->ahead > 0 && clave__claim_waits(c))
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

static clave_err election_claim_begin(struct claim *c)
{
    struct election_claim *own = election_claim_of(c);
    assert(!own->latch);
    clave_latch_options o = CLAVE_LATCH_OPTIONS_INIT;
    o.id = c->data;
    o.policy = CLAVE_POLICY_SESSION;
    o.revocable = c->revocable;
    o.max_term_ms = claim_recipe_hold_ms(c);
    o.event_cb = election_claim_on_event;
    o.event_arg = c;
    clave_err err = clave_async_latch_new(&own->latch, c->part.s->client, c->path, &o);
    if (err != CLAVE_OK)
        return err;
    clave__latch_set_place(own->latch, &c->place);
    return clave_async_latch_start(own->latch);
}

static bool election_claim_grant(const struct claim *c, struct grant_facts *out)
{
    return clave__latch_held(((const struct election_claim *)(const void *)c)->latch, out);
}

static void election_claim_on_closed(clave_async_latch *l, clave_err err, void *arg)
{
    struct claim *c = arg;
    if (clave__claim_repaid(c) && election_claim_of(c)->latch == l)
        clave__claim_left(c, err);
}

static clave_err election_claim_release(struct claim *c)
{
    clave_async_latch *l = election_claim_of(c)->latch;
    return clave__claim_owe(
        c, clave_async_latch_close(l, CLAVE_CLOSE_SILENT, election_claim_on_closed, c));
}

static clave_err election_claim_describe(struct claim *c, const clave_identity *said,
                                         queue_described *done, void *arg, size_t *n)
{
    return clave__latch_describe(election_claim_of(c)->latch, said, done, arg, n);
}

static void election_claim_drop(struct claim *c)
{
    struct election_claim *own = election_claim_of(c);
    clave_async_latch *l = own->latch;
    own->latch = NULL;
    clave_async_latch_free(l);
}

static clave_err election_claim_publish(struct claim *c, const void *value, size_t len,
                                        clave_result_cb *cb, void *arg)
{
    return clave_async_latch_publish(election_claim_of(c)->latch, value, len, cb, arg);
}

static const struct claim_kind election_claim_kind = {
    .name = "election",
    .size = sizeof(struct election_claim),
    .queue = QUEUE_LATCH,
    .plain = true, /* the candidate's id, which Curator reads too */
    .misfit = claim_no_semaphore,
    .begin = election_claim_begin,
    .grant = election_claim_grant,
    .release = election_claim_release,
    .drop = election_claim_drop,
    .describe = election_claim_describe,
    .holders = clave_async_latch_leader,
    .publish = election_claim_publish,
};

/* ==== the table =============================================================================== */

const struct claim_kind *const clave__claim_kinds[] = {
    &lock_claim_kind,      &read_claim_kind,     &write_claim_kind,
    &semaphore_claim_kind, &election_claim_kind, NULL,
};
