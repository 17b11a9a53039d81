/* runner.c - the client, its session and the way out of `clave lock` and `clave elect`; the verbs
 * call runner_run. The phase only moves forward (runner.h), and every path ends in one
 * runner_leave, with the exit code. */
#include "cmd/run/runner.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "cmd/cli/config.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/standard_error.h"
#include "cmd/cli/unreachable.h"
#include "cmd/run/child.h"
#include "cmd/run/guardian/proc_stat.h"
#include "cmd/run/lock_messages.h"
#include "cmd/run/runner_acquire.h"
#include "cmd/run/runner_signals.h"
#include "cmd/run/stages/run_slot.h"
#include "runtime/client/uv_client.h"
#include "runtime/thread_start.h"

enum { LEAVE_MS = 3000 };

/* ---- leaving --------------------------------------------------------------------------------- */

static void runner_on_uv_stopped(void *arg)
{
    struct runner *r = arg;
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
    lock_wait_close(&r->progress);
}

/* The session is closed; or the server has not confirmed that in time, and the guardian is left to
 * do it in the background. */
static void runner_on_phase_timeout(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    runner_stop(r);
}

static void runner_leave(struct runner *r, int code)
{
    if (r->phase == LEAVING)
        return;
    r->phase = LEAVING;
    r->code = code;
    uint64_t limit_ms = clave_async_client_is_connected(r->client) ? LEAVE_MS : 0;
    lock_wait_end(&r->progress);
    uv_poll_stop(&r->reports);
    uv_timer_stop(&r->watchdog);
    uv_timer_start(&r->phase_timer, runner_on_phase_timeout, limit_ms, 0);
    sd_status_leaving(r);
    run_stages_release(r);
    /* Closing the session deletes its nodes: one transaction. */
    clave_async_client_close(r->client, clave_now());
    clave_uv_flush(r->uv);
}

/* ---- the connection -------------------------------------------------------------------------- */

static void runner_on_closed(struct runner *r, clave_err why)
{
    if (r->phase == LEAVING) {
        if (r->stopped)
            return; /* closed by us: the server has not confirmed it */
        r->released = true;
        uv_timer_start(&r->phase_timer, runner_on_phase_timeout, 0,
                       0); /* not inside the client's call */
        return;
    }
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

/* It took too long, or every server refuses. */
static void runner_on_connecting_ends(uv_timer_t *timer)
{
    struct runner *r = timer->data;
    const char *connect = r->plan->connect, *why;
    lock_wait_end(&r->progress);
    runner_leave(r, clave__uv_refusal(r->uv, &why) != CLAVE_OK
                        ? diag_refused(r->o, connect, why)
                        : unreachable_give_up(r->o, connect, runner_connect_within(r),
                                              clave_async_client_errmsg(r->client)));
}

static void runner_on_settled(void *arg)
{
    struct runner *r = arg;
    const char *why;
    if (r->phase == CONNECTING && clave__uv_refusal(r->uv, &why) != CLAVE_OK)
        uv_timer_start(&r->phase_timer, runner_on_connecting_ends, 0,
                       0); /* not inside the client's call */
    int64_t id = clave_async_client_session_id(r->client);
    if (id != r->guardian_session_id) {
        struct session_key key = {.id = id,
                                  .timeout_ms = clave_async_client_session_timeout(r->client)};
        memcpy(key.passwd, clave_async_client_session_passwd(r->client), sizeof key.passwd);
        guardian_set_session(&r->guardian, &key);
        r->guardian_session_id = id;
    }
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
    lock_wait_init(&r->progress, r->plan, &r->loop);
    r->parent =
        (struct parent_alarm){.watch = &r->plan->parent, .ended = runner_on_parent_end, .arg = r};
    err = uv_poll_init(&r->loop, &r->reports, r->guardian.socket);
    r->reports.data = r->phase_timer.data = r->watchdog.data = r;
    if (err == 0)
        err = uv_poll_start(&r->reports, UV_READABLE, child_on_reports);
    if (err == 0)
        err = parent_alarm_start(&r->parent, &r->loop);
    return err != 0 ? err : runner_catch_signals(r);
}

/* Warnings are shown without -v too. */
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
    clave_err err = clave_async_client_new(&r->client, &co);
    if (err == CLAVE_OK)
        err = clave_uv_start(&r->uv, &r->loop, r->client);
    if (err == CLAVE_OK)
        clave__uv_on_settled(r->uv, runner_on_settled, r);
    return err;
}

