/* kill_policy.c - when the guardian warns and kills a command (kill_policy.h). Called by
 * src/cmd/run and the simulated world. What must stay true: KILL is due before the hold can become
 * somebody else's, whatever else has happened. */
#include "supervise/kill_policy.h"

#include <assert.h>

#include "base/deadline.h"
#include "clave/async/client.h"

enum { GRACE_MAX_MS = 5000, LEAD_MIN_MS = 20, LEAD_MAX_MS = 100, KILL_AGAIN_MS = 10 };
/* timeout(1) sends its signal both to the process and to its group; signals this close together
 * count as one. */
enum { TWICE_MS = 100 };

static int64_t kill_policy_clamp(int64_t n, int64_t min, int64_t max)
{
    if (n < min)
        return min;
    return n > max ? max : n;
}

int64_t clave__kill_policy_grace(int64_t timeout_ms, int64_t wish)
{
    int64_t grace = wish < 0 ? kill_policy_clamp(timeout_ms / 8, 0, GRACE_MAX_MS) : wish;
    return kill_policy_clamp(grace, 0, timeout_ms / 4);
}

int64_t clave__kill_policy_lead(int64_t timeout_ms)
{
    return kill_policy_clamp(timeout_ms / 40, LEAD_MIN_MS, LEAD_MAX_MS);
}

/* ---- time ------------------------------------------------------------------------------------ */

static void kill_policy_note_deadline(struct kill_policy *p, int64_t deadline)
{
    if (deadline != KILL_POLICY_NO_DEADLINE)
        p->deadline = deadline;
}

/* When nothing of the command may be alive any more because of the deadline. */
static int64_t kill_policy_limit_of_deadline(const struct kill_policy *p)
{
    bool never = p->terms.on_lost == ON_LOST_IGNORE;
    return never ? CLAVE_NEVER : p->deadline - p->terms.lead_ms;
}

static int64_t kill_policy_term_at_deadline(const struct kill_policy *p)
{
    int64_t limit = kill_policy_limit_of_deadline(p);
    bool warned = limit != CLAVE_NEVER && p->terms.on_lost == ON_LOST_TERM;
    return warned ? limit - p->terms.grace_ms : limit;
}

/* When to warn the command. It may use a maximum hold in full, with its grace coming afterwards.
 * Nobody else has been promised the hold at that time: it stays held until nothing of the command
 * is left. */
static int64_t kill_policy_warn_at(const struct kill_policy *p)
{
    return deadline_earlier(kill_policy_term_at_deadline(p), p->terms.until);
}

static int64_t kill_at(const struct kill_policy *p)
{
    int64_t at = deadline_earlier(p->kill_at, kill_policy_limit_of_deadline(p));
    return p->lost_by != 0 ? deadline_earlier(at, p->lost_by) : at;
}

int64_t clave__kill_policy_wake_at(struct kill_policy *p, int64_t deadline, int64_t now)
{
    kill_policy_note_deadline(p, deadline);
    switch (p->phase) {
    case KILL_POLICY_RUNNING:
        return kill_policy_warn_at(p);
    case KILL_POLICY_ENDING:
        return kill_at(p);
    case KILL_POLICY_KILLING:
        return now + p->again_ms;
    case KILL_POLICY_IDLE:
    case KILL_POLICY_ENDED:
        break;
    }
    return CLAVE_NEVER;
}

/* ---- what to do ------------------------------------------------------------------------------ */

bool clave__kill_policy_run(struct kill_policy *p, const struct kill_policy_terms *terms,
                            int64_t deadline, int64_t now)
{
    assert(p->phase == KILL_POLICY_IDLE);
    p->terms = *terms;
    p->again_ms = KILL_AGAIN_MS;
    kill_policy_note_deadline(p, deadline);
    bool late = now >= kill_policy_warn_at(p);
    if (late) /* the holder was not running since it was granted the hold */
        p->cause = CAUSE_DEADLINE;
    p->phase = late ? KILL_POLICY_ENDED : KILL_POLICY_RUNNING;
    return !late;
}

bool clave__kill_policy_ask(struct kill_policy *p, int64_t now)
{
    if (p->phase != KILL_POLICY_RUNNING)
        return false;
    if (!p->asked)
        p->asked_at = now;
    p->insisted = p->asked && now - p->asked_at >= TWICE_MS;
    p->asked = true;
    return p->insisted;
}

