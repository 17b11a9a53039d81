/* runner.h - the process of `clave lock` or `clave elect` itself, as runner.c (session, queue,
 * leaving) and child.c (while the command runs) share it. One thread, one loop.
 *
 *   CONNECTING ──▶ WAITING ──▶ HOLDING ──▶ KEEPING ──▶ LEAVING ──▶ (the loop ends)
 *       │             │           │            ▲          ▲
 *       │             │           ▼            │          │
 *       │             │        SWEEPING ───────┘          │
 *       └─────────────┴────────────────────────────────────┘
 *
 * WAITING includes what comes between the grant and the command, KEEPING is what comes between its
 * end and the release: run_policy.c. SWEEPING: the guardian is dead, or overdue; what is left of
 * the command is killed here. */
#ifndef CLAVE_CMD_RUN_RUNNER_H
#define CLAVE_CMD_RUN_RUNNER_H

#include <uv.h>

#include "clave/uv.h"
#include "cmd/cli/terminal.h"
#include "cmd/run/acquisition.h"
#include "cmd/run/lock_flags.h"
#include "cmd/run/nested.h"
#include "cmd/run/progress.h"
#include "cmd/run/run_policy.h"
#include "cmd/run/sd_status.h"
#include "supervise/hold_policy.h"

enum runner_phase { CONNECTING, WAITING, HOLDING, SWEEPING, KEEPING, LEAVING };

enum { RUNNER_SIGNALS = 9 };

struct runner {
    const struct lock_plan *plan;
    struct options *o;
    enum runner_phase phase;
    uv_loop_t loop;
    clave_async_client *client;
    clave_uv *uv;
    struct acquisition acquisition;
    struct nested nested;
    struct run_policy run_policy;
    struct guardian guardian;
    struct terminal terminal;
    struct progress progress;
    struct sd_status service;
    uv_poll_t reports;   /* of the guardian */
    uv_timer_t patience; /* until what may take only so long is given up */
    uv_timer_t watchdog; /* a moment behind the guardian's own */
    uv_signal_t signals[RUNNER_SIGNALS];
    size_t nsignals;
    size_t identities; /* --auth: not yet answered */
    int64_t began, acquired_at;
    int64_t guardian_session_id; /* the id the guardian knows */
    bool waited;                 /* it was not free when we came */
    bool asked;                  /* to resign */
    bool released;        /* the server has ended the session: nothing is left for the guardian */
    bool ended_by_signal; /* by a signal */
    bool stopped;         /* the loop is about to end */
    int code;

    /* while the command runs */
    struct guardian_task task;
    struct hold_policy hold_policy;
    int64_t watchdog_at; /* CLAVE_NEVER: not armed */
    pid_t command;       /* 0: not started yet */
    bool wants_terminal;
    bool reaped; /* SWEEPING: by us */
    int status;
};

/* The verbs' entry: acquires the lock, runs the command, releases the lock. Returns the exit code.
 * *ended_by_signal (may be NULL): a signal asked this process to end. */
int runner_run(const struct lock_plan *plan, bool *ended_by_signal);

/* Leaves the queue or releases the lock, then ends the loop with this exit code. */
void runner_leave(struct runner *r, int code);

/* ---- child.c ----------------------------------------------------------------------------- */

/* Milliseconds, by the session timeout as the server granted it: from SIGTERM to SIGKILL, and
 * from SIGKILL to the hold deadline. */
int64_t child_grace(const struct runner *r);
int64_t child_lead(const struct runner *r);
/* The lock is held: starts the command. */
void child_begin(struct runner *r);
/* At the end of every pass over the client: the deadline may have moved. */
void child_publish(struct runner *r);
void child_lost(struct runner *r, clave_err why);
/* Somebody wants the leader to resign: the command is ended, in time. */
void child_asked(struct runner *r);
void child_on_signal(struct runner *r, int sig);
/* SIGCONT: as far as the lock allows, the command goes on too. */
void child_on_continued(struct runner *r);
void child_on_reports(uv_poll_t *poll, int status, int events);
void child_on_watchdog(uv_timer_t *timer);

#endif
