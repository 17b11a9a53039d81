/* health_check.c - see health_check.h. runner.c, child.c and member.c call
 * it.
 *
 * What must stay true: at most one check runs; everything in its process group is dead before the
 * next is started, unless it cannot be killed; and nothing here waits. */
#include "cmd/run/health_check.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time_format.h"
#include "clave/uv.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/participant.h"
#include "cmd/run/run_flags.h"

/* ---- flags ----------------------------------------------------------------------------------- */

bool health_plan_take_flag(struct health_plan *p, struct options *o, int id)
{
    struct health_terms *t = &p->terms;
    int64_t n;
    p->tuned |= id != RUN_FLAG_HEALTH;
    switch (id) {
    case RUN_FLAG_HEALTH:
        p->command = o->value;
        return true;
    case RUN_FLAG_HEALTH_EVERY:
        return options_duration(o, "health-every", 1, RUN_FLAG_YEAR_MS, &t->every_ms);
    case RUN_FLAG_HEALTH_TIMEOUT:
        return options_duration(o, "health-timeout", 1, RUN_FLAG_YEAR_MS, &t->timeout_ms);
    case RUN_FLAG_HEALTH_GRACE:
        return options_duration(o, "health-grace", 0, RUN_FLAG_YEAR_MS, &t->grace_ms);
    case RUN_FLAG_HEALTH_FAILS:
        if (!options_number(o, "health-fails", 1, INT32_MAX, &n))
            return false;
        t->fails = (int)n;
        return true;
    default:
        return false;
    }
}

int health_plan_check(struct health_plan *p, struct options *o, enum on_lost on_lost)
{
    struct health_terms *t = &p->terms;
    char every[DURATION_CAP];
    if (!p->command && p->tuned)
        return diag_usage(o, "--health-every, --health-timeout, --health-fails and --health-grace "
                             "need --health SHELL-COMMAND");
    if (p->command && on_lost == ON_LOST_IGNORE)
        return diag_usage(o, "--health ends the command, and --on-lost ignore forbids that");
    if (t->timeout_ms > t->every_ms)
        return diag_usage(o, "--health-timeout is longer than --health-every (%s)",
                          clave__duration_format(t->every_ms, every));
    if (t->timeout_ms == 0)
        t->timeout_ms = t->every_ms;
    return EXIT_OK;
}

/* ---- what a check prints --------------------------------------------------------------------- */

static void health_take_output(struct health_check *h, const char *data, size_t n)
{
    size_t len = strlen(h->line);
    for (size_t i = 0; i < n; i++) {
        bool ends = data[i] == '\n' || data[i] == '\0';
        h->line_ended |= ends;
        if (ends)
            continue;
        len = h->line_ended ? 0 : len;
        h->line_ended = false;
        if (len + 1 < sizeof h->line)
            h->line[len++] = data[i];
        h->line[len] = '\0';
    }
}

/* Reads a bounded amount, so that a check that never stops printing cannot keep the loop busy. */
static void health_read(struct health_check *h)
{
    enum { READS = 16 };
    char data[4096];
    ssize_t n;
    for (int i = 0; i < READS && (n = read(h->ends[0], data, sizeof data)) > 0; i++)
        health_take_output(h, data, (size_t)n);
}

static void health_on_output(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    health_read(poll->data);
}

static void health_say_why(struct health_check *h, const char *what)
{
    char line[HEALTH_LINE_CAP];
    participant_text_printable(h->line, line, sizeof line);
    snprintf(h->why, sizeof h->why, "%s%s%s", what, *line ? ": " : "", line);
}

/* ---- its process ----------------------------------------------------------------------------- */

static void health_start_check(struct health_check *h)
{
    char what[96];
    assert(h->pid == 0);
    health_read(h); /* the rest of what the previous check printed */
    h->line[0] = '\0';
    h->line_ended = false;
    pid_t pid = h->owner->start(h->arg, h->plan->command, h->ends[1]);
    if (pid > 0) {
        h->pid = pid;
        return;
    }
    snprintf(what, sizeof what, "cannot start the health check: %s", strerror(errno));
    health_say_why(h, what);
    clave__health_policy_ended(&h->policy, false);
}

static void health_kill_check(struct health_check *h)
{
    char what[96], time[DURATION_CAP];
    if (h->pid > 0)
        kill(-h->pid, SIGKILL);
    health_read(h);
    snprintf(what, sizeof what, "the health check did not end within %s",
             clave__duration_format(h->plan->terms.timeout_ms, time));
    health_say_why(h, what);
}

