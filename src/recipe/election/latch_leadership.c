/* latch_leadership.c - the leadership of a latch: how it is gained, proved and lost, what is known
 * of it, and what only a leader may write. Called by the public API and latch.c. Invariant: it
 * leads only while its node is the first and its grant lasts. */
#include <assert.h>

#include "base/deadline.h"
#include "recipe/contender/contender_grant.h"
#include "recipe/election/latch_internal.h"

/* ---- gained, proved, lost ------------------------------------------------------------------ */

void clave__latch_gain(clave_async_latch *l)
{
    if (l->state != LATCH_FIRST)
        return;
    clave__latch_enter(l, LATCH_LEADING);
    clave__latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_LEADER});
    if (clave__latch_leads(l))
        clave__latch_post_awaits(l, CLAVE_OK);
}

void clave__latch_lose(clave_async_latch *l, enum latch_state to, clave_err why)
{
    bool led = clave__latch_leads(l);
    clave__latch_enter(l, to);
    if (led)
        clave__latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_NOT_LEADER, .why = why});
}

void clave__latch_give_up(clave_async_latch *l, enum latch_state to)
{
    if (clave__latch_leads(l))
        clave__client_later(l->client, &l->loss);
    clave__latch_enter(l, to);
}

void clave__latch_begin_proof(clave_async_latch *l)
{
    assert(l->place);
    l->proof_token = l->place->node.token;
}

bool clave__latch_end_proof(clave_async_latch *l)
{
    int64_t token = l->proof_token;
    l->proof_token = 0;
    if (l->state != LATCH_FIRST)
        return false;
    if (l->place->node.token == token)
        return true;
    clave__latch_try_later(l); /* this place's own proof had to wait for that one */
    return false;
}

/* In a race every candidate creates the same name, so a check proves only that somebody's node
 * exists. It is ours if the watch on it has stayed armed: an event comes before a later reply. */
static bool latch_is_surely_ours(const clave_async_latch *l)
{
    return !l->config.spec.rule->race || clave__node_watch_is_armed(&l->place->node.watch);
}

/* The standard policy ended leadership with the connection, and as far as we know the place is
 * still ours. A check of the node passes the ensemble's leader: it proves the place and moves the
 * hold deadline. */
static void latch_on_proved(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_latch *l = arg;
    (void)c;
    if (clave__latch_end_proof(l)) {
        if (res->err == CLAVE_OK && !latch_is_surely_ours(l))
            clave__latch_try_later(l);
        else if (res->err == CLAVE_OK)
            clave__latch_rise(l);
        else if (res->err == CLAVE_ENONODE)
            clave__contender_turn_node_missing(&l->place->grant.hold);
        else if (clave_err_classify(res->err) == CLAVE_CLASS_RETRY)
            clave__latch_try_later(l);
        /* If the answer was lost, another RECONNECTED or LOST will follow. */
    }
    clave__latch_drop(l);
}

void clave__latch_prove(clave_async_latch *l)
{
    if (l->state != LATCH_FIRST || l->proof_token != 0)
        return;
    clave_op check = {.kind = CLAVE_OP_CHECK, .path = l->place->node.watch.path, .version = -1};
    clave_err err = clave_async_multi(l->client, &check, 1, latch_on_proved, l);
    if (err == CLAVE_OK) {
        clave__latch_begin_proof(l);
        clave__latch_hold(l);
    } else if (err == CLAVE_ENOMEM) {
        clave__latch_try_later(l);
    }
}

/* ---- what is known --------------------------------------------------------------------- */

bool clave__latch_held(const clave_async_latch *l, struct grant_facts *out)
{
    if (!clave__latch_leads(l))
        return false;
    *out = clave__contender_facts(l->place);
    return true;
}

clave_err clave_async_latch_grant(const clave_async_latch *l, clave_async_grant **out)
{
    struct grant_facts f;
    *out = NULL;
    return clave__latch_held(l, &f) ? clave__grant_new(out, &f) : CLAVE_ENOTHELD;
}

bool clave_async_latch_has_leadership(const clave_async_latch *l, int64_t now)
{
    return clave__latch_leads(l) && deadline_lasts(clave__contender_deadline(l->place), now, 0);
}

clave_latch_state clave_async_latch_state_of(const clave_async_latch *l)
{
    if (clave__latch_is_started(l))
        return CLAVE_LATCH_STARTED;
    return l->state == LATCH_LATENT ? CLAVE_LATCH_LATENT : CLAVE_LATCH_CLOSED;
}

const char *clave_async_latch_own_path(const clave_async_latch *l)
{
    const struct contender *p = l->place;
    bool stands = p && p->state >= CONTENDER_WAITING && p->state <= CONTENDER_HELD;
    return stands ? p->node.watch.path : NULL;
}

bool clave__latch_lead(const clave_async_latch *l, struct latch_lead *out)
{
    if (!clave__latch_leads(l))
        return false;
    *out = (struct latch_lead){l->client, l->config.path, l->place->node.watch.path,
                               l->place->node.token};
    return true;
}
