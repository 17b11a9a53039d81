/* semaphore_claim.c - claims on leases of a semaphore: one, or several, all or none. It is held
 * with all of them, and lost with the first that is; the token and the node are those of the
 * newest. */
#include "clave/async/semaphore.h"

#include <assert.h>

#include "web/session/kinds/claim_kinds.h"

struct semaphore_lease {
    clave_async_lease *lease;
    int64_t token;
};

struct semaphore_claim {
    struct claim claim; /* first */
    clave_async_semaphore *semaphore;
    struct semaphore_lease *leases; /* room for its permits */
    size_t n;                       /* that it holds */
    size_t leaving;                 /* that are being given back */
    clave_err left;                 /* the first fault of one of those */
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
    o.max_hold_ms = c->max_hold_ms;
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

/* The newest is the claim's own. */
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
        err = one != CLAVE_OK ? one : err; /* it was lost already */
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

const struct claim_kind clave__semaphore_claim = {
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
