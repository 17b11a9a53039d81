/* health_policy.h - whether the work under a hold is alive: when its health is checked, how many
 * failures are forgiven, when a candidate may stand, and when a hold has to end although the
 * servers confirm it. Like kill_policy.h it does nothing by itself: what has happened goes in, and
 * what to do comes out. The checks are run by src/cmd/run/health_check.c.
 *
 *   before the command                          while it runs
 *
 *              pass            the command
 *   UNTRIED ──────────▶ FIT ──────────────────▶ STARTING ──────────▶ ALIVE ──────────▶ OVER
 *      │ fail          ▲   │ `fails` failures            a pass, or       `fails` failures
 *      └──────▶ UNFIT ─┘◀──┘ in a row                    the grace is     in a row
 *                     pass                               over
 *
 * Only a candidate that is FIT stands. Failures in STARTING do not count. OVER is final: the hold
 * has to end, and the process with it, since a check that passes afterwards proves nothing about
 * work that is being ended.
 *
 * What must stay true: work that no check would pass any more is OVER at most `fails` periods and
 * one timeout later, not counting the grace after its start, whatever the checks themselves do. So
 * a check that hangs has failed, and one that cannot even be killed fails again once a period. */
#ifndef CLAVE_SUPERVISE_HEALTH_POLICY_H
#define CLAVE_SUPERVISE_HEALTH_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum health_phase {
    HEALTH_UNTRIED,
    HEALTH_FIT,
    HEALTH_UNFIT,
    HEALTH_STARTING,
    HEALTH_ALIVE,
    HEALTH_OVER,
    HEALTH_PHASES
};

struct health_terms {
    int64_t every_ms;   /* from the start of one check to that of the next */
    int64_t timeout_ms; /* a check has failed when it has run for this long; at most every_ms */
    int64_t grace_ms;   /* after the start of the command failures do not count for this long */
    int fails;          /* so many failures in a row are too many */
};

struct health_policy {
    enum health_phase phase;
    enum { HEALTH_CHECK_NONE, HEALTH_CHECK_RUNS, HEALTH_CHECK_KILLED } check;
    struct health_terms terms;
    int64_t began;       /* when the latest check was started */
    int64_t due_at;      /* when to start the next or, if KILLED, to count another failure */
    int64_t grace_until; /* for STARTING */
    int failures;        /* in a row */
    bool stale;          /* the check was started before the command: what it says does not count */
};

/* What to do. */
enum {
    HEALTH_START_CHECK = 1,
    HEALTH_KILL_CHECK = 2, /* it has failed; report its end all the same */
};

void clave__health_policy_begin(struct health_policy *p, const struct health_terms *terms,
                                int64_t now);
/* The command is being started. */
void clave__health_policy_run(struct health_policy *p, int64_t now);
/* The check has ended, by itself or killed. Call it before _step if both are due: a check that
 * ended in time is not to fail because this process was late. */
void clave__health_policy_ended(struct health_policy *p, bool passed);
/* Call it when something has happened or is due. Returns what to do. */
unsigned clave__health_policy_step(struct health_policy *p, int64_t now);
/* When to call _step next; CLAVE_NEVER. */
int64_t clave__health_policy_wake_at(const struct health_policy *p);

#endif
