/* kill_policy.c - when the guardian warns and kills a command (kill_policy.h). Called by
 * src/cmd/run and the simulated world. Invariant: KILL is due before the hold may be another's,
 * whatever else has happened. */
#include "supervise/kill_policy.h"

#include "base/deadline.h"
#include "clave/async/client.h"

enum { GRACE_MAX_MS = 5000, LEAD_MIN_MS = 20, LEAD_MAX_MS = 100, KILL_AGAIN_MS = 10 };
/* timeout(1) sends its signal to the process and to its group: so close together they are one. */
enum { TWICE_MS = 100 };

static int64_t clamp(int64_t n, int64_t min, int64_t max)
{
    return n < min ? min : n > max ? max : n;
}

int64_t clave__kill_policy_grace(int64_t timeout_ms, int64_t wish)
{
    int64_t grace = wish < 0 ? clamp(timeout_ms / 8, 0, GRACE_MAX_MS) : wish;
    return clamp(grace, 0, timeout_ms / 4);
}

int64_t clave__kill_policy_lead(int64_t timeout_ms)
{
    return clamp(timeout_ms / 40, LEAD_MIN_MS, LEAD_MAX_MS);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void note_deadline(struct kill_policy *l, int64_t deadline)
{
    if (deadline != KILL_POLICY_NO_DEADLINE)
        l->deadline = deadline;
}

/* When nothing of the command may be alive any more. */
static int64_t limit_of_deadline(const struct kill_policy *l)
{
    bool never = l->terms.on_lost == ON_LOST_IGNORE;
    return never ? CLAVE_NEVER : l->deadline - l->terms.lead_ms;
}

static int64_t term_at_deadline(const struct kill_policy *l)
{
    int64_t limit = limit_of_deadline(l);
    bool warned = limit != CLAVE_NEVER && l->terms.on_lost == ON_LOST_TERM;
    return warned ? limit - l->terms.grace_ms : limit;
}

/* A maximum hold is the command's in full; its grace comes behind it. Nobody else is promised the
 * hold by then: it goes on when nothing of the command is left. */
static int64_t warn_at(const struct kill_policy *l)
{
    return deadline_earlier(term_at_deadline(l), l->terms.until);
}

static int64_t kill_at(const struct kill_policy *l)
{
    return deadline_earlier(l->kill_at, limit_of_deadline(l));
}

int64_t clave__kill_policy_wake_at(struct kill_policy *l, int64_t deadline, int64_t now)
{
    note_deadline(l, deadline);
    switch (l->phase) {
    case KILL_POLICY_RUNNING:
        return warn_at(l);
    case KILL_POLICY_ENDING:
        return kill_at(l);
    case KILL_POLICY_KILLING:
        return now + l->again_ms;
    case KILL_POLICY_IDLE:
    case KILL_POLICY_ENDED:
        break;
    }
    return CLAVE_NEVER;
}

/* ---- what is done -------------------------------------------------------------------------- */

bool clave__kill_policy_run(struct kill_policy *l, const struct kill_policy_terms *terms,
                            int64_t deadline, int64_t now)
{
    l->terms = *terms;
    l->again_ms = KILL_AGAIN_MS;
    note_deadline(l, deadline);
    bool late = now >= warn_at(l);
    if (late) /* the holder slept since it was granted */
        l->cause = CAUSE_DEADLINE;
    l->phase = late ? KILL_POLICY_ENDED : KILL_POLICY_RUNNING;
    return !late;
}

bool clave__kill_policy_ask(struct kill_policy *l, int64_t now)
{
    if (l->phase != KILL_POLICY_RUNNING)
        return false;
    if (!l->asked)
        l->asked_at = now;
    l->insisted = l->asked && now - l->asked_at >= TWICE_MS;
    l->asked = true;
    return l->insisted;
}

int64_t clave__kill_policy_pace(int64_t last_ms, bool stuck)
{
    return stuck ? clamp(2 * last_ms, KILL_AGAIN_MS, KILL_POLICY_SLOWEST_MS) : KILL_AGAIN_MS;
}

void clave__kill_policy_killed(struct kill_policy *l, bool stuck)
{
    l->again_ms = clave__kill_policy_pace(l->again_ms, stuck);
}

void clave__kill_policy_refused(struct kill_policy *l)
{
    l->phase = KILL_POLICY_ENDED;
}

/* If the maximum hold has passed, from then, whatever the cause: a guardian that was stopped
 * meanwhile may see another one first. */
static int64_t grace_from(const struct kill_policy *l, enum kill_policy_cause cause, int64_t now)
{
    return deadline_earlier(cause == CAUSE_SIGNAL ? l->asked_at : now, l->terms.until);
}

static unsigned begin_ending(struct kill_policy *l, enum kill_policy_cause cause, int64_t now)
{
    bool loss = cause == CAUSE_DEADLINE || cause == CAUSE_LOST;
    bool at_once = loss && l->terms.on_lost == ON_LOST_KILL;
    l->cause = cause;
    l->kill_at = grace_from(l, cause, now) + l->terms.grace_ms;
    l->phase = at_once ? KILL_POLICY_KILLING : KILL_POLICY_ENDING;
    return at_once ? KILL_POLICY_TELL : KILL_POLICY_TELL | KILL_POLICY_TERM;
}

static unsigned look_at_running(struct kill_policy *l, const struct kill_policy_sight *s,
                                int64_t now)
{
    if (s->told_to_stop && l->terms.on_lost != ON_LOST_IGNORE)
        return begin_ending(l, CAUSE_LOST, now);
    if (s->reaped && s->nothing_left) {
        l->phase = KILL_POLICY_ENDED;
        return KILL_POLICY_TELL_END;
    }
    if (s->reaped)
        return begin_ending(l, CAUSE_NONE, now);
    if (s->alone)
        return begin_ending(l, CAUSE_KILLED, now);
    if (l->insisted)
        return begin_ending(l, CAUSE_SIGNAL, now);
    if (now >= l->terms.until)
        return begin_ending(l, CAUSE_MAX_HOLD, now);
    if (now >= term_at_deadline(l))
        return begin_ending(l, CAUSE_DEADLINE, now);
    return 0;
}

unsigned clave__kill_policy_step(struct kill_policy *l, const struct kill_policy_sight *s,
                                 int64_t now)
{
    unsigned todo = 0;
    note_deadline(l, s->deadline);
    if (l->phase == KILL_POLICY_IDLE && s->alone)
        l->phase = KILL_POLICY_ENDED;
    if (l->phase == KILL_POLICY_RUNNING)
        todo = look_at_running(l, s, now);
    if (l->phase == KILL_POLICY_ENDING && now >= kill_at(l))
        l->phase = KILL_POLICY_KILLING;
    if (l->phase == KILL_POLICY_KILLING)
        todo |= KILL_POLICY_KILL;
    if ((l->phase == KILL_POLICY_ENDING || l->phase == KILL_POLICY_KILLING) && s->nothing_left) {
        l->phase = KILL_POLICY_ENDED;
        todo = (todo & KILL_POLICY_TELL) | KILL_POLICY_TELL_END;
    }
    return todo;
}
