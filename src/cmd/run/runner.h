/* runner.h - the process of `clave lock` or `clave elect` itself, shared by runner.c (session,
 * queue, signals, leaving) and child.c (while the command runs). One thread, one loop.
 *
 *   CONNECTING ──▶ WAITING ──▶ HOLDING ──▶ KEEPING ──▶ LEAVING ──▶ (the loop ends)
 *       │             │           │            ▲          ▲
 *       │             │           ▼            │          │
 *       │             │        SWEEPING ───────┘          │
 *       └─────────────┴────────────────────────────────────┘
 *
 * A program that replaces another in place (in_place.h) begins in HOLDING.
 *
 * A fence (--fence) is supervised as the command is, in HOLDING, and when it has ended the phase is
 * WAITING once more; no other step goes back.
 *
 * WAITING also covers what happens between the grant and the start of the command, and KEEPING is
 * what happens between the end of the command and the release of the lock; see once_and_min_hold.c
 * for both. In SWEEPING the guardian is dead or overdue, and this process kills what is left of the
 * command.
 *
 * Map of src/cmd/run, a command under a lock or a leadership:
 *   run_flags       the flags, parsed into a struct run_plan
 *   runner          the process itself: client, queue, signals, leaving; child: while the
 *                   command runs
 *   guardian/       the second process, which starts and ends the command
 *   run_recipe      the mutex, rwlock, semaphore or latch, and how others see this participant
 *   in_place        --in-place: a newer program goes on with the command
 *   nested_lock     CLAVE_OWNER, and waiting for our own parent
 *   stages/         once_and_min_hold: --once, --lock-delay, --min-hold; run_fence; run_slot
 *   lock_messages   messages and JSON events, and the progress of a wait;
 *                   hook: --on-elected and so on
 *   health_check    --health: runs the checks and says what they mean
 *   command_notify  --notify command: what the command itself says of its state
 *   parent_watch    --with-parent: the process that all of this is to end with
 *   sd_status       what the service manager is told, and when (service/sd_notify: how)
 *   deadline_page   CLAVE_DEADLINE
 *   granted_field   since when the lock is held, as its node tells */
#ifndef CLAVE_CMD_RUN_RUNNER_H
#define CLAVE_CMD_RUN_RUNNER_H

#include <uv.h>

#include "clave/uv.h"
#include "cmd/run/child.h"
#include "cmd/run/command_notify.h"
#include "cmd/run/granted_field.h"
#include "cmd/run/health_check.h"
#include "cmd/run/in_place.h"
#include "cmd/run/lock_messages.h"
#include "cmd/run/nested_lock.h"
#include "cmd/run/parent_watch.h"
#include "cmd/run/run_flags.h"
#include "cmd/run/run_recipe.h"
#include "cmd/run/sd_status.h"
#include "cmd/run/stages/once_and_min_hold.h"
#include "runtime/client/session_file.h"
#include "supervise/holder_policy.h"

enum runner_phase { CONNECTING, WAITING, HOLDING, SWEEPING, KEEPING, LEAVING };

enum { RUNNER_SIGNALS = 10 };

struct runner;

/* How once_and_min_hold.c, child.c and command_notify.c report to the runner without knowing
 * runner.c. */
struct runner_events {
    /* From once_and_min_hold.c: the command may start. This is child_begin. */
    void (*cleared)(struct runner *r);
    /* From child.c: the fence has ended, and the hold is still ours. This is run_fence_ended. */
    void (*fence_ended)(struct runner *r, const struct run_fence_end *end);
    /* From child.c: the command has ended, or was not started. This is run_stages_end. */
    void (*ended)(struct runner *r, int code);
    /* From command_notify.c: the command has sent a message, or is silent for too long. This is
     * child_on_notified. */
    void (*notified)(struct runner *r);
    /* From in_place.c: the new program can take over, so the session may be handed over. */
    void (*agreed)(struct runner *r);
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
    bool reads_acl; /* --acl parent: the list is being read, or `dirs` are being created */
    struct acquisition_dirs dirs;
    struct acquisition acquisition;
    struct nested nested;
    struct run_stages stages;
    struct guardian guardian;
    struct foreground_group terminal;
    struct lock_wait progress;
    struct sd_status service;
    struct health_check health;
    struct command_notify command_notify;
    uv_poll_t reports;      /* reports from the guardian */
    uv_timer_t phase_timer; /* limits how long the current phase may take */
    uv_timer_t watchdog;    /* fires a moment after the guardian should have acted */
    struct parent_alarm parent;
    uv_signal_t signals[RUNNER_SIGNALS];
    struct sigaction before[RUNNER_SIGNALS]; /* actions of the signals before we caught them */
    size_t nsignals;
    int64_t began, acquired_at, gave_up;
    int64_t guardian_session_id; /* the session id that was last sent to the guardian */
    /* The place in the queue, for WAITING. AWAY: there is none, since this candidate is not
     * healthy; WITHDRAWING: it is given up, and the verdict is still to come; SETTLED: the verdict
     * is known. */
    enum { AWAY, STANDING, WITHDRAWING, SETTLED } stand;
    bool told_unhealthy; /* the last message about our health was that we are unhealthy */
    bool waited;         /* the lock was not free when we joined the queue */
    bool asked;          /* another participant asked for the lock, or asked us to resign */
    /* The server has closed the session: the guardian has nothing left to do. */
    bool released;
    bool leaves_session; /* it was not claimed, so closing the client has not closed it */
    bool told_to_end;    /* by a signal, or by the end of the --with-parent process */
    bool stopped;        /* the loop is about to end, */
    bool over;           /* and has ended */
    bool hands_over;     /* after SIGUSR2, with --resume: leaves the lock to the next process */
    struct session_file session_file;
    char *session; /* left by the previous process, until the loop runs; may be NULL */
    struct in_place in_place;
    int code;

    /* The rest is used while the command runs. */
    struct guardian_task task; /* of the command, or of the fence before it */
    struct holder_policy hold_policy;
    bool unhealthy; /* the work is unhealthy, and the guardian was ordered to end it: */
    char unhealthy_why[HEALTH_WHY_CAP];
    bool taken;   /* the lock counts as taken: with --ready, the command was ready */
    int failures; /* how many failures of the check in a row were reported last */
    struct held_text text;
    bool armed;          /* the guardian has the watchdog of the machine open, or may have */
    bool fencing;        /* what runs is the fence, not the command */
    int64_t watchdog_at; /* CLAVE_NEVER: not armed */
    pid_t command;       /* 0: not started yet */
    bool wants_terminal;
    struct holdout holdout; /* the holdout that was reported last, */
    bool stuck;             /* and whether it was reported because it could not be ended */
    int64_t sweep_ms;       /* SWEEPING: milliseconds until the next attempt */
    bool reaped;            /* without the guardian: we have waited for the command */
    int status;
};

/* What the verbs call: acquires the lock, runs the command, releases the lock. Returns the exit
 * code. *told_to_end (may be NULL) tells whether a signal ended this, or the end of the process
 * named by --with-parent. */
int runner_run(const struct run_plan *plan, bool *told_to_end);

#endif
