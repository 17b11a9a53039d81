/* notify_policy.c - when a command that talks to its service manager is given up
 * (notify_policy.h). Called by src/cmd/run and the simulated world. The phase changes in
 * notify_policy_move only. */
#include "supervise/notify_policy.h"

#include <assert.h>

#include "base/deadline.h"
#include "clave/async/client.h"

enum notify_event { EVENT_READY, EVENT_ALIVE, EVENT_STOPPING, EVENT_END, EVENTS };

/* clang-format off */
static const enum notify_phase moves[NOTIFY_PHASES][EVENTS] = {
    /*                     READY            ALIVE            STOPPING         END */
    [NOTIFY_STARTING] = {NOTIFY_RUNNING,  NOTIFY_RUNNING,  NOTIFY_STOPPING, NOTIFY_OVER},
    [NOTIFY_RUNNING]  = {NOTIFY_RUNNING,  NOTIFY_RUNNING,  NOTIFY_STOPPING, NOTIFY_OVER},
    [NOTIFY_STOPPING] = {NOTIFY_STOPPING, NOTIFY_STOPPING, NOTIFY_STOPPING, NOTIFY_OVER},
    [NOTIFY_OVER]     = {NOTIFY_OVER,     NOTIFY_OVER,     NOTIFY_OVER,     NOTIFY_OVER},
};
/* clang-format on */

/* A new phase has a new limit, and a sign of life moves that of the present one. Without a watchdog
 * only the start has a limit, also for a command that stops before it was ready. */
static void notify_policy_move(struct notify_policy *p, enum notify_event event, int64_t now)
{
    enum notify_phase before = p->phase;
    int64_t watchdog = p->terms.watchdog_ms,
            silent_until = watchdog > 0 ? now + watchdog : CLAVE_NEVER;
    p->phase = moves[p->phase][event];
    if (p->phase == NOTIFY_OVER)
        p->due_at = CLAVE_NEVER;
    else if (p->phase != before && (p->phase == NOTIFY_RUNNING || watchdog > 0))
        p->due_at = silent_until;
    else if (event == EVENT_ALIVE && p->due_at < silent_until)
        p->due_at = silent_until;
}

void clave__notify_policy_begin(struct notify_policy *p, const struct notify_terms *terms,
                                int64_t now)
{
    bool limited = terms->ready || terms->watchdog_ms > 0;
    assert(terms->watchdog_ms >= 0 && (!limited || terms->ready_ms > 0));
    *p = (struct notify_policy){.terms = *terms,
                                .due_at = limited ? now + terms->ready_ms : CLAVE_NEVER};
}

void clave__notify_policy_hear(struct notify_policy *p, const struct notify_said *said, int64_t now)
{
    if (p->phase == NOTIFY_OVER)
        return;
    p->ready |= said->ready;
    if (said->ready)
        notify_policy_move(p, EVENT_READY, now);
    if (said->alive && (p->phase != NOTIFY_STARTING || !p->terms.ready))
        notify_policy_move(p, EVENT_ALIVE, now);
    if (said->stopping)
        notify_policy_move(p, EVENT_STOPPING, now);
    bool waits = p->phase == NOTIFY_STARTING || p->phase == NOTIFY_STOPPING;
    if (waits && p->due_at != CLAVE_NEVER && p->due_at < now + said->extend_ms)
        p->due_at = now + said->extend_ms;
    if (said->failed) {
        p->why = NOTIFY_FAILED;
        notify_policy_move(p, EVENT_END, now);
    }
}

void clave__notify_policy_step(struct notify_policy *p, int64_t now)
{
    if (now < p->due_at)
        return;
    bool starts = p->phase == NOTIFY_STARTING || p->terms.watchdog_ms == 0;
    p->why = starts ? NOTIFY_NOT_READY : NOTIFY_SILENT;
    notify_policy_move(p, EVENT_END, now);
}

int64_t clave__notify_policy_wake_at(const struct notify_policy *p)
{
    return p->due_at;
}
