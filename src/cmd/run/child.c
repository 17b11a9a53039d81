/* child.c - while the command runs. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "cmd/cli/diag.h"
#include "cmd/run/hook.h"
#include "cmd/run/proctree.h"
#include "cmd/run/runner.h"
#include "cmd/run/spawn.h"

enum { SWEEP_MS = 5 };

/* ---- time --------------------------------------------------------------------------------- */

int64_t holder_grace(const struct wrapper *w)
{
    return clave__kill_policy_grace(clave_async_client_session_timeout(w->client),
                                    w->plan->grace_ms);
}

int64_t holder_lead(const struct wrapper *w)
{
    return clave__kill_policy_lead(clave_async_client_session_timeout(w->client));
}

/* One that is armed for earlier stays: it fires once for nothing. */
static void arm_watchdog(struct wrapper *w)
{
    int64_t at = clave__hold_policy_limit(&w->hold_policy);
    if (at >= w->watchdog_at)
        return;
    int64_t left = at - clave_now();
    w->watchdog_at = at;
    uv_update_time(&w->loop);
    uv_timer_start(&w->watchdog, holder_on_watchdog, left > 0 ? (uint64_t)left : 0, 0);
}

void holder_publish(struct wrapper *w)
{
    clave_grant g;
    if (w->phase != HOLDING || w->hold_policy.lost || !acquisition_grant(&w->acquisition, &g))
        return;
    deadline_page_set(w->guardian.page, clave__hold_policy_extend(&w->hold_policy, g.deadline),
                      g.deadline);
    arm_watchdog(w);
}

/* ---- beginning and end -------------------------------------------------------------------- */

static void tell_not_started(const struct wrapper *w)
{
    diag(w->o, "%s: the command was not started: the time to %s was over too soon", w->plan->path,
         w->plan->elects ? "lead" : "hold the lock");
}

void holder_begin(struct wrapper *w)
{
    const struct lock_plan *plan = w->plan;
    struct page *page = w->guardian.page;
    struct guardian_task *t = &w->task;
    clave_grant g;
    if (!acquisition_grant(&w->acquisition, &g)) {
        tell_not_started(w);
        wrapper_leave(w, EXIT_LOST);
        return;
    }
    const char *name = clave__path_name(g.node);
    *t = (struct guardian_task){.token = g.token,
                                .session_id = g.session_id,
                                .terms = {.on_lost = plan->on_lost,
                                          .grace_ms = holder_grace(w),
                                          .lead_ms = holder_lead(w),
                                          .until = CLAVE_NEVER}};
    w->acquired_at = clave_now();
    w->watchdog_at = CLAVE_NEVER;
    if (plan->max_hold_ms > 0)
        t->terms.until = w->acquired_at + plan->max_hold_ms;
    clave__hold_policy_begin(&w->hold_policy, &t->terms);
    memcpy(t->node, name, strnlen(name, sizeof t->node - 1));
    atomic_store(&page->token, g.token);
    atomic_store(&page->session_id, g.session_id);
    w->phase = HOLDING;
    holder_publish(w);
    lock_report_acquired(plan, &g, w->acquired_at - w->began);
    if (plan->grace_ms > t->terms.grace_ms)
        diag(w->o, "%s: the grace is %lldms, a quarter of the session timeout (--session-timeout)",
             plan->path, (long long)t->terms.grace_ms);
    hook_run(plan, plan->on_elected, "elected", g.token);
    if (plan->value && acquisition_publish(&w->acquisition, plan->value) != CLAVE_OK)
        diag(w->o, "%s: the value cannot be published", plan->path);
    guardian_run(&w->guardian, t);
}

static int code_of_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Nothing of the command is alive. */
static void child_conclude(struct wrapper *w, enum kill_policy_cause cause, int status)
{
    bool cut_short = clave__hold_policy_was_cut_short(&w->hold_policy, cause);
    int code = cut_short ? EXIT_LOST : code_of_status(status);
    if (w->command == 0)
        tell_not_started(w);
    terminal_take(&w->terminal);
    lock_report_ended(w->plan, code, clave_now() - w->acquired_at);
    hook_run(w->plan, w->plan->on_deposed, "deposed", w->task.token);
    run_policy_end(w, code);
}

/* At once: others may hold it. */
void holder_lost(struct wrapper *w, clave_err why)
{
    if (w->phase != HOLDING)
        return;
    clave__hold_policy_lose(&w->hold_policy, clave_now());
    deadline_page_set(w->guardian.page, PAGE_LOST, PAGE_LOST);
    lock_report_lost(w->plan, why);
    guardian_stop(&w->guardian);
    arm_watchdog(w);
}

void holder_asked(struct wrapper *w)
{
    if (w->phase != HOLDING || w->hold_policy.lost || w->asked)
        return;
    w->asked = true;
    lock_report_asked(w->plan);
    guardian_stop(&w->guardian);
}

/* ---- without the guardian ----------------------------------------------------------------- */

