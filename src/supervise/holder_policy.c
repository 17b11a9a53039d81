/* holder_policy.c - when the holder's side ends a command (holder_policy.h). Called by src/cmd/run
 * and the simulated world. What must stay true: time and events come in as arguments, and actions
 * are return values; there are no side effects. */
#include "supervise/holder_policy.h"

#include <assert.h>

#include "base/deadline.h"
#include "clave/async/client.h"

void clave__holder_policy_begin(struct holder_policy *p, const struct kill_policy_terms *terms)
{
    assert(terms->grace_ms >= 0 && terms->lead_ms > 0);
    *p = (struct holder_policy){
        .terms = *terms, .deadline = CLAVE_NEVER, .gone_by = CLAVE_NEVER, .ended_by = CLAVE_NEVER};
}

int64_t clave__holder_policy_extend(struct holder_policy *p, int64_t deadline)
{
    assert(deadline != KILL_POLICY_NO_DEADLINE);
    p->deadline = deadline;
    return deadline_earlier(deadline, p->terms.until);
}

/* A hold that is lost at its deadline had to be over by then anyway; for one that is lost earlier,
 * the grace begins now. */
void clave__holder_policy_lose(struct holder_policy *p, int64_t now)
{
    p->lost = true;
    p->gone_by = now + p->terms.grace_ms + p->terms.lead_ms;
}

void clave__holder_policy_end(struct holder_policy *p, int64_t now)
{
    if (p->terms.on_lost != ON_LOST_IGNORE)
        p->ended_by = deadline_earlier(p->ended_by, now + p->terms.grace_ms + p->terms.lead_ms);
}

/* A moment before `end`, but after the guardian's own limit. */
static int64_t holder_policy_limit_before(const struct holder_policy *p, int64_t end)
{
    return end == CLAVE_NEVER ? end : end - p->terms.lead_ms / 2;
}

/* By then the command has had its grace after the maximum hold. */
static int64_t policy_end_of_max_hold(const struct holder_policy *p)
{
    int64_t until = p->terms.until;
    return until == CLAVE_NEVER ? until : until + p->terms.grace_ms + p->terms.lead_ms;
}

static int64_t policy_limit_of_hold(const struct holder_policy *p)
{
    bool never = p->terms.on_lost == ON_LOST_IGNORE;
    return holder_policy_limit_before(p, never ? CLAVE_NEVER
                                               : deadline_earlier(p->deadline, p->gone_by));
}

int64_t clave__holder_policy_limit(const struct holder_policy *p)
{
    if (p->excused)
        return CLAVE_NEVER;
    if (p->watched)
        return policy_limit_of_hold(p);
    int64_t held = deadline_earlier(policy_end_of_max_hold(p), p->ended_by);
    return deadline_earlier(policy_limit_of_hold(p), holder_policy_limit_before(p, held));
}

bool clave__holder_policy_is_overdue(struct holder_policy *p, int64_t now)
{
    if (p->phase != HOLD_POLICY_WATCHING || now < clave__holder_policy_limit(p))
        return false;
    p->lost |= now >= policy_limit_of_hold(p);
    p->overdue = true;
    p->phase = HOLD_POLICY_SWEEPING;
    return true;
}

void clave__holder_policy_bereave(struct holder_policy *p)
{
    p->phase = HOLD_POLICY_SWEEPING;
}

void clave__holder_policy_excuse(struct holder_policy *p)
{
    p->excused = true;
}

void clave__holder_policy_watch(struct holder_policy *p)
{
    p->watched = true;
}

bool clave__holder_policy_was_cut_short(const struct holder_policy *p, enum kill_policy_cause cause)
{
    return p->lost || p->overdue || cause == CAUSE_DEADLINE || cause == CAUSE_LOST ||
           cause == CAUSE_MAX_HOLD || cause == CAUSE_PARENT || cause == CAUSE_UNHEALTHY;
}
