/* health_policy.c - when the work under a hold is checked and given up (health_policy.h). Called by
 * src/cmd/run and the simulated world. The phase changes in health_policy_move only. */
#include "supervise/health_policy.h"

#include <assert.h>

#include "base/deadline.h"
#include "clave/async/client.h"

enum health_event {
    EVENT_PASS,
    EVENT_FAIL, /* not yet one too many */
    EVENT_OUT,  /* one failure too many */
    EVENT_COMMAND,
    EVENT_GRACE_OVER,
    EVENTS
};

/* clang-format off */
static const enum health_phase moves[HEALTH_PHASES][EVENTS] = {
    /*                     PASS          FAIL             OUT              COMMAND          GRACE_OVER */
    [HEALTH_UNTRIED]  = {HEALTH_FIT,   HEALTH_UNFIT,    HEALTH_UNFIT,    HEALTH_STARTING, HEALTH_UNTRIED},
    [HEALTH_FIT]      = {HEALTH_FIT,   HEALTH_FIT,      HEALTH_UNFIT,    HEALTH_STARTING, HEALTH_FIT},
    [HEALTH_UNFIT]    = {HEALTH_FIT,   HEALTH_UNFIT,    HEALTH_UNFIT,    HEALTH_STARTING, HEALTH_UNFIT},
    [HEALTH_STARTING] = {HEALTH_ALIVE, HEALTH_STARTING, HEALTH_STARTING, HEALTH_STARTING, HEALTH_ALIVE},
    [HEALTH_ALIVE]    = {HEALTH_ALIVE, HEALTH_ALIVE,    HEALTH_OVER,     HEALTH_ALIVE,    HEALTH_ALIVE},
    [HEALTH_OVER]     = {HEALTH_OVER,  HEALTH_OVER,     HEALTH_OVER,     HEALTH_OVER,     HEALTH_OVER},
};
/* clang-format on */

static void health_policy_move(struct health_policy *p, enum health_event event)
{
    p->phase = moves[p->phase][event];
}

static void health_policy_count(struct health_policy *p, bool passed)
{
    bool forgiven = passed || p->phase == HEALTH_STARTING;
    p->failures = forgiven ? 0 : p->failures + 1;
    if (passed)
        health_policy_move(p, EVENT_PASS);
    else
        health_policy_move(p, p->failures >= p->terms.fails ? EVENT_OUT : EVENT_FAIL);
}

void clave__health_policy_begin(struct health_policy *p, const struct health_terms *terms,
                                int64_t now)
{
    assert(terms->timeout_ms > 0 && terms->timeout_ms <= terms->every_ms && terms->fails > 0);
    *p = (struct health_policy){.terms = *terms, .due_at = now};
}

void clave__health_policy_run(struct health_policy *p, int64_t now)
{
    p->stale = true;
    p->failures = 0;
    p->grace_until = now + p->terms.grace_ms;
    health_policy_move(p, EVENT_COMMAND);
}

void clave__health_policy_ended(struct health_policy *p, bool passed)
{
    bool counts = p->check == HEALTH_CHECK_RUNS && !p->stale;
    assert(p->check != HEALTH_CHECK_NONE);
    p->check = HEALTH_CHECK_NONE;
    p->due_at = p->began + p->terms.every_ms;
    if (counts)
        health_policy_count(p, passed);
}

/* The check has run for too long. If killing it takes effect, the next one is due a period after
 * the start of this one (_ended); if it does not, this one fails again after another period. */
static unsigned health_policy_time_out(struct health_policy *p, int64_t now)
{
    p->check = HEALTH_CHECK_KILLED;
    p->due_at = now + p->terms.every_ms;
    if (!p->stale)
        health_policy_count(p, false);
    return HEALTH_KILL_CHECK;
}

static unsigned health_policy_next(struct health_policy *p, int64_t now)
{
    bool stuck = p->check == HEALTH_CHECK_KILLED;
    p->due_at = now + p->terms.every_ms;
    if (stuck) {
        health_policy_count(p, false);
        return 0;
    }
    p->check = HEALTH_CHECK_RUNS;
    p->began = now;
    p->stale = false;
    return HEALTH_START_CHECK;
}

unsigned clave__health_policy_step(struct health_policy *p, int64_t now)
{
    bool runs = p->check == HEALTH_CHECK_RUNS;
    if (p->phase == HEALTH_STARTING && now >= p->grace_until)
        health_policy_move(p, EVENT_GRACE_OVER);
    if (p->phase == HEALTH_OVER)
        return 0;
    if (runs)
        return now < p->began + p->terms.timeout_ms ? 0 : health_policy_time_out(p, now);
    return now < p->due_at ? 0 : health_policy_next(p, now);
}

int64_t clave__health_policy_wake_at(const struct health_policy *p)
{
    int64_t grace = p->phase == HEALTH_STARTING ? p->grace_until : CLAVE_NEVER;
    if (p->phase == HEALTH_OVER)
        return CLAVE_NEVER;
    if (p->check == HEALTH_CHECK_RUNS)
        return deadline_earlier(grace, p->began + p->terms.timeout_ms);
    return deadline_earlier(grace, p->due_at);
}
