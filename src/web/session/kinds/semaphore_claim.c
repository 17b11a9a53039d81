/* semaphore_claim.c - claims on a lease of a semaphore. */
#include "clave/async/semaphore.h"
#include "web/session/kinds/claim_kinds.h"

struct semaphore_claim {
    struct claim claim; /* first */
    clave_async_semaphore *semaphore;
    clave_async_lease *lease;
};

static struct semaphore_claim *semaphore_claim_of(struct claim *c)
{
    return LIST_ENTRY(c, struct semaphore_claim, claim);
}

static const char *semaphore_claim_misfit(const struct claim_terms *t)
{
    return t->limit == 0      ? "a semaphore needs \"limit\": how many may hold it"
           : t->lock_delay_ms ? "\"lock_delay_ms\" is for lock, write and election"
                              : NULL;
}

static void semaphore_claim_on_event(clave_async_semaphore *s, const clave_lease_event *ev,
                                     void *arg)
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

static void semaphore_claim_on_leased(clave_async_semaphore *s, clave_err err,
                                      clave_async_lease *const *leases, size_t n, void *arg)
{
    struct claim *c = arg;
    (void)n;
    struct semaphore_claim *own = semaphore_claim_of(c);
    if (!clave__claim_repaid(c) || own->semaphore != s)
        return;
    own->lease = err == CLAVE_OK ? leases[0] : NULL;
    if (own->lease)
        clave__claim_granted(c);
    else
        clave__claim_failed(c, err);
}

static clave_err semaphore_claim_begin(struct claim *c)
{
    struct semaphore_claim *own = semaphore_claim_of(c);
    clave_semaphore_options o = CLAVE_SEMAPHORE_OPTIONS_INIT;
    o.limit = c->limit;
    o.data = c->data;
    o.len = c->len;
    o.revocable = c->revocable;
    o.event_cb = semaphore_claim_on_event;
    o.event_arg = c;
    clave_err err = clave_async_semaphore_new(&own->semaphore, c->part.s->client, c->path, &o);
    if (err != CLAVE_OK)
        return err;
    clave__semaphore_set_place(own->semaphore, &c->place);
    return clave__claim_owe(c, clave_async_semaphore_acquire(own->semaphore, 0, 1,
                                                             clave__claim_deadline(c),
                                                             semaphore_claim_on_leased, c));
}

static bool semaphore_claim_grant(const struct claim *c, clave_grant *out)
{
    const clave_async_lease *l = ((const struct semaphore_claim *)(const void *)c)->lease;
    return clave_async_lease_grant(l, out);
}

static void semaphore_claim_on_left(clave_async_semaphore *s, clave_err err, void *arg)
{
    struct claim *c = arg;
    if (clave__claim_repaid(c) && semaphore_claim_of(c)->semaphore == s)
        clave__claim_left(c, err);
}

static clave_err semaphore_claim_release(struct claim *c)
{
    struct semaphore_claim *own = semaphore_claim_of(c);
    clave_async_lease *l = own->lease;
    own->lease = NULL;
    return clave__claim_owe(c, clave_async_lease_release(l, semaphore_claim_on_left, c));
}

static void semaphore_claim_drop(struct claim *c)
{
    struct semaphore_claim *own = semaphore_claim_of(c);
    clave_async_semaphore *s = own->semaphore;
    own->semaphore = NULL;
    own->lease = NULL;
    clave_async_semaphore_free(s);
}

const struct claim_kind clave__semaphore_claim = {
    .name = "semaphore",
    .size = sizeof(struct semaphore_claim),
    .queue = QUEUE_LEASE,
    .misfit = semaphore_claim_misfit,
    .begin = semaphore_claim_begin,
    .grant = semaphore_claim_grant,
    .release = semaphore_claim_release,
    .drop = semaphore_claim_drop,
    .holders = clave_async_semaphore_participants,
};
