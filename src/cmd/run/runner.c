#include "cmd/run/runner.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cmd/cli/config.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/run/held.h"
#include "cmd/run/hook.h"
#include "runtime/client/uv_client.h"

enum { LEAVE_MS = 3000, IDENTITY_CAP = 4096, COMMAND_CAP = 1024 };

/* Forwarded while the command runs; the first four end what comes before. A signal that was
 * ignored when we were started (nohup, a shell's background) stays so, for the command too. */
static const int caught[WRAPPER_SIGNALS] = {SIGTERM, SIGINT,  SIGHUP,   SIGQUIT, SIGUSR1,
                                            SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT};

/* ---- leaving ------------------------------------------------------------------------------ */

static void on_link_closed(void *arg)
{
    struct wrapper *w = arg;
    uv_stop(&w->loop);
}

static void runner_stop(struct wrapper *w)
{
    if (w->stopped)
        return;
    w->stopped = true;
    clave_uv_stop(w->uv, on_link_closed, w);
    uv_close((uv_handle_t *)&w->reports, NULL);
    uv_close((uv_handle_t *)&w->patience, NULL);
    uv_close((uv_handle_t *)&w->watchdog, NULL);
    run_policy_close(w);
    sd_status_close(w);
    progress_close(&w->progress);
}

/* The session has ended; or the server does not say so in time, and the guardian is left to
 * see to it, in the background. */
static void on_patience_ends(uv_timer_t *timer)
{
    struct wrapper *w = timer->data;
    runner_stop(w);
}

void wrapper_leave(struct wrapper *w, int code)
{
    if (w->phase == LEAVING)
        return;
    w->phase = LEAVING;
    w->code = code;
    uint64_t patience = clave_async_client_is_connected(w->client) ? LEAVE_MS : 0;
    progress_end(&w->progress);
    uv_poll_stop(&w->reports);
    uv_timer_stop(&w->watchdog);
    uv_timer_start(&w->patience, on_patience_ends, patience, 0);
    sd_status_leaving(w);
    run_policy_release(w);
    /* The end of the session is the end of its nodes: one transaction. */
    clave_async_client_close(w->client, clave_now());
    clave_uv_flush(w->uv);
}

/* ---- the queue ---------------------------------------------------------------------------- */

static void runner_tell_held(const struct wrapper *w)
{
    clave_grant g;
    if (w->waited && acquisition_grant(&w->acquisition, &g))
        held_since_now(w->client, w->plan, g.node);
}

static void runner_on_verdict(void *arg, clave_err err)
{
    struct wrapper *w = arg;
    if (w->phase != WAITING)
        return;
    progress_end(&w->progress);
    if (err == CLAVE_OK) {
        runner_tell_held(w);
        run_policy_begin(w);
    } else if (err == CLAVE_EBUSY) {
        bool away = !clave_async_client_is_connected(w->client);
        lock_report_not_acquired(w->plan, clave_now() - w->began,
                                 away ? clave_async_client_errmsg(w->client) : NULL,
                                 acquisition_lacks_limit(&w->acquisition));
        wrapper_leave(w, w->plan->conflict_code);
    } else if (err == CLAVE_EDEADLOCK) {
        lock_report_deadlock(w->plan, acquisition_deadlock(&w->acquisition));
        wrapper_leave(w, EXIT_DEADLOCK);
    } else {
        int code = diag_err(w->o, w->plan->path, err, NULL);
        if (err == CLAVE_ENOAUTH)
            lock_report_unreadable(w->plan);
        wrapper_leave(w, code);
    }
}

static void runner_on_moved(void *arg, size_t ahead, const char *predecessor)
{
    struct wrapper *w = arg;
    w->waited = true;
    progress_moved(&w->progress, ahead, predecessor);
    sd_status_waiting(w, ahead, true);
    nested_look(&w->nested, w->client);
}

/* It would wait for ever: what it waits for waits for it. */
static void on_outer(void *arg, const clave_participant *outer)
{
    struct wrapper *w = arg;
    if (w->phase != WAITING || w->run_policy.phase != NOT_GRANTED)
        return;
    progress_end(&w->progress);
    lock_report_nested(w->plan, outer);
    wrapper_leave(w, EXIT_DEADLOCK);
}

static void on_next(void *arg)
{
    struct wrapper *w = arg;
    if (w->phase == WAITING)
        hook_run(w->plan, w->plan->standby, "standby", 0);
}

