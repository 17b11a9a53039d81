/* runner.c - the process of `clave lock` and `clave elect`: its client and session, the place in
 * the queue, signals, and how it exits. The verbs call runner_run.
 *
 * What must stay true: the phase only moves forward (see runner.h); every path ends in exactly one
 * runner_leave with the exit code; and no signal is lost between the runner and a program that this
 * process executes next. */
#include "cmd/run/runner.h"

#include <assert.h>
#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/deadline.h"
#include "clave/uv.h"
#include "client/client_base.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/standard_error.h"
#include "cmd/cli/unreachable.h"
#include "cmd/run/child.h"
#include "cmd/run/granted_field.h"
#include "cmd/run/guardian/proctree.h"
#include "cmd/run/hook.h"
#include "cmd/run/lock_messages.h"
#include "cmd/run/stages/run_slot.h"
#include "runtime/client/uv_client.h"
#include "runtime/thread_start.h"

enum { LEAVE_MS = 3000 };

/* ---- leaving --------------------------------------------------------------------------------- */

static void runner_on_uv_stopped(void *arg)
{
    struct runner *r = arg;
    r->over = true;
    uv_stop(&r->loop);
}

static void runner_stop(struct runner *r)
{
    assert(r->phase == LEAVING);
    if (r->stopped)
        return;
    r->stopped = true;
    clave_uv_stop(r->uv, runner_on_uv_stopped, r);
    uv_close((uv_handle_t *)&r->reports, NULL);
    uv_close((uv_handle_t *)&r->phase_timer, NULL);
    uv_close((uv_handle_t *)&r->watchdog, NULL);
    parent_alarm_close(&r->parent);
    run_stages_close(r);
    sd_status_close(r);
    health_close(&r->health);
    command_notify_close(r);
    in_place_close(r);
    lock_wait_close(&r->progress);
}

/* Ends the loop. Either the session is closed, or the server has not confirmed that in time, and
 * the guardian closes it in the background. */
static void runner_on_phase_timeout(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    runner_stop(r);
}

/* Closing the session deletes its nodes in a single transaction; but the client leaves a session
 * alone that it has not claimed. */
static void runner_close_session(struct runner *r)
{
    run_stages_release(r);
    r->leaves_session = clave__client_is_unclaimed(r->client);
    clave_async_client_close(r->client, clave_now());
    clave_uv_flush(r->uv);
}

static void runner_tell_not_handed_over(const struct runner *r, const char *why)
{
    diag(r->o, "%s: not handed over, but released: %s", r->plan->path, why);
}

/* Nothing is held here any more. The guardian forgets the session before the file appears, because
 * it would close the session if this process were killed. */
static void runner_on_handed_over(clave_async_client *c, clave_err err, const char *session,
                                  void *arg)
{
    struct runner *r = arg;
    char why[512] = "";
    const struct fault f = {why, sizeof why};
    int32_t timeout_ms = clave_async_client_session_timeout(c);
    if (err == CLAVE_OK) {
        guardian_set_session(&r->guardian, &(struct session_key){0});
        r->guardian_session_id = 0;
    }
    clave_err kept = clave__session_file_end(&r->session_file, session, &f);
    if (err == CLAVE_OK && kept == CLAVE_OK) {
        lock_message_handed_over(r->plan, timeout_ms);
    } else if (err == CLAVE_OK) {
        diag(r->o, "%s: not handed over: %s", r->plan->path, why);
        r->code = EXIT_IO;
    } else if (!r->stopped) {
        runner_tell_not_handed_over(r, clave_async_client_errmsg(c));
        runner_close_session(r);
    }
}

/* Leaves the lock to the next process. False: it is to be released instead. */
static bool runner_hand_over(struct runner *r)
{
    char why[512] = "";
    const struct fault f = {why, sizeof why};
    clave_err err = clave__session_file_begin(&r->session_file, r->plan->resume, &f);
    if (err == CLAVE_OK) {
        err = clave_async_client_hand_over(r->client, clave_now() + LEAVE_MS / 2,
                                           runner_on_handed_over, r);
        clave_uv_flush(r->uv);
        if (err == CLAVE_OK)
            return true;
    }
    (void)clave__session_file_end(&r->session_file, NULL, &f);
    if (err != CLAVE_ENOTHELD) /* it was lost, which has been reported, or was never acquired */
        runner_tell_not_handed_over(r, why[0] ? why : clave_async_client_errmsg(r->client));
    return false;
}

static void runner_on_late(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    r->in_place.phase = IN_PLACE_STAYING;
    r->events->leave(r, r->code);
}

/* A client does not close a session whose hold it has not taken up, since that may be another
 * process's by now. So a lock that is still being taken up after the end of the command is released
 * a moment later or, if no server answers until then, by the guardian. */
static bool runner_leaves_later(struct runner *r, int code)
{
    bool later = r->in_place.phase == IN_PLACE_GOING_ON && r->phase == KEEPING &&
                 !r->hold_policy.lost && !r->in_place.leaves;
    r->in_place.leaves |= later;
    if (later) {
        r->code = code;
        uv_update_time(&r->loop);
        uv_timer_start(&r->phase_timer, runner_on_late, LEAVE_MS, 0);
    }
    return later;
}

