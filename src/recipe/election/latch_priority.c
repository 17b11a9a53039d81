/* latch_priority.c - a candidate with a priority: when its turn has come it looks who else stands,
 * and hands on to a higher one; while it waits it may ask a lower leader to go. docs/elections.md.
 */
#include "recipe/election/latch_internal.h"

static void on_yielded(clave_async_client *c, clave_err err, void *arg)
{
    clave_async_latch *l = arg;
    (void)c;
    if (!clave__latch_end_proof(l))
        return;
    clave_err_class class = clave_err_classify(err);
    /* By the listing it is not the first, or nobody stands: a look at its node tells. */
    bool unsure = err == CLAVE_ELOST || err == CLAVE_ENONODE;
    if (class == CLAVE_CLASS_RETRY || unsure)
        clave__latch_try_later(l);
    else if (class != CLAVE_CLASS_UNKNOWN) /* there will be a RECONNECTED, or LOST */
        clave__latch_gain(l); /* nobody is higher; or the server does not let it hand on */
}

/* The first leads; with a priority, unless a higher one stands. */
void clave__latch_rise(clave_async_latch *l)
{
    if (l->priority == 0) {
        clave__latch_gain(l);
        return;
    }
    if (l->leads || l->proving)
        return;
    if (clave__transfer_yield(l, on_yielded) == CLAVE_OK)
        clave__latch_begin_proof(l);
    else
        clave__latch_try_later(l);
}

static void on_claimed(clave_async_client *c, clave_err err, void *arg)
{
    clave_async_latch *l = arg;
    (void)c;
    clave_err_class class = clave_err_classify(err);
    l->claimed = class != CLAVE_CLASS_RETRY && class != CLAVE_CLASS_UNKNOWN;
    if (!l->claimed && l->state == CLAVE_LATCH_STARTED)
        clave__latch_try_later(l);
}

/* Once for each place: who comes later with a higher priority claims by itself. */
void clave__latch_claim(clave_async_latch *l)
{
    if (!l->preempt || l->claimed || !l->place || l->place->state != CONTENDER_WAITING)
        return;
    if (clave__transfer_claim(l, on_claimed) == CLAVE_OK)
        l->claimed = true;
    else
        clave__latch_try_later(l);
}

/* Had it its priority at once, the next leader would hand over to it: so it lets a session
 * timeout pass. */
static void on_regain(struct timer *t, int64_t now)
{
    (void)now;
    clave_async_latch *l = LIST_ENTRY(t, struct clave_async_latch, regain);
    bool waits =
        l->state == CLAVE_LATCH_STARTED && l->place && l->meek && l->place->state < CONTENDER_HELD;
    if (waits && clave__latch_stand_behind(l, false) != CLAVE_OK)
        clave__latch_regain_later(l);
}

clave_err clave__latch_set_priority(clave_async_latch *l, const clave_latch_options *o)
{
    char tag[CLAVE_PRIORITY_TAG];
    l->priority = o->spread ? clave__priority_spread(l->config.path, l->id) : o->priority;
    l->preempt = o->preempt;
    if (l->priority == 0)
        return CLAVE_OK;
    clave__priority_tag(l->priority, tag);
    l->ranked_stem = clave__contender_config_stem(&l->config, tag);
    l->ranked = l->config.spec;
    l->ranked.stem = l->ranked_stem;
    return l->ranked_stem ? CLAVE_OK : CLAVE_ENOMEM;
}

void clave__latch_regain_later(clave_async_latch *l)
{
    int64_t pause = clave_async_client_session_timeout(l->client);
    clave__client_timer_set(l->client, &l->regain, clave__client_now(l->client) + pause);
}

void clave__latch_priority_init(clave_async_latch *l)
{
    clave__timer_init(&l->regain, on_regain);
}
