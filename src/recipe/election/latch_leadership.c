/* latch_leadership.c - the leadership of a latch: how it is gained and given up, and what is known
 * of it. Called by the public API and latch.c. Invariant: it leads only while its node is the first
 * and its grant lasts. */
#include "base/deadline.h"
#include "recipe/contender/contender_grant.h"
#include "recipe/election/latch_internal.h"

/* ---- gained, given up ------------------------------------------------------------------ */

void clave__latch_gain(clave_async_latch *l)
{
    if (l->state != LATCH_FIRST)
        return;
    clave__latch_enter(l, LATCH_LEADING);
    clave__latch_tell(l, (clave_latch_event){.kind = CLAVE_LATCH_LEADER});
    if (clave__latch_leads(l))
        clave__latch_post_awaits(l, CLAVE_OK);
}

void clave__latch_give_up(clave_async_latch *l, enum latch_state to)
{
    if (clave__latch_leads(l))
        clave__client_later(l->client, &l->loss);
    clave__latch_enter(l, to);
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
