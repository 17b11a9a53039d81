/* runner.h - the process of `clave lock` or `clave elect` itself, shared by runner.c (session,
 * queue, signals, leaving) and child.c (while the command runs). One thread, one loop.
 *
 *   CONNECTING ──▶ WAITING ──▶ HOLDING ──▶ KEEPING ──▶ LEAVING ──▶ (the loop ends)
 *       │             │           │            ▲          ▲
 *       │             │           ▼            │          │
 *       │             │        SWEEPING ───────┘          │
 *       └─────────────┴────────────────────────────────────┘
 *
 * WAITING includes what happens between the grant and the start of the command, KEEPING is what
 * happens between its end and the release: once_and_min_hold.c. SWEEPING: the guardian is dead or
 * overdue, and what is left of the command is killed here.
 *
 * Map of src/cmd/run, a command under a lock or a leadership:
 *   run_flags       the flags, parsed into a struct run_plan
 *   runner          the process itself: client, queue, signals, leaving; child: while the
 *                   command runs
 *   guardian/       the second process, which starts and ends the command
 *   run_recipe      the mutex, rwlock, semaphore or latch, and how others see this participant
 *   nested_lock     CLAVE_OWNER, and waiting for our own parent
 *   stages/         once_and_min_hold: --once, --lock-delay, --min-hold; run_slot
 *   lock_messages   messages and JSON events, and the progress of a wait;
 *                   hook: --on-elected and so on
 *   parent_watch    the process that all of this is to end with
 *   sd_status       what the service manager is told, and when (service/sd_notify: how)
 *   deadline_page   CLAVE_DEADLINE
 *   granted_field   since when, in the node */
#ifndef CLAVE_CMD_RUN_RUNNER_H
#define CLAVE_CMD_RUN_RUNNER_H

#include <uv.h>

#include "clave/uv.h"
#include "cmd/run/child.h"
#include "cmd/run/lock_messages.h"
#include "cmd/run/nested_lock.h"
#include "cmd/run/parent_watch.h"
#include "cmd/run/run_flags.h"
#include "cmd/run/run_recipe.h"
#include "cmd/run/sd_status.h"
#include "cmd/run/stages/once_and_min_hold.h"
#include "supervise/holder_policy.h"

enum runner_phase { CONNECTING, WAITING, HOLDING, SWEEPING, KEEPING, LEAVING };

enum { RUNNER_SIGNALS = 10 };

struct runner;

/* once_and_min_hold.c and child.c do not know runner.c: they report through these. */
struct runner_events {
    /* By once_and_min_hold.c: the command may start, child_begin. */
    void (*cleared)(struct runner *r);
    /* By child.c: the command has ended, or was not started, run_stages_end. */
    void (*ended)(struct runner *r, int code);
    /* Leaves the queue or releases the lock, then ends the loop with this exit code. */
    void (*leave)(struct runner *r, int code);
};

struct runner {
    const struct runner_events *events;
    const struct run_plan *plan;
    struct options *o;
    enum runner_phase phase;
    uv_loop_t loop;
    clave_async_client *client;
    clave_uv *uv;
    bool reads_acl; /* --acl parent: its answer is awaited, or that of `dirs` */
    struct acquisition_dirs dirs;
    struct acquisition acquisition;
    struct nested nested;
    struct run_stages stages;
    struct guardian guardian;
    struct foreground_group terminal;
    struct lock_wait progress;
    struct sd_status service;
    uv_poll_t reports;      /* from the guardian */
    uv_timer_t phase_timer; /* limits how long the current phase may take */
    uv_timer_t watchdog;    /* fires a moment after the guardian's own */
    struct parent_alarm parent;
    uv_signal_t signals[RUNNER_SIGNALS];
    struct sigaction before[RUNNER_SIGNALS]; /* what they did before */
    size_t nsignals;
    int64_t began, acquired_at, gave_up;
    int64_t guardian_session_id; /* the id the guardian knows */
    bool waited;                 /* the lock was not free when we came */
    bool asked;                  /* another participant asked for the lock, or us to resign */
    /* the server has closed the session: the guardian has nothing left to do */
    bool released;
    bool told_to_end; /* by a signal, or by the end of the process that we are to end with */
    bool stopped;     /* the loop is about to end */
    int code;

    /* While the command runs. */
    struct guardian_task task;
    struct holder_policy hold_policy;
    int64_t watchdog_at; /* CLAVE_NEVER: not armed */
    pid_t command;       /* 0: not started yet */
    bool wants_terminal;
    struct holdout holdout; /* the newest one that was reported, */
    bool stuck;             /* because it could not be ended */
    int64_t sweep_ms;       /* SWEEPING: until the next attempt */
    bool reaped;            /* without the guardian: we have reaped the command */
    int status;
};

/* The verbs' entry: acquires the lock, runs the command, releases the lock. Returns the exit code.
 * *told_to_end (may be NULL): a signal, or the end of --with-parent's process, ended it. */
int runner_run(const struct run_plan *plan, bool *told_to_end);

#endif