static void runner_on_lost(void *arg, clave_err why)
{
    struct wrapper *w = arg;
    if (w->phase == HOLDING)
        holder_lost(w, why);
    else
        run_policy_lost(w, why);
}

static void runner_on_asked(void *arg)
{
    struct wrapper *w = arg;
    if (w->phase == HOLDING) {
        holder_asked(w);
    } else if (w->phase != LEAVING) {
        w->asked = true;
        lock_report_asked(w->plan);
        run_policy_hurry(w);
    }
}

static const struct acquisition_events acquisition_events = {
    .moved = runner_on_moved,
    .next = on_next,
    .verdict = runner_on_verdict,
    .lost = runner_on_lost,
    .asked = runner_on_asked,
};

static int64_t wait_until(const struct wrapper *w)
{
    int64_t wait = w->plan->wait_ms;
    return wait == LOCK_TRY ? CLAVE_TRY : wait == LOCK_FOR_EVER ? CLAVE_NEVER : w->began + wait;
}

static void begin_waiting(struct wrapper *w)
{
    const struct lock_plan *plan = w->plan;
    /* The command gets some time before its first warning could be due. */
    const struct acquisition_terms terms = {.deadline = wait_until(w),
                                            .min_valid_ms =
                                                holder_grace(w) + holder_lead(w) +
                                                clave_async_client_session_timeout(w->client) / 8};
    connect_note_session(w->o, clave_async_client_session_id(w->client),
                         clave_async_client_session_timeout(w->client));
    uv_timer_stop(&w->patience);
    w->phase = WAITING;
    w->acquisition = (struct acquisition){.events = &acquisition_events, .arg = w};
    w->nested =
        (struct nested){.plan = plan, .acquisition = &w->acquisition, .found = on_outer, .arg = w};
    clave_err err = acquisition_begin(&w->acquisition, w->client, plan, &terms);
    if (err == CLAVE_OK) {
        progress_begin(&w->progress, &w->acquisition, w->client, w->uv);
        sd_status_waiting(w, 0, false);
    } else {
        wrapper_leave(w, diag_err(w->o, plan->path, err, NULL));
    }
}

/* ---- the connection ----------------------------------------------------------------------- */

/* "digest" of "digest:user:password"; there is a colon: config_auth_ok. */
static const char *scheme_of(const char *auth, char out[CONFIG_SCHEME_CAP])
{
    snprintf(out, CONFIG_SCHEME_CAP, "%.*s", (int)strcspn(auth, ":"), auth);
    return out;
}

/* The answers come in the order of the flags. */
static void on_identity(clave_async_client *c, const clave_result *res, void *arg)
{
    struct wrapper *w = arg;
    const char *auth = w->o->auth[w->o->nauth - w->identities];
    char scheme[CONFIG_SCHEME_CAP];
    (void)c;
    w->identities--;
    if (w->phase != CONNECTING)
        return;
    if (res->err != CLAVE_OK)
        wrapper_leave(w, diag_auth(w->o, scheme_of(auth, scheme), res->err));
    else if (w->identities == 0)
        begin_waiting(w);
}

static void runner_add_identities(struct wrapper *w)
{
    const struct options *o = w->o;
    for (size_t i = 0; i < o->nauth; i++) {
        const char *id = strchr(o->auth[i], ':') + 1;
        char scheme[CONFIG_SCHEME_CAP];
        clave_err err = clave_async_add_auth(w->client, scheme_of(o->auth[i], scheme), id,
                                             strlen(id), on_identity, w);
        if (err != CLAVE_OK) {
            wrapper_leave(w, diag_auth(o, scheme, err));
            return;
        }
        w->identities++;
    }
    if (o->nauth == 0)
        begin_waiting(w);
}

static void runner_on_closed(struct wrapper *w, clave_err why)
{
    if (w->phase == LEAVING) {
        if (w->stopped)
            return; /* closed by its own end: the server knows nothing of it */
        w->released = true;
        uv_timer_start(&w->patience, on_patience_ends, 0, 0); /* not inside the client's call */
        return;
    }
    if (w->phase == HOLDING || w->phase == SWEEPING || w->phase == KEEPING)
        return; /* the claim tells of the loss */
    progress_end(&w->progress);
    diag(w->o, "%s: %s", w->plan->connect, clave_async_client_errmsg(w->client));
    wrapper_leave(w, exit_code_of(why));
}

