/* child.c - the runner while the command runs. It starts the command through the guardian,
 * publishes the hold deadline on the shared page, lends the terminal to the command, and kills what
 * is left of it if the guardian dies. runner.c calls it.
 *
 * What must stay true: the page never shows a deadline later than that of the grant. */
#include "cmd/run/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/path.h"
#include "base/time_format.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/shell_command.h"
#include "cmd/run/granted_field.h"
#include "cmd/run/guardian/proctree.h"
#include "cmd/run/hook.h"
#include "cmd/run/in_place.h"
#include "cmd/run/lock_messages.h"
#include "cmd/run/runner.h"
#include "cmd/run/stages/run_fence.h"
#include "cmd/run/stages/run_slot.h"
#include "supervise/watchdog_policy.h"

/* ---- the terminal ---------------------------------------------------------------------------- */

/* The command has a process group of its own, so to the terminal it is a background job: it may
 * write, but it is stopped (SIGTTIN, SIGTTOU) when it reads or changes the terminal's modes. When
 * that happens, it gets the foreground; until then Ctrl-C goes to the runner, which forwards it. We
 * change the foreground group only while it is our own or the command's. */

void child_open_terminal(struct runner *r)
{
    r->terminal = (struct foreground_group){.fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)};
}

/* Blocks SIGTTOU, which would stop a background process that calls tcsetpgrp. */
static bool foreground_group_set(const struct foreground_group *t, pid_t group)
{
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTTOU);
    sigprocmask(SIG_BLOCK, &set, &before);
    bool done = tcsetpgrp(t->fd, group) == 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return done;
}

/* Gives the terminal to the process group `group`. false: we are not in the foreground
 * ourselves. */
static bool foreground_group_lend(struct foreground_group *t, pid_t group)
{
    if (t->fd < 0 || group <= 0 || tcgetpgrp(t->fd) != getpgrp() || !foreground_group_set(t, group))
        return false;
    t->lent = group;
    return true;
}

/* Takes the terminal back. false: it had not been lent, or another group has got it since. */
static bool foreground_group_take(struct foreground_group *t)
{
    pid_t group = t->lent;
    t->lent = 0;
    return group != 0 && tcgetpgrp(t->fd) == group && foreground_group_set(t, getpgrp());
}

/* ---- time ------------------------------------------------------------------------------------ */

/* With a watchdog, grace and lead are the times that the watchdog leaves, even if it turns out that
 * the device cannot be used. */
int64_t child_grace(const struct runner *r)
{
    int64_t timeout = clave_async_client_session_timeout(r->client);
    int64_t grace = clave__kill_policy_grace(timeout, r->plan->grace_ms);
    return r->plan->watchdog.device ? deadline_earlier(grace, clave__watchdog_policy_grace(timeout))
                                    : grace;
}

int64_t child_lead(const struct runner *r)
{
    int64_t timeout = clave_async_client_session_timeout(r->client);
    return r->plan->watchdog.device ? clave__watchdog_policy_lead(timeout)
                                    : clave__kill_policy_lead(timeout);
}

bool child_lets_wait(struct runner *r)
{
    const struct watchdog_plan *w = &r->plan->watchdog;
    const struct watchdog_trouble t = {.fault = WATCHDOG_FAULT_SESSION};
    int64_t timeout = clave_async_client_session_timeout(r->client);
    bool hopeless = w->device && w->mode == WATCHDOG_REQUIRED && !watchdog_device_fits(timeout);
    if (hopeless)
        r->events->leave(r, lock_message_unarmed(r->plan, &t, timeout));
    return !hopeless;
}

/* Arms the watchdog for the time by which the guardian must have acted. A watchdog that is armed
 * for an earlier time is left alone: it fires, finds nothing to do, and is armed again. */
static void child_arm_watchdog(struct runner *r)
{
    int64_t at = clave__holder_policy_limit(&r->hold_policy);
    if (at >= r->watchdog_at)
        return;
    int64_t left = at - clave_now();
    r->watchdog_at = at;
    uv_update_time(&r->loop);
    uv_timer_start(&r->watchdog, child_on_watchdog, left > 0 ? (uint64_t)left : 0, 0);
}