static void runner_leave(struct runner *r, int code)
{
    if (r->phase == LEAVING || runner_leaves_later(r, code))
        return;
    r->phase = LEAVING;
    r->code = code;
    bool waits = clave_async_client_is_connected(r->client) || r->hands_over;
    uint64_t limit_ms = waits ? LEAVE_MS : 0;
    lock_wait_end(&r->progress);
    uv_poll_stop(&r->reports);
    uv_timer_stop(&r->watchdog);
    health_stop(&r->health);
    uv_timer_start(&r->phase_timer, runner_on_phase_timeout, limit_ms, 0);
    sd_status_leaving(r);
    if (!r->hands_over || !runner_hand_over(r))
        runner_close_session(r);
}

/* How long to wait for a server to say who holds the lock. */
enum { HOLDER_MS = 3000 };

/* Leaves because a request to the client has failed. */
static void runner_leave_with(struct runner *r, clave_err err)
{
    const struct client_fault *fault = clave__client_latest_fault(r->client);
    runner_leave(r, diag_fault(r->o, r->plan->path, err, fault));
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void runner_record_grant(const struct runner *r)
{
    struct grant_facts g;
    if (!acquisition_held(&r->acquisition, &g))
        return;
    if (g.resumed)
        lock_message_resumed(r->plan, g.token);
    if (r->waited)
        held_since_record(r->client, r->plan, g.node);
}

static void runner_give_up(struct runner *r, const struct lock_obstacle *why)
{
    if (r->phase != WAITING)
        return;
    lock_message_not_acquired(r->plan, r->gave_up - r->began, why);
    runner_leave(r, r->plan->conflict_code);
}

static void runner_on_holder(void *arg, const clave_participant *holder)
{
    struct runner *r = arg;
    runner_give_up(r,
                   &(struct lock_obstacle){.holder = holder,
                                           .left_over = lock_wait_left_over(&r->progress, holder)});
}

static void runner_on_no_holder(uv_timer_t *timer)
{
    runner_give_up(timer->data, &(struct lock_obstacle){.holder = NULL});
}

/* The wait is over: reports what was in the way. This is determined first, since the next request
 * may overwrite the fault. If nothing is known to be in the way, reports who holds the lock,
 * provided the server answers in time. */
static void runner_not_acquired(struct runner *r)
{
    assert(r->phase == WAITING);
    bool away = !clave_async_client_is_connected(r->client);
    const struct lock_obstacle why = {.away = away ? clave_async_client_errmsg(r->client) : NULL,
                                      .put_off = lock_wait_is_put_off(&r->progress),
                                      .limit_missing = acquisition_limit_missing(&r->acquisition)};
    bool known = away || why.put_off || why.limit_missing;
    r->gave_up = clave_now();
    if (!known && !r->plan->quiet && lock_wait_find_holder(&r->progress, runner_on_holder, r))
        uv_timer_start(&r->phase_timer, runner_on_no_holder, HOLDER_MS, 0);
    else
        runner_give_up(r, &why);
}

static void runner_on_withdrawn(struct runner *r);
static void runner_on_taken_up(struct runner *r, clave_err err);
static void runner_not_taken_up(struct runner *r, clave_err why);

static void runner_on_verdict(void *arg, clave_err err)
{
    struct runner *r = arg;
    if (r->in_place.phase == IN_PLACE_GOING_ON)
        runner_on_taken_up(r, err);
    if (r->phase != WAITING)
        return;
    bool ended = err == CLAVE_ECANCELED || err == CLAVE_EBUSY || err == CLAVE_EUNREACHABLE ||
                 (err == CLAVE_OK && !health_lets_stand(&r->health));
    if (r->stand == WITHDRAWING && ended) {
        runner_on_withdrawn(r);
        return;
    }
    r->stand = SETTLED;
    lock_wait_end(&r->progress);
    if (err == CLAVE_OK) {
        runner_record_grant(r);
        run_stages_begin(r);
    } else if (err == CLAVE_EBUSY || err == CLAVE_EUNREACHABLE) {
        runner_not_acquired(r);
    } else if (err == CLAVE_EDEADLOCK) {
        lock_message_deadlock(r->plan, acquisition_deadlock(&r->acquisition));
        runner_leave(r, EXIT_DEADLOCK);
    } else if (err == CLAVE_ENOAUTH) {
        runner_leave(r, lock_message_unauthorised(r->plan));
    } else if (clave_async_client_state(r->client) != CLAVE_STATE_CLOSED) {
        /* Otherwise runner_on_closed follows, which knows why. */
        runner_leave_with(r, err);
    }
}

static void runner_on_moved(void *arg, size_t ahead, const char *predecessor, const char *left_over)
{
    struct runner *r = arg;
    if (r->phase != WAITING) { /* the node is gone that this program had to go on with */
        runner_not_taken_up(r, CLAVE_ELOST);
        return;
    }
    r->waited = true;
    lock_wait_moved(&r->progress, ahead, predecessor, left_over);
    run_fence_moved(r, predecessor);
    sd_status_waiting(r, ahead, true);
    nested_look(&r->nested, r->client);
}

/* The lock is held by the process that we run under, which waits for us: we would wait forever. */
static void runner_on_outer(void *arg, const clave_participant *outer)
{
    struct runner *r = arg;
    if (r->phase != WAITING || r->stages.phase != NOT_GRANTED)
        return;
    lock_wait_end(&r->progress);
    lock_message_nested(r->plan, outer);
    runner_leave(r, EXIT_DEADLOCK);
}

static void runner_on_next(void *arg)
{
    struct runner *r = arg;
    if (r->phase == WAITING)
        hook_run(r->plan, r->plan->standby, "standby", 0);
}

static void runner_on_lost(void *arg, clave_err why)
{
    struct runner *r = arg;
    if (in_place_is_handing(&r->in_place) && why == CLAVE_ECLOSED)
        return; /* that is how a hand-over ends, or runner_on_handed_in_place knows why */
    if (r->phase == HOLDING || r->phase == SWEEPING)
        child_lost(r, why);
    else
        run_stages_lost(r, why);
}

static void runner_on_asked(void *arg)
{
    struct runner *r = arg;
    if (r->phase == HOLDING) {
        child_asked(r);
    } else if (r->phase != LEAVING) {
        r->asked = true;
        lock_message_asked(r->plan);
        run_stages_cut_short(r);
    }
}

static const struct acquisition_events acquisition_events = {
    .moved = runner_on_moved,
    .next = runner_on_next,
    .verdict = runner_on_verdict,
    .lost = runner_on_lost,
    .asked = runner_on_asked,
};

/* ---- the place in the queue ------------------------------------------------------------------ */

static int64_t runner_wait_until(const struct runner *r)
{
    int64_t wait = r->plan->wait_ms;
    if (r->plan->stages.slot && r->stand == AWAY) /* the lock of the run is only ever tried */
        wait = r->plan->stages.slot->wait_ms;
    if (wait == LOCK_TRY)
        return CLAVE_TRY;
    return wait == LOCK_FOR_EVER ? CLAVE_NEVER : r->began + wait;
}

static void runner_stand(struct runner *r)
{
    assert(r->phase == WAITING && r->stand == AWAY);
    const struct run_plan *plan = r->plan;
    /* min_valid_ms leaves the command some time before its first warning could be due. */
    r->stand = STANDING;
    const struct acquisition_terms terms = {.deadline = runner_wait_until(r),
                                            .min_valid_ms =
                                                child_grace(r) + child_lead(r) +
                                                clave_async_client_session_timeout(r->client) / 8};
    uv_timer_stop(&r->phase_timer);
    r->acquisition = (struct acquisition){.events = &acquisition_events, .arg = r};
    clave_err err = acquisition_begin(&r->acquisition, r->client, plan, &terms);
    if (err == CLAVE_OK) {
        lock_wait_begin(&r->progress, &r->acquisition, r->client, r->uv);
        sd_status_waiting(r, 0, false);
    } else {
        runner_leave_with(r, err);
    }
}

static void runner_on_unhealthy_too_long(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    const char *why = r->health.why;
    lock_message_not_acquired(
        r->plan, clave_now() - r->began,
        &(struct lock_obstacle){.unhealthy = *why ? why : "the health check has not ended yet"});
    runner_leave(r, EXIT_UNHEALTHY);
}

/* This candidate is not known to be healthy: it keeps its session, and has no place in the queue. A
 * candidate that waits for nothing waits for its first check all the same. */
static void runner_stay_away(struct runner *r)
{
    int64_t until = runner_wait_until(r), left = 0;
    if (until == CLAVE_NEVER || (until == CLAVE_TRY && r->health.policy.phase == HEALTH_UNTRIED))
        return;
    if (until != CLAVE_TRY)
        left = deadline_left(until, clave_now());
    uv_update_time(&r->loop);
    uv_timer_start(&r->phase_timer, runner_on_unhealthy_too_long, (uint64_t)left, 0);
}

static void runner_stand_or_not(struct runner *r)
{
    assert(r->phase == WAITING);
    bool fit = health_lets_stand(&r->health);
    switch (r->stand) {
    case AWAY:
        if (fit)
            runner_stand(r);
        else
            runner_stay_away(r);
        break;
    case STANDING:
        if (fit)
            break;
        r->stand = WITHDRAWING;
        lock_wait_end(&r->progress);
        acquisition_cancel(&r->acquisition);
        break;
    case SETTLED: /* the lock is held, and the command not started yet */
        if (!fit && r->stages.phase != NOT_GRANTED)
            runner_leave(r, EXIT_UNHEALTHY);
        break;
    case WITHDRAWING:
        break;
    }
    clave_uv_flush(r->uv);
}

/* The place is given up. If the lock was granted meanwhile, this releases it. */
static void runner_on_withdrawn(struct runner *r)
{
    acquisition_free(&r->acquisition);
    r->stand = AWAY;
    runner_stand_or_not(r);
}

static pid_t runner_start_check(void *arg, const char *command, int output)
{
    const struct runner *r = arg;
    bool holds = r->phase == HOLDING && !r->fencing;
    const struct hook_facts facts = {holds ? "holding" : "waiting", r->plan->path, r->plan->connect,
                                     holds ? r->task.token : 0};
    return hook_start_check(&facts, command, output);
}

static void runner_on_judged(void *arg)
{
    struct runner *r = arg;
    bool unhealthy = r->health.policy.phase == HEALTH_UNFIT;
    if (r->phase == HOLDING && !r->fencing)
        child_on_judged(r);
    if (r->phase != CONNECTING && r->phase != WAITING)
        return;
    if (unhealthy != r->told_unhealthy && unhealthy) {
        lock_wait_clear(&r->progress);
        lock_message_unhealthy(r->plan, r->stages.phase != NOT_GRANTED, r->health.why);
        sd_status_unhealthy(r);
    } else if (unhealthy != r->told_unhealthy) {
        lock_message_healthy(r->plan);
    }
    r->told_unhealthy = unhealthy;
    if (r->phase == WAITING)
        runner_stand_or_not(r);
}

static const struct health_owner runner_health = {runner_start_check, runner_on_judged};

static void runner_begin_waiting(struct runner *r)
{
    assert(r->phase == CONNECTING);
    connect_note_session(r->o, clave_async_client_session_id(r->client),
                         clave_async_client_session_timeout(r->client));
    uv_timer_stop(&r->phase_timer);
    if (!child_lets_wait(r))
        return;
    r->phase = WAITING;
    r->nested = (struct nested){
        .plan = r->plan, .acquisition = &r->acquisition, .found = runner_on_outer, .arg = r};
    runner_stand_or_not(r);
}

static void runner_on_dirs(void *arg, clave_err err)
{
    struct runner *r = arg;
    assert(r->reads_acl);
    r->reads_acl = false;
    if (r->phase != CONNECTING)
        return;
    if (err == CLAVE_OK)
        runner_begin_waiting(r);
    else if (clave_err_classify(err) == CLAVE_CLASS_FINAL)
        runner_leave_with(r, err);
}

/* The access list of the node at `path` is known: everything that is created below it gets the same
 * list. */
static void runner_use_parent_acl(struct runner *r)
{
    assert(r->phase == CONNECTING && !r->reads_acl);
    const struct run_plan *plan = r->plan;
    run_flags_warn_of_acl(plan);
    if (plan->kind != KIND_LEASE) {
        runner_begin_waiting(r);
        return;
    }
    r->dirs = (struct acquisition_dirs){.made = runner_on_dirs, .arg = r};
    clave_err err = acquisition_dirs_make(&r->dirs, r->client, plan);
    r->reads_acl = err == CLAVE_OK;
    if (err != CLAVE_OK)
        runner_leave_with(r, err);
}

/* The answer for --acl parent, on whose list everything else depends. If the connection failed,
 * nothing is done here: the request is made again when it is back. */
static void runner_on_parent_acl(clave_async_client *c, const clave_result *res, void *arg)
{
    struct runner *r = arg;
    const struct run_plan *plan = r->plan;
    assert(r->reads_acl && plan->parent_acl);
    const char *fault;
    (void)c;
    r->reads_acl = false;
    if (r->phase != CONNECTING)
        return;
    if (res->err == CLAVE_OK && acl_copy(plan->parent_acl, res->acls, res->nacls, &fault)) {
        runner_use_parent_acl(r);
    } else if (res->err == CLAVE_OK) {
        runner_leave(r, diag_end(r->o, plan->path, EXIT_NOAUTH,
                                 "its access list cannot be used for the node in it: %s", fault));
    } else if (res->err == CLAVE_ENONODE) {
        runner_leave(
            r, diag_end(r->o, plan->path, EXIT_PATH,
                        "no such node: create it with its access list ('clave create --acl')"));
    } else if (clave_err_classify(res->err) == CLAVE_CLASS_FINAL) {
        runner_leave_with(r, res->err);
    }
}

static void runner_acquire(struct runner *r)
{
    const struct run_plan *plan = r->plan;
    lock_wait_clear(&r->progress);
    if (!plan->parent_acl) {
        runner_begin_waiting(r);
        return;
    }
    if (r->reads_acl)
        return;
    clave_err err = clave_async_get_acl(r->client, plan->path, runner_on_parent_acl, r);
    r->reads_acl = err == CLAVE_OK;
    if (err != CLAVE_OK)
        runner_leave_with(r, err);
}

/* ---- in place -------------------------------------------------------------------------------- */

/* The lock is not ours any more, so the command of the program before this one has to end. */
static void runner_not_taken_up(struct runner *r, clave_err why)
{
    if (r->in_place.phase != IN_PLACE_GOING_ON)
        return;
    r->in_place.phase = IN_PLACE_STAYING;
    if (r->in_place.leaves)
        runner_leave(r, r->code);
    else
        runner_on_lost(r, why);
}

static void runner_on_taken_up(struct runner *r, clave_err err)
{
    struct grant_facts g;
    bool held = err == CLAVE_OK && acquisition_held(&r->acquisition, &g);
    if (r->phase == LEAVING)
        return;
    if (!held || !g.resumed || g.token != r->task.token) {
        runner_not_taken_up(r, held || err == CLAVE_OK ? CLAVE_ELOST : err);
        return;
    }
    r->in_place.phase = r->in_place.again ? IN_PLACE_ASKED : IN_PLACE_STAYING;
    r->in_place.again = false;
    if (r->in_place.leaves)
        runner_leave(r, r->code);
    if (r->phase != HOLDING)
        return;
    lock_message_replaced(r->plan, g.token);
    child_taken_up(r);
    in_place_look(r);
}

/* Connected, in the session that the program before this one has left, unless that has ended. */
static void runner_take_up(struct runner *r)
{
    if (clave_async_client_session_id(r->client) != r->guardian_session_id) {
        runner_not_taken_up(r, CLAVE_EEXPIRED);
        return;
    }
    const struct acquisition_terms terms = {.deadline = CLAVE_NEVER};
    r->acquisition = (struct acquisition){.events = &acquisition_events, .arg = r};
    clave_err err = acquisition_begin(&r->acquisition, r->client, r->plan, &terms);
    if (err != CLAVE_OK)
        runner_not_taken_up(r, err);
}

static void runner_on_handed_in_place(clave_async_client *c, clave_err err, const char *session,
                                      void *arg)
{
    struct runner *r = arg;
    struct grant_facts g;
    assert(r->in_place.phase == IN_PLACE_HANDING);
    if (r->phase == HOLDING && !r->hold_policy.lost && err == CLAVE_OK)
        r->in_place.session = strdup(session);
    if (r->in_place.session) {
        r->in_place.phase = IN_PLACE_EXECUTING;
        uv_stop(&r->loop);
        return;
    }
    in_place_refuse(r,
                    err == CLAVE_OK ? "the command is being ended" : clave_async_client_errmsg(c));
    if (r->phase != HOLDING)
        return;
    uv_poll_start(&r->reports, UV_READABLE, child_on_reports);
    if (!r->hold_policy.lost && !acquisition_held(&r->acquisition, &g))
        child_lost(r, err == CLAVE_OK ? CLAVE_ENOMEM : err);
}

/* What the guardian reports from now on is left to the new program. */
static void runner_on_agreed(struct runner *r)
{
    assert(r->phase == HOLDING);
    r->in_place.phase = IN_PLACE_HANDING;
    uv_poll_stop(&r->reports);
    clave_err err = clave_async_client_hand_over(r->client, clave_now() + LEAVE_MS / 2,
                                                 runner_on_handed_in_place, r);
    clave_uv_flush(r->uv);
    if (err == CLAVE_OK)
        return;
    in_place_refuse(r, clave_async_client_errmsg(r->client));
    uv_poll_start(&r->reports, UV_READABLE, child_on_reports);
}

/* The loop has ended to execute the new program. If that is not possible, the lock cannot be kept
 * either, since its session was handed over. */
static void runner_execute(struct runner *r)
{
    in_place_execute(r);
    if (r->phase != HOLDING)
        return;
    uv_poll_start(&r->reports, UV_READABLE, child_on_reports);
    if (!r->hold_policy.lost)
        child_lost(r, CLAVE_ECLOSED);
}

/* ---- signals --------------------------------------------------------------------------------- */

/* While the command runs, all of these but SIGCHLD are forwarded to it; before that, the first four
 * end this process. A signal that was ignored when we were started (nohup, a background job of a
 * shell) stays ignored, also for the command. */
static const int caught[RUNNER_SIGNALS] = {SIGTERM, SIGINT,  SIGHUP,   SIGQUIT, SIGUSR1,
                                           SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT, SIGCHLD};

static void runner_on_signal(uv_signal_t *handle, int sig)
{
    struct runner *r = handle->data;
    if (sig == SIGCHLD) {
        child_reap(r);
        return;
    }
    if (sig == SIGUSR2 && r->plan->replaceable) {
        in_place_ask(r);
        return;
    }
    if (sig == SIGUSR2 && r->plan->resume) { /* the command is ended as by SIGTERM */
        r->hands_over = true;
        sig = SIGTERM;
    }
    bool ends = sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT;
    r->told_to_end |= ends;
    switch (r->phase) {
    case CONNECTING:
    case WAITING:
        if (ends)
            runner_leave(r, 128 + sig);
        else if (sig == SIGTSTP)
            raise(SIGSTOP);
        break;
    case HOLDING:
        if (sig == SIGCONT)
            child_on_continued(r);
        else
            child_on_signal(r, sig);
        break;
    case LEAVING:
        /* A service manager sends SIGTERM as well, right after an ExecStop that sent SIGUSR2. */
        if (ends && !(r->hands_over && sig == SIGTERM))
            runner_stop(r);
        break;
    case KEEPING:
        if (ends)
            run_stages_cut_short(r);
        else if (sig == SIGTSTP)
            raise(SIGSTOP);
        break;
    case SWEEPING:
        break;
    }
}

/* While the command runs, the guardian ends it, since it watches the parent as well. */
static void runner_on_parent_end(void *arg)
{
    struct runner *r = arg;
    r->told_to_end = true;
    switch (r->phase) {
    case CONNECTING:
    case WAITING:
        lock_wait_end(&r->progress);
        lock_message_parent_ended(r->plan, clave_now() - r->began);
        runner_leave(r, EXIT_LOST);
        break;
    case KEEPING:
        run_stages_cut_short(r);
        break;
    case HOLDING:
    case SWEEPING:
    case LEAVING:
        break;
    }
}

static int runner_catch_signals(struct runner *r)
{
    assert(r->nsignals == 0);
    int err = 0;
    for (size_t i = 0; i < RUNNER_SIGNALS && err == 0; i++) {
        struct sigaction now;
        sigaction(caught[i], NULL, &now);
        if (now.sa_handler == SIG_IGN)
            continue;
        uv_signal_t *handle = &r->signals[r->nsignals];
        err = uv_signal_init(&r->loop, handle);
        if (err != 0)
            break;
        handle->data = r;
        r->before[r->nsignals++] = now;
        err = uv_signal_start(handle, runner_on_signal, caught[i]);
    }
    return err;
}

/* Handles the signals that have arrived. From here on signals have the effect that they had before
 * we were started, or the effect that the program executed next gives them; none is lost in
 * between. */
static void runner_release_signals(struct runner *r)
{
    assert(r->stopped);
    sigset_t ending, before;
    sigemptyset(&ending);
    for (size_t i = 0; i < r->nsignals; i++)
        sigaddset(&ending, r->signals[i].signum);
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    uv_run(&r->loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < r->nsignals; i++) {
        int sig = r->signals[i].signum;
        uv_close((uv_handle_t *)&r->signals[i], NULL); /* restores the default action */
        sigaction(sig, &r->before[i], NULL);
    }
    uv_run(&r->loop, UV_RUN_NOWAIT);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the connection -------------------------------------------------------------------------- */

static void runner_on_closed(struct runner *r, clave_err why)
{
    if (r->phase == LEAVING) {
        if (r->stopped)
            return; /* closed by us, and the server has not confirmed it */
        r->released = !r->leaves_session;
        /* Stops from the timer, not inside the client's call. */
        uv_timer_start(&r->phase_timer, runner_on_phase_timeout, 0, 0);
        return;
    }
    runner_not_taken_up(r, why == CLAVE_OK ? CLAVE_ECLOSED : why);
    if (r->phase == HOLDING || r->phase == SWEEPING || r->phase == KEEPING)
        return; /* the acquisition reports the loss */
    lock_wait_end(&r->progress);
    runner_leave(r, diag_end(r->o, NULL, exit_code_of(why), "%s: %s", r->plan->connect,
                             clave_async_client_errmsg(r->client)));
}

static void runner_on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct runner *r = arg;
    (void)c;
    switch (state) {
    case CLAVE_STATE_CONNECTED:
        if (r->phase == CONNECTING)
            runner_acquire(r);
        else if (r->in_place.phase == IN_PLACE_GOING_ON)
            runner_take_up(r);
        break;
    case CLAVE_STATE_CLOSED:
        runner_on_closed(r, why);
        break;
    case CLAVE_STATE_SUSPENDED:
    case CLAVE_STATE_RECONNECTED:
        if (r->phase == CONNECTING && state == CLAVE_STATE_RECONNECTED)
            runner_acquire(r);
        if (r->phase == HOLDING && !r->hold_policy.lost) {
            lock_message_connection(r->plan, state == CLAVE_STATE_RECONNECTED,
                                    deadline_page_get(r->guardian.page) - clave_now());
            sd_status_connection(r, state == CLAVE_STATE_RECONNECTED);
        }
        if (r->phase == WAITING && state == CLAVE_STATE_RECONNECTED)
            nested_look(&r->nested, r->client);
        break;
    case CLAVE_STATE_LATENT:
    case CLAVE_STATE_LOST:
    case CLAVE_STATE_READ_ONLY:
        break;
    }
}

static int64_t runner_connect_within(const struct runner *r)
{
    int64_t wait = r->plan->wait_ms, timeout = r->o->timeout_ms;
    return wait > 0 && wait < timeout ? wait : timeout;
}

/* Connecting took too long, or every server refuses us. */
static void runner_on_connecting_ends(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    const char *connect = r->plan->connect, *why;
    lock_wait_end(&r->progress);
    if (clave__uv_refusal(r->uv, &why) != CLAVE_OK)
        runner_leave(r, diag_refused(r->o, connect, why));
    else
        runner_leave(r, unreachable_give_up(r->o, connect, runner_connect_within(r),
                                            clave_async_client_errmsg(r->client)));
}

/* The guardian closes the session if this process dies. A session that is not claimed yet may be
 * another process's, except in place, where the guardian has its key already. */
static void runner_tell_guardian(struct runner *r)
{
    int64_t id = clave_async_client_session_id(r->client);
    struct session_key key = {.id = id,
                              .timeout_ms = clave_async_client_session_timeout(r->client)};
    bool is_known = id == 0 || (key.timeout_ms > 0 && !clave__client_is_unclaimed(r->client));
    if (id == r->guardian_session_id || in_place_is_handing(&r->in_place) || !is_known)
        return;
    memcpy(key.passwd, clave_async_client_session_passwd(r->client), sizeof key.passwd);
    guardian_set_session(&r->guardian, &key);
    r->guardian_session_id = id;
}

static void runner_on_settled(void *arg)
{
    struct runner *r = arg;
    const char *why;
    /* Leaves from the timer, not inside the client's call. */
    if (r->phase == CONNECTING && clave__uv_refusal(r->uv, &why) != CLAVE_OK)
        uv_timer_start(&r->phase_timer, runner_on_connecting_ends, 0, 0);
    runner_tell_guardian(r);
    child_publish(r);
    standard_error_retry();
}

/* ---- life ------------------------------------------------------------------------------------ */

static int runner_open_loop(struct runner *r)
{
    int err = -clave__loop_init(&r->loop);
    if (err != 0)
        return err;
    uv_timer_init(&r->loop, &r->phase_timer);
    uv_timer_init(&r->loop, &r->watchdog);
    run_stages_open(r);
    sd_status_open(r);
    in_place_open(r);
    lock_wait_init(&r->progress, r->plan, &r->loop);
    r->parent =
        (struct parent_alarm){.watch = &r->plan->parent, .ended = runner_on_parent_end, .arg = r};
    err = health_open(&r->health, &r->plan->health, &r->loop, &runner_health, r);
    if (err == 0)
        err = command_notify_open(r);
    if (err == 0)
        err = uv_poll_init(&r->loop, &r->reports, r->guardian.socket);
    r->reports.data = r->phase_timer.data = r->watchdog.data = r;
    if (err == 0)
        err = uv_poll_start(&r->reports, UV_READABLE, child_on_reports);
    if (err == 0)
        err = parent_alarm_start(&r->parent, &r->loop);
    return err != 0 ? err : runner_catch_signals(r);
}

/* Shows warnings even without -v. */
static void runner_on_warning(void *arg, int level, const char *msg)
{
    struct runner *r = arg;
    if (level > CLAVE_LOG_WARN)
        return;
    lock_wait_clear(&r->progress);
    lock_message_warning(r->plan, msg);
}

static clave_err runner_open_client(struct runner *r)
{
    clave_client_options co;
    connect_client_options(r->o, &co);
    if (!co.log) {
        co.log = runner_on_warning;
        co.log_arg = r;
    }
    co.hosts = r->plan->connect;
    co.seed = clave_random_seed();
    co.state_cb = runner_on_state;
    co.state_arg = r;
    co.resume = r->session;
    if (r->plan->in_place)
        co.session_timeout_ms = 0; /* as it was: what the guardian knows counts on it */
    clave_err err = clave_async_client_new(&r->client, &co);
    if (err == CLAVE_OK)
        err = clave_uv_start(&r->uv, &r->loop, r->client);
    if (err == CLAVE_OK)
        clave__uv_on_settled(r->uv, runner_on_settled, r);
    return err;
}

static void runner_run_loop(struct runner *r)
{
    while (!r->over) {
        uv_run(&r->loop, UV_RUN_DEFAULT);
        if (!r->over && r->in_place.phase == IN_PLACE_EXECUTING)
            runner_execute(r);
    }
    run_stages_free(r);
    acquisition_free(&r->acquisition);
    clave_async_client_free(r->client);
    held_text_fini(&r->text);
    runner_release_signals(r); /* also runs the loop until all handles are closed */
}

static void runner_begin(struct runner *r)
{
    r->began = clave_now();
    uv_timer_start(&r->phase_timer, runner_on_connecting_ends, (uint64_t)runner_connect_within(r),
                   0);
    lock_wait_connect(&r->progress, r->client, r->began + runner_connect_within(r));
    health_begin(&r->health);
    runner_run_loop(r);
}

/* In place of another program, which has left all that it had. */
static void runner_go_on(struct runner *r)
{
    in_place_go_on(r);
    child_go_on(r);
    runner_run_loop(r);
}

/* Makes orphans of the guardian our children. To be called before there are threads. On a system
 * without sub-reapers, such as the kernel that qemu emulates, the command is run all the same,
 * unless --same-user demands that all of it can be killed. */
static int runner_become_subreaper(const struct run_plan *p)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0)
        return EXIT_OK;
    if (errno != EINVAL || p->command.same_user)
        return diag_end(p->o, NULL, EXIT_INTERNAL, "cannot become a child sub-reaper: %s",
                        strerror(errno));
    diag(p->o,
         "%s: this system has no child sub-reapers: a process of the command whose parent has "
         "ended is not found, and may outlive the command",
         p->path);
    return EXIT_OK;
}