static void runner_loop(struct runner *r)
{
    r->began = clave_now();
    uv_timer_start(&r->phase_timer, runner_on_connecting_ends, (uint64_t)runner_connect_within(r),
                   0);
    lock_wait_connect(&r->progress, r->client, r->began + runner_connect_within(r));
    uv_run(&r->loop, UV_RUN_DEFAULT);
    run_stages_free(r);
    acquisition_free(&r->acquisition);
    clave_async_client_free(r->client);
    runner_release_signals(r); /* and runs the loop until all handles are closed */
}

/* Orphans of the guardian are to become our children. Done before there are threads. A kernel
 * without sub-reapers, as qemu emulates one, runs the command all the same, unless all of it must
 * be killable. */
static int runner_become_subreaper(const struct run_plan *p)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) == 0)
        return EXIT_OK;
    if (errno != EINVAL || p->same_user)
        return diag_end(p->o, NULL, EXIT_INTERNAL, "cannot become a child sub-reaper: %s",
                        strerror(errno));
    diag(p->o,
         "%s: this system has no child sub-reapers: a process of the command whose parent has "
         "ended is not found, and may outlive the command",
         p->path);
    return EXIT_OK;
}

/* What the command leaves in a session of its own is found in /proc. */
static int runner_check_proc(const struct run_plan *p)
{
    if (proc_is_ours())
        return EXIT_OK;
    const char *why = "/proc does not show the processes of this PID namespace";
    if (p->same_user)
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
    const struct guardian_plan gp = {.o = plan->o,
                                     .connect = plan->connect,
                                     .path =
                                         plan->stages.slot ? plan->stages.slot->path : plan->path,
                                     .holders = plan->holders,
                                     .owner = plan->owner,
                                     .argv = plan->argv,
                                     .own_notify = plan->notify != SD_NOTIFY_COMMAND,
                                     .same_user = plan->same_user,
                                     .parent = &plan->parent};
    int code = runner_become_subreaper(plan);
    if (code == EXIT_OK)
        code = runner_check_proc(plan);
    return code == EXIT_OK ? guardian_start(&r->guardian, &gp) : code;
}

static const struct runner_events runner_events = {
    .cleared = child_begin,
    .ended = run_stages_end,
    .leave = runner_leave,
    .stop = runner_stop,
};

int runner_run(const struct run_plan *plan, bool *told_to_end)
{
    struct runner *r = calloc(1, sizeof *r);
    if (!r)
        return diag_err(plan->o, plan->path, CLAVE_ENOMEM, NULL);
    r->events = &runner_events;
    r->plan = plan;
    r->o = plan->o;
    int code = runner_start_guardian(r);
    if (code != EXIT_OK) {
        free(r);
        return code;
    }
    foreground_group_open(&r->terminal);
    int fault = runner_open_loop(r);
    clave_err err = fault == 0 ? runner_open_client(r) : CLAVE_EIO;
    if (err != CLAVE_OK) { /* we are about to exit: the loop stays as it is */
        guardian_dismiss(&r->guardian);
        if (fault == 0)
            return diag_err(plan->o, plan->connect, err, NULL);
        return diag_end(plan->o, NULL, EXIT_INTERNAL, "cannot start: %s", uv_strerror(fault));
    }
    standard_error_never_wait(); /* the lock may be ours before we know */
    runner_loop(r);
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