void child_publish(struct runner *r)
{
    struct grant_facts g;
    if (r->phase != HOLDING || r->hold_policy.lost || !acquisition_held(&r->acquisition, &g))
        return;
    deadline_page_set(r->guardian.page, clave__holder_policy_extend(&r->hold_policy, g.deadline),
                      g.deadline);
    child_arm_watchdog(r);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void child_report_not_started(const struct runner *r)
{
    diag(r->o, "%s: the command was not started: too little time was left to %s", r->plan->path,
         r->plan->elects ? "lead" : "hold the lock");
}

/* The guardian is about to be given a task under the hold, which may take max_ms (0: no limit).
 * Returns false, after leaving, if the hold is over. */
static bool child_prepare(struct runner *r, enum on_lost on_lost, int64_t max_ms,
                          struct grant_facts *g)
{
    assert(r->phase == WAITING && r->command == 0);
    struct guardian_task *t = &r->task;
    if (!acquisition_held(&r->acquisition, g)) {
        child_report_not_started(r);
        r->events->leave(r, EXIT_LOST);
        return false;
    }
    const char *name = clave__path_name(g->node);
    int64_t now = clave_now();
    *t = (struct guardian_task){.token = g->token,
                                .session_id = g->session_id,
                                .session_ms = clave_async_client_session_timeout(r->client),
                                .terms = {.on_lost = on_lost,
                                          .grace_ms = child_grace(r),
                                          .lead_ms = child_lead(r),
                                          .until = max_ms > 0 ? now + max_ms : CLAVE_NEVER}};
    r->acquired_at = now;
    r->watchdog_at = CLAVE_NEVER;
    clave__holder_policy_begin(&r->hold_policy, &t->terms);
    memcpy(t->node, name, strnlen(name, sizeof t->node - 1));
    return true;
}

static void child_hold(struct runner *r)
{
    struct deadline_page *page = r->guardian.page;
    atomic_store(&page->token, r->task.token);
    atomic_store(&page->session_id, r->task.session_id);
    r->phase = HOLDING;
    if (!r->fencing) {
        health_run(&r->health);
        command_notify_run(r);
    }
    child_publish(r);
}

void child_fence(struct runner *r, const struct fence_target *target)
{
    struct grant_facts g;
    if (!child_prepare(r, ON_LOST_TERM, r->plan->stages.fence.timeout_ms, &g))
        return;
    r->fencing = r->task.fences = true;
    r->task.fence = *target;
    child_hold(r);
    guardian_run(&r->guardian, &r->task);
}

static void child_publish_value(struct runner *r)
{
    const struct run_plan *plan = r->plan;
    if (plan->value && acquisition_publish(&r->acquisition, plan->value) != CLAVE_OK)
        diag(r->o, "%s: cannot publish the value", plan->path);
}

/* From now on the lock counts as taken: runs the hook, and publishes the leader's value. */
static void child_take(struct runner *r)
{
    r->taken = true;
    hook_run(r->plan, r->plan->on_elected, "elected", r->task.token);
    child_publish_value(r);
}

static void child_give_back(struct runner *r)
{
    if (r->taken)
        hook_run(r->plan, r->plan->on_deposed, "deposed", r->task.token);
    command_notify_end(r);
}

void child_begin(struct runner *r)
{
    const struct run_plan *plan = r->plan;
    struct guardian_task *t = &r->task;
    struct grant_facts g;
    if (!child_prepare(r, plan->on_lost, plan->max_hold_ms, &g))
        return;
    held_text_init(&r->text, r->client, plan, g.node);
    if (plan->stages.slot)
        run_slot_put(r, t);
    child_hold(r);
    lock_message_acquired(plan, &g, r->acquired_at - r->began);
    if (plan->grace_ms > t->terms.grace_ms)
        diag(r->o, "%s: the grace is %lldms, %s of the session timeout (--session-timeout)",
             plan->path, (long long)t->terms.grace_ms,
             plan->watchdog.device ? "with --watchdog an eighth" : "a quarter");
    if (!plan->command_notify.terms.ready)
        child_take(r);
    guardian_run(&r->guardian, t);
}

static int child_code_of_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* No process of the fence is alive any more, or it could not be started. If the fence was ended by
 * anything but its own end or its time limit, this process ends too: the hold is lost or asked for,
 * somebody has sent a signal, or there is no guardian to start a command. */
static void child_conclude_fence(struct runner *r, enum kill_policy_cause cause,
                                 const struct run_fence_end *end)
{
    bool timed_out = cause == CAUSE_MAX_HOLD && !r->hold_policy.lost && !r->asked;
    bool cut_short = clave__holder_policy_was_cut_short(&r->hold_policy, cause) && !timed_out;
    bool swept = r->phase == SWEEPING;
    r->fencing = false;
    r->told_to_end |= cause == CAUSE_PARENT;
    foreground_group_take(&r->terminal);
    uv_timer_stop(&r->watchdog);
    r->phase = WAITING;
    r->command = 0;
    r->reaped = r->stuck = false;
    r->holdout = (struct holdout){.pid = 0};
    if (swept || cut_short || r->asked) {
        r->events->leave(r, EXIT_LOST);
    } else if (!health_lets_stand(&r->health)) {
        r->events->leave(r, EXIT_UNHEALTHY);
    } else if (r->told_to_end) {
        r->events->leave(r, end->code != EXIT_OK ? end->code : EXIT_LOST);
    } else {
        struct run_fence_end e = *end;
        e.timed_out = timed_out;
        r->events->fence_ended(r, &e);
    }
}

/* No process of the command is alive any more: reports that, and hands the exit code to the next
 * stage. */
static void child_conclude(struct runner *r, enum kill_policy_cause cause, int status)
{
    assert(r->phase == HOLDING || r->phase == SWEEPING);
    if (r->fencing) {
        child_conclude_fence(r, cause,
                             &(struct run_fence_end){.code = child_code_of_status(status)});
        return;
    }
    bool cut_short = clave__holder_policy_was_cut_short(&r->hold_policy, cause);
    int code = child_code_of_status(status);
    if (cut_short)
        code = r->unhealthy && !r->hold_policy.lost ? EXIT_UNHEALTHY : EXIT_LOST;
    r->told_to_end |= cause == CAUSE_PARENT;
    if (r->command == 0 && r->phase == HOLDING)
        child_report_not_started(r);
    foreground_group_take(&r->terminal);
    lock_message_ended(r->plan, code, clave_now() - r->acquired_at);
    child_give_back(r);
    r->events->ended(r, code);
}

/* The lock is lost. Acts at once, since another participant may hold it already. */
void child_lost(struct runner *r, clave_err why)
{
    if (r->phase != HOLDING && r->phase != SWEEPING)
        return;
    clave__holder_policy_lose(&r->hold_policy, clave_now());
    deadline_page_set(r->guardian.page, DEADLINE_PAGE_LOST, DEADLINE_PAGE_LOST);
    guardian_stop(&r->guardian, CAUSE_LOST);
    child_arm_watchdog(r);
    lock_message_lost(r->plan, why);
}

void child_go_on(struct runner *r)
{
    assert(r->phase == HOLDING && r->guardian.page);
    child_arm_watchdog(r);
    child_reap(r); /* what ended in between */
}

/* Ends the command although the hold is not lost. */
static void child_stop(struct runner *r, enum kill_policy_cause cause)
{
    clave__holder_policy_end(&r->hold_policy, clave_now());
    guardian_stop(&r->guardian, cause);
    child_arm_watchdog(r);
}

void child_asked(struct runner *r)
{
    if (r->phase != HOLDING || r->hold_policy.lost || r->asked)
        return;
    r->asked = true;
    child_stop(r, CAUSE_LOST);
    lock_message_asked(r->plan);
}

/* Shows in the node why the work is ended, or why the check fails, or else what the command says. A
 * text that names a process which cannot be killed stays in the node, because that matters more. */
static void child_show_text(struct runner *r)
{
    char text[HEALTH_WHY_CAP + 64], said[COMMAND_NOTIFY_CAP];
    bool ailing = r->health.policy.failures > 0;
    if (r->holdout.pid != 0)
        return;
    command_notify_text(r, said);
    if (r->unhealthy)
        snprintf(text, sizeof text, "ending the command: %s", r->unhealthy_why);
    else
        snprintf(text, sizeof text, "%s", ailing ? r->health.why : said);
    held_text_set(&r->text, text, r->unhealthy || ailing);
    clave_uv_flush(r->uv);
}

/* Ends the command because its work is over, although the hold is not. */
static void child_give_up(struct runner *r, const char *why)
{
    r->unhealthy = true;
    snprintf(r->unhealthy_why, sizeof r->unhealthy_why, "%s", why);
    health_stop(&r->health);
    command_notify_excuse(r);
    child_stop(r, CAUSE_UNHEALTHY);
    lock_message_unhealthy(r->plan, true, why);
}

void child_on_judged(struct runner *r)
{
    const struct health_policy *p = &r->health.policy;
    assert(r->phase == HOLDING);
    if (r->hold_policy.lost || r->unhealthy)
        return;
    if (p->phase == HEALTH_OVER) {
        child_give_up(r, r->health.why);
    } else if (p->failures > r->failures) {
        lock_message_ailing(r->plan, p->failures, r->health.why);
    }
    if (r->unhealthy || p->failures != r->failures)
        child_show_text(r);
    r->failures = p->failures;
}

void child_on_notified(struct runner *r)
{
    const struct notify_policy *p = &r->command_notify.policy;
    char why[COMMAND_NOTIFY_CAP];
    if (r->phase != HOLDING || r->hold_policy.lost || r->unhealthy)
        return;
    if (p->ready && !r->taken)
        child_take(r);
    if (p->phase == NOTIFY_OVER) {
        command_notify_why(r, why);
        child_give_up(r, why);
    }
    child_show_text(r);
}

/* ---- without the guardian -------------------------------------------------------------------- */

bool child_reap(struct runner *r)
{
    siginfo_t next = {.si_pid = 0};
    int status = 0;
    while (waitid(P_ALL, 0, &next, WEXITED | WNOHANG | WNOWAIT) == 0) {
        pid_t pid = next.si_pid;
        if (pid == 0)
            return false;
        if (pid == r->health.pid) {
            health_reap(&r->health);
            continue;
        }
        waitpid(pid, &status, WNOHANG);
        guardian_note_reaped(&r->guardian, pid);
        in_place_on_reaped(r, pid, status);
        if (pid != r->command)
            continue;
        r->reaped = true;
        r->status = status;
    }
    return errno == ECHILD;
}

static void child_report_stuck(struct runner *r, const struct holdout *h, bool lost)
{
    if (r->stuck && r->holdout.pid == h->pid)
        return; /* the guardian reported this one before it died */
    r->holdout = *h;
    r->stuck = true;
    lock_message_stuck(r->plan, h, lost);
    sd_status_holdout(r);
}

/* Stops the watchdog that a dead guardian had opened, or was about to. */
static void child_disarm(struct runner *r)
{
    const char *device = r->plan->watchdog.device;
    int error = r->armed ? watchdog_device_stop_abandoned(device) : 0;
    r->armed = false;
    if (error != 0)
        diag(r->o,
             "%s: cannot stop the watchdog %s, which the guardian may have started: %s: unless "
             "another program has it, it resets this machine",
             r->plan->path, device, strerror(error));
}

static void child_sweep(uv_timer_t *timer);

static void child_sweep_again(struct runner *r, int alive)
{
    struct holdouts left;
    holdout_look(&left, &r->guardian.cgroup);
    if (holdout_is_certain(&left, r->sweep_ms))
        child_report_stuck(r, &left.first, r->hold_policy.lost);
    r->sweep_ms = clave__kill_policy_pace(r->sweep_ms, holdout_is_all(&left, alive));
    uv_timer_start(&r->phase_timer, child_sweep, (uint64_t)r->sweep_ms, 0);
}

/* Kills what is left of the command after the guardian's death. This process is a child sub-reaper
 * too, so the guardian's descendants have become ours. The command itself is dead by now
 * (parent-death signal), whether or not we saw it end. Once we have no child left there is no
 * descendant either, even where /proc does not show them all. */
static void child_sweep(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    assert(r->phase == SWEEPING);
    bool childless = child_reap(r);
    cgroup_kill(&r->guardian.cgroup);
    int alive = proctree_kill(r->reaped ? 0 : r->command);
    if (!childless && (alive > 0 || !proctree_is_gone())) {
        child_sweep_again(r, alive);
        return;
    }
    child_reap(r);
    cgroup_remove(&r->guardian.cgroup);
    child_disarm(r);
    child_conclude(r, CAUSE_NONE, r->reaped ? r->status : SIGKILL);
}

/* `fault` is what the guardian did wrong, for the message, which is printed only after everything
 * that can be killed at once has been. */
static void child_begin_sweep(struct runner *r, const char *fault)
{
    assert(r->phase == HOLDING);
    r->phase = SWEEPING;
    command_notify_excuse(r);
    uv_poll_stop(&r->reports);
    uv_timer_stop(&r->watchdog);
    /* The kill comes first, because guardian_dismiss waits for the guardian to end, which may take
     * time. */
    cgroup_kill(&r->guardian.cgroup);
    proctree_kill(0);
    diag(r->o, "%s: the guardian %s: ending the command", r->plan->path, fault);
    guardian_dismiss(&r->guardian);
    uv_timer_start(&r->phase_timer, child_sweep, 0, 0);
}

/* ---- the guardian's reports ------------------------------------------------------------------ */

/* The command was stopped. If it was stopped because it needs the terminal, we lend it the
 * terminal; if we are not in the foreground either, we stop, as the command would have without us.
 * If the user stopped it, we stop too, with our whole job. */
static void child_on_command_stopped(struct runner *r, int sig)
{
    bool asks = sig == SIGTTIN || sig == SIGTTOU;
    if (asks && foreground_group_lend(&r->terminal, r->command)) {
        guardian_forward(&r->guardian, SIGCONT);
    } else if ((asks && r->terminal.fd >= 0) ||
               (sig == SIGTSTP && foreground_group_take(&r->terminal))) {
        r->wants_terminal = true;
        kill(0, sig);
    }
}

/* True if the command is a single argument with shell syntax in it, such as people pass to `flock
 * -c`. */
static bool child_is_shell_line(char *const *argv)
{
    return !argv[1] && argv[0][strcspn(argv[0], " \t|&;<>$*")] != '\0';
}

static void child_on_refused(struct runner *r, const char *what, int error, int code)
{
    assert(r->phase == HOLDING && r->command == 0);
    char line[HINT_CAP];
    if (r->fencing) {
        child_conclude_fence(r, CAUSE_NONE, &(struct run_fence_end){.refused = true, .code = code});
        return;
    }
    bool shell = code == EXIT_NOTFOUND && child_is_shell_line(r->plan->command.argv);
    diag_end(r->o, NULL, code, "cannot %s '%s': %s%s%s", what, r->plan->command.argv[0],
             strerror(error), shell ? "; a line for a shell is given as: -- sh -c " : "",
             shell ? hint_word(r->plan->command.argv[0], line) : "");
    child_give_back(r);
    r->events->ended(r, code);
}

/* The watchdog cannot be used. If it is required, the guardian has not started the command. */
static void child_on_unarmed(struct runner *r, const struct watchdog_trouble *t)
{
    assert(r->phase == HOLDING && r->command == 0 && !r->fencing);
    r->armed = false;
    int code = lock_message_unarmed(r->plan, t, r->task.session_ms);
    if (r->plan->watchdog.mode == WATCHDOG_TRY)
        return;
    child_give_back(r);
    r->events->ended(r, code);
}

static void child_show_holdout(struct runner *r)
{
    char who[HOLDOUT_TEXT_CAP], text[HOLDOUT_TEXT_CAP + 32];
    snprintf(text, sizeof text, "clave cannot end its %s", holdout_text(&r->holdout, who));
    held_text_set(&r->text, text, r->text.unhealthy);
    clave_uv_flush(r->uv);
}

static void child_on_holdout(struct runner *r, const struct holdout *h)
{
    r->holdout = *h;
    lock_message_holdout(r->plan, h);
    sd_status_holdout(r);
    child_show_holdout(r);
}

/* The write that takes the lock up has left nothing in the node of what the program before this one
 * had written to it. */
void child_taken_up(struct runner *r)
{
    struct grant_facts g;
    if (!acquisition_held(&r->acquisition, &g))
        return; /* lost again, which was reported */
    held_text_fini(&r->text);
    held_text_init(&r->text, r->client, r->plan, g.node);
    if (r->holdout.pid != 0)
        child_show_holdout(r);
    else
        child_show_text(r);
    if (r->taken)
        child_publish_value(r);
    sd_status_said(r);
    child_publish(r);
}

static void child_on_report(struct runner *r, const struct guardian_report *report)
{
    switch (report->event) {
    case GUARDIAN_STARTED:
        r->command = report->value;
        if (r->fencing)
            break;
        sd_status_started(r);
        in_place_look(r);
        break;
    case GUARDIAN_REFUSED:
        child_on_refused(r, "run", report->value, guardian_exit_code(report->value));
        break;
    case GUARDIAN_NO_PROCESS:
        child_on_refused(r, "start a process for", report->value, EXIT_INTERNAL);
        break;
    case GUARDIAN_STOPPED:
        child_on_command_stopped(r, report->value);
        break;
    case GUARDIAN_ENDING:
        if (r->fencing)
            break;
        command_notify_excuse(r);
        lock_message_ending(r->plan, report->cause);
        sd_status_ending(r);
        break;
    case GUARDIAN_DENIED:
        lock_message_denied(r->plan, &report->holdout, report->value);
        break;
    case GUARDIAN_HOLDOUT:
        child_on_holdout(r, &report->holdout);
        break;
    case GUARDIAN_STUCK:
        clave__holder_policy_excuse(&r->hold_policy);
        child_report_stuck(r, &report->holdout,
                           r->hold_policy.lost || report->cause == CAUSE_DEADLINE);
        break;
    case GUARDIAN_ARMING:
        r->armed = true;
        break;
    case GUARDIAN_ARMED:
        clave__holder_policy_watch(&r->hold_policy);
        lock_message_armed(r->plan, report->value);
        break;
    case GUARDIAN_UNARMED:
        child_on_unarmed(r, &report->watchdog);
        break;
    case GUARDIAN_STARVED:
        lock_message_starved(r->plan);
        break;
    case GUARDIAN_ENDED:
        r->armed = false;
        child_conclude(r, report->cause, report->value);
        break;
    }
}

static void child_on_guardian_death(struct runner *r)
{
    uv_poll_stop(&r->reports);
    if (r->phase == LEAVING)
        return;
    if (r->phase == HOLDING) {
        clave__holder_policy_bereave(&r->hold_policy);
        child_begin_sweep(r, "was killed");
    } else {
        r->events->leave(r, EXIT_INTERNAL);
        diag(r->o, "%s: the guardian was killed: giving up", r->plan->path);
    }
}

static void child_take_reports(struct runner *r)
{
    struct guardian_report report;
    int n = 0;
    while (r->phase != LEAVING && r->phase != KEEPING &&
           (n = guardian_read(&r->guardian, &report)) > 0)
        child_on_report(r, &report);
    if (n < 0)
        child_on_guardian_death(r);
}

void child_on_reports(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    child_take_reports(poll->data);
}

/* The guardian should have acted before this time. If it has not, it is taken to be stopped, and we
 * kill the command ourselves. But if we were the ones who were stopped, its reports are waiting to
 * be read, and they are read first. */
void child_on_watchdog(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    r->watchdog_at = CLAVE_NEVER;
    if (r->phase == HOLDING)
        child_take_reports(r);
    if (r->phase != HOLDING)
        return;
    if (!clave__holder_policy_is_overdue(&r->hold_policy, clave_now())) {
        child_arm_watchdog(r);
        return;
    }
    /* After a freeze of a whole container, all of whose processes wake up at once, nothing is wrong
     * with the guardian. */
    enum { MOMENT_MS = 1000 };
    int64_t late = clave_now() - clave__holder_policy_limit(&r->hold_policy);
    char text[DURATION_CAP], fault[160] = "does not answer";
    if (late >= MOMENT_MS)
        snprintf(fault, sizeof fault,
                 "did not run in time, nor did this process, %s late (frozen, stopped, or without "
                 "a processor)",
                 clave__duration_format(late, text));
    child_begin_sweep(r, fault);
}

/* ---- signals --------------------------------------------------------------------------------- */

void child_on_signal(struct runner *r, int sig)
{
    assert(r->phase == HOLDING);
    guardian_forward(&r->guardian, sig);
    /* While a process that we cannot stop is alive, we go on too: somebody must watch it. */
    if (sig == SIGTSTP && r->holdout.pid == 0)
        raise(SIGSTOP);
}

void child_on_continued(struct runner *r)
{
    assert(r->phase == HOLDING);
    if (deadline_page_get(r->guardian.page) <= clave_now() && r->plan->on_lost != ON_LOST_IGNORE)
        return; /* the guardian has ended the command, or is about to */
    if (r->wants_terminal && foreground_group_lend(&r->terminal, r->command))
        r->wants_terminal = false;
    guardian_forward(&r->guardian, SIGCONT);
}