/* Warns if /proc cannot be used: only there do we find processes of the command that are in a
 * session of their own. */
static int runner_check_proc(const struct run_plan *p)
{
    if (proc_is_ours())
        return EXIT_OK;
    const char *why = "/proc does not show the processes of this PID namespace";
    if (p->command.same_user)
        return diag_end(p->o, NULL, EXIT_INTERNAL, "%s: mount it", why);
    diag(p->o,
         "%s: %s: a process of the command that is in a session of its own is not ended, and the "
         "lock is kept until it ends",
         p->path, why);
    return EXIT_OK;
}

static int runner_start_guardian(struct runner *r)
{
    const struct run_plan *plan = r->plan;
    bool fences = plan->stages.fence.command;
    /* A lock delay is due after a holder that was killed, even though nothing is left of its
     * command. */
    char *mark = fences && plan->stages.lock_delay_ms == 0 ? run_stages_mark(plan) : NULL;
    const struct guardian_plan gp = {.o = plan->o,
                                     .connect = plan->connect,
                                     .path =
                                         plan->stages.slot ? plan->stages.slot->path : plan->path,
                                     .holders = plan->holders,
                                     .owner = plan->owner,
                                     .command = &plan->command,
                                     .fence = fences ? &plan->stages.fence.runs : NULL,
                                     .mark = mark,
                                     .watchdog = &plan->watchdog,
                                     .parent = &plan->parent,
                                     .in_place = plan->replaceable};
    int code = runner_become_subreaper(plan);
    if (code == EXIT_OK)
        code = runner_check_proc(plan);
    if (code == EXIT_OK)
        code = guardian_start(&r->guardian, &gp);
    free(mark); /* the guardian has its own copy */
    return code;
}