/* Does what the policy says is due, and reports what has changed. */
static void health_look(struct health_check *h)
{
    unsigned todo;
    while (h->on && (todo = clave__health_policy_step(&h->policy, clave_now())) != 0) {
        if (todo & HEALTH_KILL_CHECK)
            health_kill_check(h);
        if (todo & HEALTH_START_CHECK)
            health_start_check(h);
    }
    h->owner->judged(h->arg);
    int64_t at = clave__health_policy_wake_at(&h->policy);
    uv_timer_stop(&h->timer);
    if (!h->on || at == CLAVE_NEVER)
        return;
    int64_t left = at - clave_now();
    uv_update_time(h->loop);
    uv_timer_start(&h->timer, h->timer.timer_cb, left > 0 ? (uint64_t)left : 0, 0);
}

/* If this process was the one that did not run, the check may have ended in time. */
static void health_on_timer(uv_timer_t *timer)
{
    struct health_check *h = timer->data;
    health_reap(h);
    health_look(h);
}

void health_reap(struct health_check *h)
{
    siginfo_t end = {.si_pid = 0};
    char what[96];
    if (h->pid == 0 || waitid(P_PID, (id_t)h->pid, &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        end.si_pid == 0)
        return;
    kill(-h->pid, SIGKILL); /* until it is reaped, its number cannot belong to another group */
    while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    h->pid = 0;
    if (!h->on)
        return;
    bool ran = h->policy.check == HEALTH_CHECK_RUNS; /* otherwise it was killed, and said so */
    bool passed = end.si_code == CLD_EXITED && end.si_status == 0;
    health_read(h);
    snprintf(what, sizeof what, "the health check %s %d",
             end.si_code == CLD_EXITED ? "failed with exit code" : "was ended by signal",
             end.si_status);
    if (ran && !passed)
        health_say_why(h, what);
    clave__health_policy_ended(&h->policy, passed);
    health_look(h);
}

/* ---- life ------------------------------------------------------------------------------------ */

int health_open(struct health_check *h, const struct health_plan *plan, uv_loop_t *loop,
                const struct health_owner *owner, void *arg)
{
    *h = (struct health_check){.plan = plan, .owner = owner, .arg = arg, .loop = loop};
    uv_timer_init(loop, &h->timer);
    h->timer.data = h->output.data = h;
    h->ends[0] = h->ends[1] = -1;
    if (!plan->command)
        return 0;
    if (pipe2(h->ends, O_CLOEXEC) != 0 || fcntl(h->ends[0], F_SETFL, O_NONBLOCK) != 0)
        return -errno;
    int err = uv_poll_init(loop, &h->output, h->ends[0]);
    return err != 0 ? err : uv_poll_start(&h->output, UV_READABLE, health_on_output);
}

void health_begin(struct health_check *h)
{
    h->on = h->plan->command != NULL;
    if (!h->on)
        return;
    clave__health_policy_begin(&h->policy, &h->plan->terms, clave_now());
    uv_timer_start(&h->timer, health_on_timer, 0, 0);
}

void health_run(struct health_check *h)
{
    if (!h->on)
        return;
    clave__health_policy_run(&h->policy, clave_now());
    health_look(h);
}

void health_pass_on(const struct health_check *h, struct health_passed *out)
{
    *out = (struct health_passed){.policy = h->policy,
                                  .on = h->on,
                                  .ends = {h->ends[0], h->ends[1]},
                                  .pid = h->pid,
                                  .line_ended = h->line_ended};
    memcpy(out->line, h->line, sizeof out->line);
    memcpy(out->why, h->why, sizeof out->why);
}

void health_go_on(struct health_check *h, const struct health_passed *from)
{
    for (int i = 0; i < 2 && from->ends[i] >= 0; i++) {
        dup3(from->ends[i], h->ends[i], O_CLOEXEC);
        close(from->ends[i]);
    }
    h->policy = from->policy;
    h->on = from->on;
    h->pid = from->pid;
    h->line_ended = from->line_ended;
    memcpy(h->line, from->line, sizeof h->line);
    memcpy(h->why, from->why, sizeof h->why);
    if (h->on)
        uv_timer_start(&h->timer, health_on_timer, 0, 0);
}

void health_stop(struct health_check *h)
{
    h->on = false;
    uv_timer_stop(&h->timer);
    if (h->pid > 0)
        kill(-h->pid, SIGKILL);
}

void health_close(struct health_check *h)
{
    health_stop(h);
    uv_close((uv_handle_t *)&h->timer, NULL);
    if (h->ends[0] < 0)
        return;
    uv_close((uv_handle_t *)&h->output, NULL);
    close(h->ends[0]);
    close(h->ends[1]);
}

bool health_lets_stand(const struct health_check *h)
{
    return !h->plan->command || h->policy.phase == HEALTH_FIT;
}