static void child_reap(struct wrapper *w)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0 || (pid < 0 && errno == EINTR)) {
        if (pid != w->command)
            continue;
        w->reaped = true;
        w->status = status;
    }
}

/* We are a sub-reaper too: without the guardian its descendants are ours. The command itself
 * was killed by then, whether it is us who saw that or not. */
static void sweep(uv_timer_t *timer)
{
    struct wrapper *w = timer->data;
    child_reap(w);
    cgroup_kill(&w->guardian.cgroup);
    if (proctree_kill(w->reaped ? 0 : w->command) > 0 || !proctree_is_gone())
        return;
    child_reap(w);
    uv_timer_stop(timer);
    cgroup_remove(&w->guardian.cgroup);
    child_conclude(w, CAUSE_NONE, w->reaped ? w->status : SIGKILL);
}

static void begin_sweep(struct wrapper *w)
{
    w->phase = SWEEPING;
    uv_poll_stop(&w->reports);
    uv_timer_stop(&w->watchdog);
    /* All of it now: the guardian is waited for, and may take its time to die. */
    cgroup_kill(&w->guardian.cgroup);
    proctree_kill(0);
    guardian_dismiss(&w->guardian);
    uv_timer_start(&w->patience, sweep, 0, SWEEP_MS);
}

/* ---- the guardian's reports --------------------------------------------------------------- */

/* The command is stopped. By the terminal because it needs it: it gets it, or, when we do not
 * have it either, we stop as it would have. By the user: so are we, and all of our job. */
static void on_command_stopped(struct wrapper *w, int sig)
{
    bool asks = sig == SIGTTIN || sig == SIGTTOU;
    if (asks && terminal_lend(&w->terminal, w->command)) {
        guardian_forward(&w->guardian, SIGCONT);
    } else if ((asks && w->terminal.fd >= 0) || (sig == SIGTSTP && terminal_take(&w->terminal))) {
        w->wants_terminal = true;
        kill(0, sig);
    }
}

static void on_refused(struct wrapper *w, int error)
{
    diag(w->o, "cannot run '%s': %s", w->plan->argv[0], strerror(error));
    hook_run(w->plan, w->plan->on_deposed, "deposed", w->task.token);
    run_policy_end(w, spawn_exit_code(error));
}

static void on_report(struct wrapper *w, const struct guardian_report *r)
{
    switch (r->word) {
    case GUARDIAN_STARTED:
        w->command = r->value;
        sd_status_started(w);
        break;
    case GUARDIAN_REFUSED:
        on_refused(w, r->value);
        break;
    case GUARDIAN_STOPPED:
        on_command_stopped(w, r->value);
        break;
    case GUARDIAN_ENDING:
        lock_report_ending(w->plan, r->cause);
        sd_status_ending(w);
        break;
    case GUARDIAN_ENDED:
        child_conclude(w, r->cause, r->value);
        break;
    }
}

static void on_guardian_death(struct wrapper *w)
{
    uv_poll_stop(&w->reports);
    if (w->phase == LEAVING)
        return;
    progress_end(&w->progress);
    diag(w->o, "%s: the guardian was killed: %s", w->plan->path,
         w->phase == HOLDING ? "ending the command" : "giving up");
    if (w->phase == HOLDING) {
        clave__hold_policy_bereave(&w->hold_policy);
        begin_sweep(w);
    } else {
        wrapper_leave(w, EXIT_INTERNAL);
    }
}

static void take_reports(struct wrapper *w)
{
    struct guardian_report r;
    int n = 0;
    while (w->phase != LEAVING && w->phase != KEEPING && (n = guardian_read(&w->guardian, &r)) > 0)
        on_report(w, &r);
    if (n < 0)
        on_guardian_death(w);
}

void holder_on_reports(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    take_reports(poll->data);
}

/* The guardian acts before this; so it is stopped, unless it is we who were: then its reports
 * are there already. */
void holder_on_watchdog(uv_timer_t *timer)
{
    struct wrapper *w = timer->data;
    w->watchdog_at = CLAVE_NEVER;
    take_reports(w);
    if (w->phase != HOLDING)
        return;
    if (!clave__hold_policy_is_overdue(&w->hold_policy, clave_now())) {
        arm_watchdog(w);
        return;
    }
    diag(w->o, "%s: the guardian does not answer: ending the command", w->plan->path);
    begin_sweep(w);
}

/* ---- signals ------------------------------------------------------------------------------ */

void holder_on_signal(struct wrapper *w, int sig)
{
    guardian_forward(&w->guardian, sig);
    if (sig == SIGTSTP)
        raise(SIGSTOP);
}

void holder_on_continued(struct wrapper *w)
{
    if (deadline_page_get(w->guardian.page) <= clave_now() && w->plan->on_lost != ON_LOST_IGNORE)
        return; /* the guardian has seen to that, or is about to */
    if (w->wants_terminal && terminal_lend(&w->terminal, w->command))
        w->wants_terminal = false;
    guardian_forward(&w->guardian, SIGCONT);
}