static const struct runner_events runner_events = {
    .cleared = child_begin,
    .fence_ended = run_fence_ended,
    .ended = run_stages_end,
    .notified = child_on_notified,
    .agreed = runner_on_agreed,
    .leave = runner_leave,
};

static int runner_end_resume(const struct runner *r, const char *why)
{
    return diag_end(r->o, NULL, EXIT_IO, "--resume: %s", why);
}

/* At SIGUSR2 it would be too late to say that no file can be made there. */
static int runner_check_directory(const struct runner *r)
{
    char why[512];
    char *file = strdup(r->plan->resume);
    const char *directory = file ? dirname(file) : NULL;
    int code = directory ? EXIT_OK : diag_err(r->o, r->plan->path, CLAVE_ENOMEM, NULL);
    if (directory && access(directory, W_OK | X_OK) != 0) {
        snprintf(why, sizeof why, "no file can be made in %s: %s", directory, strerror(errno));
        code = runner_end_resume(r, why);
    }
    free(file);
    return code;
}

/* Reads the session that the previous process has left; there may be none. Returns EXIT_OK,
 * or an exit code after a message. */
static int runner_read_session(struct runner *r)
{
    char why[512] = "";
    const struct fault f = {why, sizeof why};
    const char *file = r->plan->resume;
    if (!file)
        return EXIT_OK;
    if ((access(file, F_OK) != 0 && errno == ENOENT) ||
        clave__session_file_read(file, &r->session, &f) == CLAVE_OK)
        return runner_check_directory(r);
    return runner_end_resume(r, why);
}

