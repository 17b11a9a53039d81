/* election_claim.c - claims on a leadership. */
#include "clave/async/leader.h"

#include <assert.h>

#include "web/session/kinds/claim_kinds.h"

struct election_claim {
    struct claim claim; /* first */
    clave_async_latch *latch;
};

static struct election_claim *election_claim_of(struct claim *c)
{
    return LIST_ENTRY(c, struct election_claim, claim);
}

static const char *election_claim_misfit(const struct claim_terms *t)
{
    return clave__claim_no_semaphore(t);
}

static void election_claim_on_event(clave_async_latch *l, const clave_latch_event *ev, void *arg)
{
    struct claim *c = arg;
    (void)l;
    switch (ev->kind) {
    case CLAVE_LATCH_QUEUED:
        clave__claim_moved(c, ev->ahead, ev->left_over);
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

static clave_err election_claim_begin(struct claim *c)
{
    struct election_claim *own = election_claim_of(c);
    assert(!own->latch);
    clave_latch_options o = CLAVE_LATCH_OPTIONS_INIT;
    o.id = c->data;
    o.policy = CLAVE_POLICY_SESSION;
    o.revocable = c->revocable;
    o.max_term_ms = c->max_hold_ms;
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

const struct claim_kind clave__election_claim = {
    .name = "election",
    .size = sizeof(struct election_claim),
    .queue = QUEUE_LATCH,
    .plain = true, /* the candidate's id, which Curator reads too */
    .misfit = election_claim_misfit,
    .begin = election_claim_begin,
    .grant = election_claim_grant,
    .release = election_claim_release,
    .drop = election_claim_drop,
    .describe = election_claim_describe,
    .holders = clave_async_latch_leader,
    .publish = election_claim_publish,
};