int64_t clave__kill_policy_pace(int64_t last_ms, bool stuck)
{
    assert(last_ms >= 0);
    return stuck ? kill_policy_clamp(2 * last_ms, KILL_AGAIN_MS, KILL_POLICY_SLOWEST_MS)
                 : KILL_AGAIN_MS;
}

void clave__kill_policy_killed(struct kill_policy *p, bool stuck)
{
    assert(p->phase == KILL_POLICY_KILLING);
    p->again_ms = clave__kill_policy_pace(p->again_ms, stuck);
}

void clave__kill_policy_refused(struct kill_policy *p)
{
    assert(p->phase == KILL_POLICY_RUNNING);
    p->phase = KILL_POLICY_ENDED;
}

/* From when the grace counts. If the maximum hold has passed, from its end, whatever the cause: a
 * guardian that was stopped for a while may notice another cause first. */
static int64_t kill_policy_grace_from(const struct kill_policy *p, enum kill_policy_cause cause,
                                      int64_t now)
{
    assert(cause != CAUSE_SIGNAL || p->asked);
    return deadline_earlier(cause == CAUSE_SIGNAL ? p->asked_at : now, p->terms.until);
}

static unsigned kill_policy_begin_ending(struct kill_policy *p, enum kill_policy_cause cause,
                                         int64_t now)
{
    assert(p->phase == KILL_POLICY_RUNNING);
    bool loss = cause == CAUSE_DEADLINE || cause == CAUSE_LOST || cause == CAUSE_UNHEALTHY;
    bool at_once = loss && p->terms.on_lost == ON_LOST_KILL;
    p->cause = cause;
    p->kill_at = kill_policy_grace_from(p, cause, now) + p->terms.grace_ms;
    p->phase = at_once ? KILL_POLICY_KILLING : KILL_POLICY_ENDING;
    return at_once ? KILL_POLICY_TELL : KILL_POLICY_TELL | KILL_POLICY_TERM;
}

static unsigned kill_policy_look_at_running(struct kill_policy *p,
                                            const struct kill_policy_sight *s, int64_t now)
{
    if (s->told_to_stop && p->terms.on_lost != ON_LOST_IGNORE)
        return kill_policy_begin_ending(p, s->unhealthy ? CAUSE_UNHEALTHY : CAUSE_LOST, now);
    if (s->reaped && s->nothing_left) {
        p->phase = KILL_POLICY_ENDED;
        return KILL_POLICY_TELL_END;
    }
    if (s->reaped)
        return kill_policy_begin_ending(p, CAUSE_NONE, now);
    if (s->alone)
        return kill_policy_begin_ending(p, CAUSE_KILLED, now);
    if (s->parent_ended)
        return kill_policy_begin_ending(p, CAUSE_PARENT, now);
    if (p->insisted)
        return kill_policy_begin_ending(p, CAUSE_SIGNAL, now);
    if (now >= p->terms.until)
        return kill_policy_begin_ending(p, CAUSE_MAX_HOLD, now);
    if (now >= kill_policy_term_at_deadline(p))
        return kill_policy_begin_ending(p, CAUSE_DEADLINE, now);
    return 0;
}

unsigned clave__kill_policy_step(struct kill_policy *p, const struct kill_policy_sight *s,
                                 int64_t now)
{
    unsigned todo = 0;
    kill_policy_note_deadline(p, s->deadline);
    if (s->deadline == KILL_POLICY_NO_DEADLINE && p->terms.grace_lost_ms > 0 && p->lost_by == 0)
        p->lost_by = now + p->terms.grace_lost_ms;
    if (p->phase == KILL_POLICY_IDLE && s->alone)
        p->phase = KILL_POLICY_ENDED;
    if (p->phase == KILL_POLICY_RUNNING)
        todo = kill_policy_look_at_running(p, s, now);
    if (p->phase == KILL_POLICY_ENDING && now >= kill_at(p))
        p->phase = KILL_POLICY_KILLING;
    if (p->phase == KILL_POLICY_KILLING)
        todo |= KILL_POLICY_KILL;
    if ((p->phase == KILL_POLICY_ENDING || p->phase == KILL_POLICY_KILLING) && s->nothing_left) {
        p->phase = KILL_POLICY_ENDED;
        todo = (todo & KILL_POLICY_TELL) | KILL_POLICY_TELL_END;
    }
    return todo;
}