static void runner_on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    struct wrapper *w = arg;
    (void)c;
    switch (state) {
    case CLAVE_STATE_CONNECTED:
        if (w->phase == CONNECTING) {
            progress_clear(&w->progress);
            runner_add_identities(w);
        }
        break;
    case CLAVE_STATE_CLOSED:
        runner_on_closed(w, why);
        break;
    case CLAVE_STATE_SUSPENDED:
    case CLAVE_STATE_RECONNECTED:
        if (w->phase == HOLDING && !w->hold_policy.lost) {
            lock_report_connection(w->plan, state == CLAVE_STATE_RECONNECTED,
                                   deadline_page_get(w->guardian.page) - clave_now());
            sd_status_connection(w, state == CLAVE_STATE_RECONNECTED);
        }
        if (w->phase == WAITING && state == CLAVE_STATE_RECONNECTED)
            nested_look(&w->nested, w->client);
        break;
    case CLAVE_STATE_LATENT:
    case CLAVE_STATE_LOST:
    case CLAVE_STATE_READ_ONLY:
        break;
    }
}

static int64_t connect_within(const struct wrapper *w)
{
    int64_t wait = w->plan->wait_ms, timeout = w->o->timeout_ms;
    return wait > 0 && wait < timeout ? wait : timeout;
}

/* It takes too long, or every server refuses. */
static void on_connecting_ends(uv_timer_t *timer)
{
    struct wrapper *w = timer->data;
    const char *connect = w->plan->connect, *why;
    progress_end(&w->progress);
    wrapper_leave(w, clave__uv_refusal(w->uv, &why) != CLAVE_OK
                         ? diag_refused(w->o, connect, why)
                         : diag_unreachable(w->o, connect, connect_within(w),
                                            clave_async_client_errmsg(w->client)));
}

static void runner_on_settled(void *arg)
{
    struct wrapper *w = arg;
    const char *why;
    if (w->phase == CONNECTING && clave__uv_refusal(w->uv, &why) != CLAVE_OK)
        uv_timer_start(&w->patience, on_connecting_ends, 0, 0); /* not inside the client's call */
    int64_t id = clave_async_client_session_id(w->client);
    if (id != w->told_session) {
        struct session_key key = {.id = id,
                                  .timeout_ms = clave_async_client_session_timeout(w->client)};
        memcpy(key.passwd, clave_async_client_session_passwd(w->client), sizeof key.passwd);
        guardian_set_session(&w->guardian, &key);
        w->told_session = id;
    }
    holder_publish(w);
}

/* ---- signals ------------------------------------------------------------------------------ */

static void runner_on_signal(uv_signal_t *handle, int sig)
{
    struct wrapper *w = handle->data;
    bool ends = sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT;
    w->told_to_end |= ends;
    switch (w->phase) {
    case CONNECTING:
    case WAITING:
        if (ends)
            wrapper_leave(w, 128 + sig);
        else if (sig == SIGTSTP)
            raise(SIGSTOP);
        break;
    case HOLDING:
        if (sig == SIGCONT)
            holder_on_continued(w);
        else
            holder_on_signal(w, sig);
        break;
    case LEAVING:
        if (ends)
            runner_stop(w);
        break;
    case KEEPING:
        if (ends)
            run_policy_hurry(w);
        else if (sig == SIGTSTP)
            raise(SIGSTOP);
        break;
    case SWEEPING:
        break;
    }
}

static int catch_signals(struct wrapper *w)
{
    int err = 0;
    for (size_t i = 0; i < WRAPPER_SIGNALS && err == 0; i++) {
        struct sigaction now;
        sigaction(caught[i], NULL, &now);
        if (now.sa_handler == SIG_IGN)
            continue;
        uv_signal_t *handle = &w->signals[w->nsignals];
        err = uv_signal_init(&w->loop, handle);
        if (err != 0)
            break;
        handle->data = w;
        w->nsignals++;
        err = uv_signal_start(handle, runner_on_signal, caught[i]);
    }
    return err;
}

/* What has come is heard; what comes from here on ends this process by itself, or what it makes of
 * itself: none is lost between the two. */
