/* latch_priority.c - a candidate with a priority. When its turn comes, it lists the other
 * candidates and hands over to one with a higher priority. While it waits, it may ask a leader with
 * a lower priority to resign. Called by latch.c. The rules are in docs/guide/elections.md;
 * recipe/queue/priority_tag.h has the priorities in the nodes' names.
 *
 * What must stay true: a candidate that has a priority never leads until a listing has shown nobody
 * with a higher one, or the server has refused the hand-over. */
#include <assert.h>
#include <string.h>

#include "recipe/election/latch_internal.h"
#include "recipe/queue/priority_tag.h"

/* FNV-1a. */
static uint64_t priority_mix(uint64_t hash, const char *text)
{
    size_t n = strlen(text) + 1; /* include the NUL, so that "a" "bc" differs from "ab" "c" */
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

int32_t clave__latch_priority_spread(const char *path, const char *id)
{
    uint64_t h = priority_mix(priority_mix(UINT64_C(0xcbf29ce484222325), path), id);
    /* The last bytes hardly change FNV's high bits; the finalizer of MurmurHash3 corrects that. */
    h = (h ^ (h >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ (h >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    h = (h ^ (h >> 33)) & INT32_MAX;
    return h ? (int32_t)h : 1;
}

/* ---- hand-over and claim --------------------------------------------------------------- */

/* Returns false if the answer is for a place that was given up. */
static bool latch_priority_end_yield(clave_async_latch *l)
{
    int64_t token = l->yield_token;
    l->yield_token = 0;
    if (l->state != LATCH_FIRST)
        return false;
    if (l->place->node.token == token)
        return true;
    clave__latch_try_later(l); /* this place had to wait for that answer */
    return false;
}

static void latch_priority_on_yielded(clave_async_client *c, clave_err err, void *arg)
{
    clave_async_latch *l = arg;
    (void)c;
    if (!latch_priority_end_yield(l))
        return;
    clave_err_class class = clave_err_classify(err);
    /* The listing shows another candidate first, or none at all; an event of its own node will
     * tell. */
    bool unsure = err == CLAVE_ELOST || err == CLAVE_ENONODE;
    if (class == CLAVE_CLASS_RETRY || unsure)
        clave__latch_try_later(l);
    else if (class != CLAVE_CLASS_UNKNOWN) /* if it is UNKNOWN, RECONNECTED or LOST will follow */
        clave__latch_gain(l); /* nobody is higher, or the server refused the hand-over */
}

/* The first candidate leads. If it has a priority, it leads only if nobody has a higher one. */
void clave__latch_rise(clave_async_latch *l)
{
    if (l->state != LATCH_FIRST)
        return;
    if (l->priority == 0) {
        clave__latch_gain(l);
        return;
    }
    if (l->yield_token != 0)
        return;
    if (clave__transfer_yield(l, latch_priority_on_yielded) == CLAVE_OK)
        l->yield_token = l->place->node.token;
    else
        clave__latch_try_later(l);
}

static void latch_priority_on_claimed(clave_async_client *c, clave_err err, void *arg)
{
    clave_async_latch *l = arg;
    (void)c;
    clave_err_class class = clave_err_classify(err);
    bool made = class != CLAVE_CLASS_RETRY && class != CLAVE_CLASS_UNKNOWN;
    if (made || l->state != LATCH_CLAIMED)
        return;
    clave__latch_enter(l, LATCH_QUEUED);
    clave__latch_try_later(l);
}

/* Asks once per place. A candidate that arrives later with a higher priority will claim for
 * itself. */
void clave__latch_claim(clave_async_latch *l)
{
    if (!l->preempt || l->state != LATCH_QUEUED || l->place->state != CONTENDER_WAITING)
        return;
    if (clave__transfer_claim(l, latch_priority_on_claimed) == CLAVE_OK)
        clave__latch_enter(l, LATCH_CLAIMED);
    else
        clave__latch_try_later(l);
}

/* Since it resigned, it has been in the queue without its priority. If it had its priority back at
 * once, the next leader would hand over to it; so it waits for one session timeout. */
static void latch_priority_on_regain(struct timer *t, int64_t now)
{
    (void)now;
    clave_async_latch *l = LIST_ENTRY(t, struct clave_async_latch, regain);
    bool waits = l->state == LATCH_QUEUED || l->state == LATCH_CLAIMED;
    if (waits && l->place->spec != &l->ranked && clave__latch_rejoin(l, false) != CLAVE_OK)
        clave__latch_regain_later(l);
}

clave_err clave__latch_set_priority(clave_async_latch *l, const clave_latch_options *o)
{
    char tag[CLAVE_PRIORITY_TAG];
    l->priority = o->spread ? clave__latch_priority_spread(l->config.path, l->id) : o->priority;
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
    assert(l->priority != 0);
    int64_t pause = clave_async_client_session_timeout(l->client);
    clave__client_timer_set(l->client, &l->regain, clave__client_now(l->client) + pause);
}

void clave__latch_priority_init(clave_async_latch *l)
{
    clave__timer_init(&l->regain, latch_priority_on_regain);
}