/* Before the loop runs, and with it the client. */
static int runner_remove_session(const struct runner *r)
{
    char why[512] = "";
    const struct fault f = {why, sizeof why};
    if (!r->session || !r->plan->resume ||
        clave__session_file_remove(r->plan->resume, &f) == CLAVE_OK)
        return EXIT_OK;
    return runner_end_resume(r, why);
}

/* Has a guardian, and the session that was left, if there is one. Returns EXIT_OK, or an exit code
 * after a message. */
static int runner_prepare(struct runner *r)
{
    const struct run_plan *plan = r->plan;
    if (plan->in_place) {
        r->session = strdup(plan->handed_session);
        return r->session ? in_place_adopt_guardian(r)
                          : diag_err(plan->o, plan->path, CLAVE_ENOMEM, NULL);
    }
    int code = runner_read_session(r);
    return code == EXIT_OK ? runner_start_guardian(r) : code;
}

/* In place of another program its guardian is left to itself: it ends the command and the session,
 * as it would if this process had been killed. */
static void runner_leave_guardian(struct runner *r)
{
    if (!r->plan->in_place)
        guardian_dismiss(&r->guardian);
}

int runner_run(const struct run_plan *plan, bool *told_to_end)
{
    /* No term is begun anew in a process that was to take over, or to say whether it could. */
    if (told_to_end)
        *told_to_end = plan->in_place || plan->o->inherited.in_place == IN_PLACE_TRIED;
    if (plan->o->inherited.in_place == IN_PLACE_TRIED && plan->replaceable)
        return in_place_agree();
    struct runner *r = calloc(1, sizeof *r);
    if (!r)
        return diag_err(plan->o, plan->path, CLAVE_ENOMEM, NULL);
    r->events = &runner_events;
    r->plan = plan;
    r->o = plan->o;
    int code = runner_prepare(r);
    if (code != EXIT_OK) {
        free(r->session);
        free(r);
        return code;
    }
    child_open_terminal(r);
    int fault = runner_open_loop(r);
    clave_err err = fault == 0 ? runner_open_client(r) : CLAVE_EIO;
    if (err != CLAVE_OK) { /* we are about to exit, so the loop is left as it is */
        runner_leave_guardian(r);
        if (fault == 0)
            return diag_err(plan->o, plan->connect, err, NULL);
        return diag_end(plan->o, NULL, EXIT_INTERNAL, "cannot start: %s", uv_strerror(fault));
    }
    code = runner_remove_session(r);
    free(r->session); /* the client has copied it */
    r->session = NULL;
    if (code != EXIT_OK) {
        runner_leave_guardian(r);
        return code;
    }
    /* printing must not block from now on: the lock may be ours before we know it */
    standard_error_never_wait();
    if (plan->in_place)
        runner_go_on(r);
    else
        runner_begin(r);
    if (r->released || r->guardian_session_id == 0)
        guardian_dismiss(&r->guardian);
    standard_error_may_wait();
    code = r->code;
    if (told_to_end)
        *told_to_end = r->told_to_end;
    uv_loop_close(&r->loop);
    free(r);
    return code;
}