static void release_signals(struct wrapper *w)
{
    sigset_t ending, before;
    sigemptyset(&ending);
    for (size_t i = 0; i < w->nsignals; i++)
        sigaddset(&ending, w->signals[i].signum);
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < w->nsignals; i++)
        uv_close((uv_handle_t *)&w->signals[i], NULL);
    uv_run(&w->loop, UV_RUN_NOWAIT);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- life --------------------------------------------------------------------------------- */

static int open_loop(struct wrapper *w)
{
    int err = uv_loop_init(&w->loop);
    if (err != 0)
        return err;
    uv_timer_init(&w->loop, &w->patience);
    uv_timer_init(&w->loop, &w->watchdog);
    run_policy_open(w);
    sd_status_open(w);
    progress_init(&w->progress, w->plan, &w->loop);
    err = uv_poll_init(&w->loop, &w->reports, w->guardian.socket);
    w->reports.data = w->patience.data = w->watchdog.data = w;
    if (err == 0)
        err = uv_poll_start(&w->reports, UV_READABLE, holder_on_reports);
    return err != 0 ? err : catch_signals(w);
}

/* What goes wrong without an end to it is said without -v, too. */
static void on_warning(void *arg, int level, const char *msg)
{
    struct wrapper *w = arg;
    if (level > CLAVE_LOG_WARN)
        return;
    progress_clear(&w->progress);
    lock_report_warning(w->plan, msg);
}

static clave_err open_client(struct wrapper *w)
{
    clave_client_options co;
    connect_client_options(w->o, &co);
    if (!co.log) {
        co.log = on_warning;
        co.log_arg = w;
    }
    co.hosts = w->plan->connect;
    co.seed = clave_random_seed();
    co.state_cb = runner_on_state;
    co.state_arg = w;
    clave_err err = clave_async_client_new(&w->client, &co);
    if (err == CLAVE_OK)
        err = clave_uv_start(&w->uv, &w->loop, w->client);
    if (err == CLAVE_OK)
        clave__uv_on_settled(w->uv, runner_on_settled, w);
    return err;
}

static void runner_run(struct wrapper *w)
{
    w->began = clave_now();
    uv_timer_start(&w->patience, on_connecting_ends, (uint64_t)connect_within(w), 0);
    progress_connect(&w->progress, w->client, w->began + connect_within(w));
    uv_run(&w->loop, UV_RUN_DEFAULT);
    run_policy_free(w);
    acquisition_free(&w->acquisition);
    clave_async_client_free(w->client);
    release_signals(w); /* and what is still closing */
}

/* A lookup of a name cannot be interrupted: while one is under way, its thread needs the loop. */
static void wrapper_free(struct wrapper *w)
{
    if (uv_loop_close(&w->loop) == 0)
        free(w);
}

static int start_guardian(struct wrapper *w)
{
    const struct lock_plan *plan = w->plan;
    const struct guardian_plan gp = {.o = plan->o,
                                     .connect = plan->connect,
                                     .path = plan->path,
                                     .holders = plan->holders,
                                     .owner = plan->owner,
                                     .argv = plan->argv,
                                     .own_notify = plan->notify != NOTIFY_COMMAND};
    /* What the guardian leaves behind is to come to us; before there are threads. */
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        diag(plan->o, "cannot become a child sub-reaper: %s", strerror(errno));
        return EXIT_INTERNAL;
    }
    return guardian_start(&w->guardian, &gp);
}

int wrapper_run(const struct lock_plan *plan, bool *told_to_end)
{
    struct wrapper *w = calloc(1, sizeof *w);
    if (!w)
        return diag_err(plan->o, plan->path, CLAVE_ENOMEM, NULL);
    w->plan = plan;
    w->o = plan->o;
    int code = start_guardian(w);
    if (code != EXIT_OK) {
        free(w);
        return code;
    }
    terminal_open(&w->terminal);
    int fault = open_loop(w);
    clave_err err = fault == 0 ? open_client(w) : CLAVE_EIO;
    if (err != CLAVE_OK) { /* of no use any more, and about to exit: the loop stays as it is */
        guardian_dismiss(&w->guardian);
        if (fault == 0)
            return diag_err(plan->o, plan->connect, err, NULL);
        diag(plan->o, "cannot begin: %s", uv_strerror(fault));
        return EXIT_INTERNAL;
    }
    runner_run(w);
    if (w->released || w->told_session == 0)
        guardian_dismiss(&w->guardian);
    code = w->code;
    if (told_to_end)
        *told_to_end = w->told_to_end;
    wrapper_free(w);
    return code;
}
