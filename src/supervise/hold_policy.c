/* hold_policy.c - when the holder's side ends a command (hold_policy.h). Called by src/cmd/run and
 * the simulated world. Invariant: time and events come in as arguments, and actions go out as
 * values. */
#include "supervise/hold_policy.h"

#include <assert.h>

#include "base/deadline.h"
#include "clave/async/client.h"

void clave__hold_policy_begin(struct hold_policy *p, const struct kill_policy_terms *terms)
{
    assert(terms->grace_ms >= 0 && terms->lead_ms > 0);
    *p = (struct hold_policy){.terms = *terms, .deadline = CLAVE_NEVER, .gone_by = CLAVE_NEVER};
}

int64_t clave__hold_policy_extend(struct hold_policy *p, int64_t deadline)
{
    assert(deadline != KILL_POLICY_NO_DEADLINE);
    p->deadline = deadline;
    return deadline_earlier(deadline, p->terms.until);
}

/* What is lost by its deadline had to be over by then; what is lost before has a grace from now
 * on. */
void clave__hold_policy_lose(struct hold_policy *p, int64_t now)
{
    p->lost = true;
    p->gone_by = now + p->terms.grace_ms + p->terms.lead_ms;
}

/* A moment before the end, which is one behind the guardian's own. */
static int64_t hold_policy_limit_before(const struct hold_policy *p, int64_t end)
{
    return end == CLAVE_NEVER ? end : end - p->terms.lead_ms / 2;
}

/* By then the command has had its grace behind the maximum hold. */
static int64_t end_of_max_hold(const struct hold_policy *p)
{
    int64_t until = p->terms.until;
    return until == CLAVE_NEVER ? until : until + p->terms.grace_ms + p->terms.lead_ms;
}

static int64_t limit_of_hold(const struct hold_policy *p)
{
    bool never = p->terms.on_lost == ON_LOST_IGNORE;
    return hold_policy_limit_before(p, never ? CLAVE_NEVER
                                             : deadline_earlier(p->deadline, p->gone_by));
}

int64_t clave__hold_policy_limit(const struct hold_policy *p)
{
    if (p->excused)
        return CLAVE_NEVER;
    return deadline_earlier(limit_of_hold(p), hold_policy_limit_before(p, end_of_max_hold(p)));
}

bool clave__hold_policy_is_overdue(struct hold_policy *p, int64_t now)
{
    if (p->phase != HOLD_POLICY_WATCHING || now < clave__hold_policy_limit(p))
        return false;
    p->lost |= now >= limit_of_hold(p);
    p->overdue = true;
    p->phase = HOLD_POLICY_SWEEPING;
    return true;
}

void clave__hold_policy_bereave(struct hold_policy *p)
{
    p->phase = HOLD_POLICY_SWEEPING;
}

void clave__hold_policy_excuse(struct hold_policy *p)
{
    p->excused = true;
}

bool clave__hold_policy_was_cut_short(const struct hold_policy *p, enum kill_policy_cause cause)
{
    return p->lost || p->overdue || cause == CAUSE_DEADLINE || cause == CAUSE_LOST ||
           cause == CAUSE_MAX_HOLD || cause == CAUSE_PARENT;
}
