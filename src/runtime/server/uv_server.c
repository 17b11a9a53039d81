/* uv_server.c - the life of a server (uv_server.h): recovery, the loop, stopping. */
#include "runtime/server/uv_server.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clave/uv.h"
#include "runtime/clock.h"
#include "runtime/http/http_server.h"
#include "runtime/listen.h"
#include "runtime/resources.h"
#include "runtime/server/admin.h"
#include "runtime/server/uv_server_internal.h"
#include "server/store/backup_restore.h"

enum { SERVED_A_TURN = 128, SENT_A_TURN = 1024 * 1024 };
/* Two milliseconds. */
enum { WORK_A_TURN = 10000 };
enum { DEFAULT_PER_ADDRESS = 60, GRACE_MS = 1000, RESERVED_FILES = 32 };
/* Without so many for the log, a snapshot and the first clients it does not start. */
enum { LEAST_FILES = 16 };

/* ---- time ----------------------------------------------------------------------------------- */

static int64_t uv_server_now_of(const struct server_run *r)
{
    return clave_now() + r->ahead_ms;
}

static int64_t uv_server_wall_of(const struct server_run *r)
{
    return clave__clock_wall() + r->ahead_ms;
}

void clave__run_tick(struct server_run *r)
{
    if (r->ticked)
        return;
    r->ticked = true;
    int64_t now = uv_server_now_of(r);
    if (r->armed_at < now) {
        clave__server_woke_late(r->server, r->armed_at, now);
        r->armed_at = INT64_MAX; /* notified once; the timer is set anew */
    }
    clave__server_tick(r->server, now, uv_server_wall_of(r));
}

static void uv_server_on_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    clave__run_tick(r);
    r->armed_at = INT64_MAX;
    clave__run_pump(r); /* timers come before the loop waits, uv_server_on_check after */
}

/* A deadline that moves back leaves the timer as it is: it fires early, and is set anew. */
static void uv_server_arm(struct server_run *r, int64_t at, int64_t now)
{
    if (at >= r->armed_at)
        return;
    r->armed_at = at > now ? at : now;
    if (at <= now) /* due at once: nothing is late, and uv_server_on_busy comes next */
        return;
    uv_timer_start(&r->timer, uv_server_on_timer, (uint64_t)(at - now), 0);
}

/* ---- passes -----------------------------------------------------------------------------------
 */

static void uv_server_pump_audit(struct server_run *r)
{
    if (!r->audit)
        return;
    if (clave__run_is_durable(r)) { /* lines of the server itself, too */
        clave__audit_log_posted(r->audit);
        clave__audit_log_durable(r->audit);
    }
    clave__audit_log_pump(r->audit);
}

static void uv_server_enter(struct server_run *r, enum run_phase phase)
{
    assert(phase >= r->phase);
    r->phase = phase;
    if (phase == RUN_STOPPED)
        clave__txn_log_thread_end(&r->log_thread);
}

/* That it is active keeps the loop from waiting. A turn begins, with what the last one has left. */
static void uv_server_on_busy(uv_idle_t *h)
{
    struct server_run *r = h->data;
    clave__run_tick(r);
    r->armed_at = INT64_MAX; /* the timer is set anew */
}

/* Writes to so many connections, and so many bytes, at most: a millisecond's work; true: there may
 * be more. */
static bool uv_server_serve_some(struct server_run *r)
{
    struct server_conn *c;
    const uint64_t most = r->sent + SENT_A_TURN;
    for (int left = SERVED_A_TURN; left > 0 && r->sent < most; left--) {
        if (!(c = clave__server_next_ready(r->server)))
            return false;
        clave__conn_serve(c);
    }
    return true;
}

void clave__run_pump(struct server_run *r)
{
    if (r->phase == RUN_STOPPED)
        return;
    bool more = clave__conns_go_on(r);
    more = uv_server_serve_some(r) || more;
    clave__run_post(r);
    uv_server_pump_audit(r);
    const int64_t at = clave__server_deadline(r->server), now = uv_server_now_of(r);
    more = more || at <= now;
    if (more)
        uv_idle_start(&r->busy, uv_server_on_busy);
    else
        uv_idle_stop(&r->busy);
    if (r->phase == RUN_STOPPING && clave__run_is_durable(r) && !more) {
        clave__conn_close_quiet(r, false);
        clave__run_count(r);
    }
    if (r->ticked)
        clave__server_end_turn(r->server, now);
    uv_server_arm(r, at, now);
    r->ticked = false;
}

/* After the reads, completions and wake-ups of one pass of the loop: one batch, one write per
 * connection. */
static void uv_server_on_check(uv_check_t *check)
{
    clave__run_pump(check->data);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void uv_server_close_listeners(struct server_run *r)
{
    while (!list_empty(&r->listeners))
        clave__listener_close(LIST_ENTRY(r->listeners.next, struct listener, link));
}

void clave__run_fail(struct server_run *r, clave_err err, const char *fmt, ...)
{
    assert(err != CLAVE_OK);
    if (r->result == CLAVE_OK) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(r->fault, sizeof r->fault, fmt, ap);
        va_end(ap);
        r->result = err;
    }
    uv_server_enter(r, RUN_STOPPED); /* the caller of the loop gets the reason */
}

void clave__run_halt(struct server_run *r)
{
    uv_server_enter(r, RUN_STOPPED);
}

bool clave__run_is_current(const struct server_run *r)
{
    return clave__txn_log_thread_is_current(&r->log_thread);
}

static void uv_server_on_grace(uv_timer_t *t)
{
    struct server_run *r = t->data;
    clave__conn_close_quiet(r, true);
}

static void uv_server_on_notify_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    r->notify(r->notify_arg, false);
}

static void uv_server_begin_stop(struct server_run *r, const char *why)
{
    if (r->phase != RUN_SERVING)
        return;
    if (r->notify)
        r->notify(r->notify_arg, true);
    clave__log(&r->log, CLAVE_LOG_INFO, "stopping: %s", why);
    uv_server_close_listeners(r);
    clave__admin_stop(r);
    uv_timer_start(&r->grace, uv_server_on_grace, GRACE_MS, 0);
    uv_server_enter(r, RUN_STOPPING);
    clave__run_pump(r);
}

static void uv_server_on_stop(uv_async_t *a)
{
    uv_server_begin_stop(a->data, "requested");
}

static void uv_server_on_signal(uv_signal_t *s, int number)
{
    struct server_run *r = s->data;
    if (r->phase == RUN_STOPPING) /* a second time: do not wait for unread replies */
        clave__conn_close_quiet(r, true);
    else
        uv_server_begin_stop(r, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

static clave_err uv_server_note_longest_session(const struct server_run *r, const struct fault *f)
{
    return clave__datadir_note_longest_session(&r->dir,
                                               clave__backup_restore_longest_session(r->server), f);
}

/* Sessions may be longer now; or the note has been damaged since the start, and so are backups. */
static void uv_server_renew_note(struct server_run *r)
{
    char text[600] = "";
    if (uv_server_note_longest_session(r, &(struct fault){text, sizeof text}) != CLAVE_OK)
        clave__log(&r->log, CLAVE_LOG_ERROR,
                   "%s; until then a restore has to be told the --longest-session", text);
}

static void uv_server_on_hangup(uv_signal_t *s, int number)
{
    struct server_run *r = s->data;
    (void)number;
    bool renewed = r->tls && clave__tls_context_renew(r->tls, &r->log);
    if (r->audit)
        clave__audit_log_reopen(r->audit);
    if (r->on_hangup)
        r->on_hangup(r->hangup_arg, renewed);
    uv_server_renew_note(r);
}

static void uv_server_on_idle(uv_timer_t *t)
{
    uv_server_begin_stop(t->data, "no client is connected");
}

void clave__run_count(struct server_run *r)
{
    bool none = list_empty(&r->conns);
    if (r->phase == RUN_STOPPING && none && clave__run_is_durable(r))
        uv_server_enter(r, RUN_STOPPED);
    if (r->idle_exit_ms == 0 || r->phase != RUN_SERVING)
        return;
    if (none)
        uv_timer_start(&r->idle, uv_server_on_idle, r->idle_exit_ms, 0);
    else
        uv_timer_stop(&r->idle);
}

/* ---- what conf shows ---------------------------------------------------------------------- */

/* Of the first address that has one. */
static int32_t uv_server_port(const struct server_run *r, bool tls, int32_t none)
{
    for (struct list *e = r->listeners.next; e != &r->listeners; e = e->next) {
        const struct listener *l = LIST_ENTRY(e, struct listener, link);
        const char *colon = l->is_unix || l->tls != tls ? NULL : strrchr(l->text, ':');
        if (colon)
            return (int32_t)strtol(colon + 1, NULL, 10);
    }
    return none;
}

static void uv_server_set_info(struct server_run *r)
{
    snprintf(r->version_2, sizeof r->version_2, "%s/version-2", r->dir.path);
    struct driver_info info = {
        .client_port = uv_server_port(r, false, -1),
        .secure_client_port = uv_server_port(r, true, 0),
        .max_per_address = (int32_t)r->max_per_address,
        .data_dir = r->version_2,
    };
    size_t n = sizeof r->host_name;
    if (uv_os_uname(&r->system) == 0 && uv_os_gethostname(r->host_name, &n) == 0) {
        const struct environment_line lines[ENVIRONMENT_LINES] = {
            {"host.name", r->host_name},
            {"os.name", r->system.sysname},
            {"os.arch", r->system.machine},
            {"os.version", r->system.release}};
        memcpy(info.environment, lines, sizeof lines);
    }
    clave__server_set_driver_info(r->server, &info);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void uv_server_close_handle(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

static void uv_server_end_loop(struct server_run *r)
{
    clave__notifier_close(&r->disk_done);
    uv_walk(&r->loop, uv_server_close_handle, NULL);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    uv_loop_close(&r->loop);
}

static clave_err uv_server_init_handles(struct server_run *r, bool signals, const struct fault *f)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    int fault = clave__loop_init(&r->loop);
    if (fault == 0) {
        fault = clave__notifier_open(&r->disk_done, &r->loop, clave__run_on_disk_done, r);
        if (fault != 0)
            uv_server_end_loop(r);
    }
    if (fault != 0)
        return clave__start_error(f, clave__err_of_errno(fault), "cannot start to serve: %s",
                                  strerror(fault));
    uv_async_init(&r->loop, &r->stop, uv_server_on_stop);
    uv_timer_init(&r->loop, &r->timer);
    uv_timer_init(&r->loop, &r->idle);
    uv_timer_init(&r->loop, &r->grace);
    uv_timer_init(&r->loop, &r->notify_timer);
    uv_idle_init(&r->loop, &r->handshake_turn);
    uv_idle_init(&r->loop, &r->busy);
    uv_check_init(&r->loop, &r->check);
    uv_check_start(&r->check, uv_server_on_check);
    r->stop.data = r->timer.data = r->idle.data = r->grace.data = r;
    r->busy.data = r->check.data = r->notify_timer.data = r->handshake_turn.data = r;
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&r->loop, &r->signals[i]);
        r->signals[i].data = r;
        if (signals)
            uv_signal_start(&r->signals[i], uv_server_on_signal, numbers[i]);
    }
    uv_signal_init(&r->loop, &r->hangup);
    r->hangup.data = r;
    if (signals) /* caught even with nothing to reload: by default it would kill */
        uv_signal_start(&r->hangup, uv_server_on_hangup, SIGHUP);
    if (signals) { /* in a process of its own: a failed write is reported by its errno */
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN);
    }
    return CLAVE_OK;
}

static clave_err uv_server_open_audit(struct server_run *r, const char *path, const struct fault *f)
{
    struct audit_log *a = calloc(1, sizeof *a);
    if (!a)
        return CLAVE_ENOMEM;
    clave_err err = clave__audit_log_open(a, path, &r->mem, &r->log, &r->disk_done, f);
    if (err == CLAVE_OK)
        r->audit = a;
    else
        free(a);
    return err;
}

/* Only what is durable is told. */
static void uv_server_close_audit(struct server_run *r, bool durable)
{
    if (!r->audit)
        return;
    clave__audit_log_server(r->audit, "serverStop", "invoked");
    if (durable) {
        clave__audit_log_posted(r->audit);
        clave__audit_log_durable(r->audit);
    }
    clave__audit_log_close(r->audit);
    free(r->audit);
}

static clave_err uv_server_recover(struct server_run *r, const struct server_run_options *o,
                                   const struct fault *f)
{
    struct server_options engine = o->engine;
    engine.mem = &r->mem;
    engine.x509 = r->tls != NULL;
    engine.work_a_turn = WORK_A_TURN;
    if (engine.seed == 0)
        engine.seed = clave_random_seed();
    clave_err err = clave__datadir_open(&r->dir, o->data_dir, &r->log, f);
    if (err == CLAVE_OK && o->audit)
        err = uv_server_open_audit(r, o->audit, f);
    if (r->audit) {
        engine.audit = clave__audit_log_line;
        engine.audit_arg = r->audit;
        engine.audit_user = r->audit->user;
    }
    if (err == CLAVE_OK)
        err = clave__server_new(&r->server, &engine);
    if (err == CLAVE_OK)
        err = clave__datadir_recover(&r->dir, r->server, f);
    if (err == CLAVE_OK)
        err = uv_server_note_longest_session(r, f);
    if (err == CLAVE_OK) {
        const struct disk_space space = clave__disk_space_measure(r->dir.dir);
        clave__run_take_space(r, &space);
        clave__datadir_measure(&r->dir, &r->stats);
        clave__server_set_driver_stats(r->server, &r->stats);
        err = clave__txn_log_thread_start(&r->log_thread, r->dir.dir, &r->mem, &r->loop,
                                          clave__run_on_log_written, r);
    }
    if (err == CLAVE_OK)
        err = clave__snapshot_thread_start(&r->snapshot_thread, r->dir.dir, &r->mem, &r->disk_done);
    return err;
}

static clave_err uv_server_begin_tls(clave_tls **out, const struct server_run_options *o,
                                     const struct fault *f)
{
    for (size_t i = 0; i < o->nlisten && !o->tls; i++)
        if (strncmp(o->listen[i], "tls:", 4) == 0)
            return clave__start_error(f, CLAVE_EINVAL, "%s needs a certificate", o->listen[i]);
    return o->tls ? clave__tls_context_serve(out, o->tls, f) : CLAVE_OK;
}

static clave_err uv_server_listen_all(struct server_run *r, const struct server_run_options *o,
                                      const struct fault *f)
{
    clave_err err = CLAVE_OK;
    for (size_t i = 0; i < o->nlisten && err == CLAVE_OK; i++)
        err = clave__listen(&r->loop, o->listen[i], clave__conn_on_connection, r, &r->listeners, f);
    if (err == CLAVE_OK && o->gate)
        err = clave__listen(&r->loop, o->gate, clave__conn_on_connection, r, &r->listeners, f);
    if (err == CLAVE_OK && o->gate)
        LIST_ENTRY(r->listeners.prev, struct listener, link)->is_gate = true;
    return err;
}

/* Once here, so that the first answers have all figures. Few files are open yet. */
static void uv_server_measure_first(struct server_run *r)
{
    const struct process_files files = clave__process_measure();
    clave__run_take_process(r, &files);
    clave__server_set_driver_stats(r->server, &r->stats);
}

static void uv_server_begin_notifying(struct server_run *r, const struct server_run_options *o)
{
    r->notify = o->notify;
    r->notify_arg = o->notify_arg;
    if (o->notify && o->notify_ms > 0)
        uv_timer_start(&r->notify_timer, uv_server_on_notify_timer, (uint64_t)o->notify_ms,
                       (uint64_t)o->notify_ms);
}

/* A log that cannot be opened for lack of descriptors would stop the server. A gate in this process
 * takes a quarter of them for HTTP, and of its sessions both ends are here. */
static size_t uv_server_connections_for_files(const struct server_run_options *o)
{
    struct rlimit limit;
    size_t reserved = RESERVED_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    reserved += o->admin ? ADMIN_MAX_CONNECTIONS : 0;
    reserved += o->metrics ? ADMIN_MAX_CONNECTIONS : 0;
    size_t most = limit.rlim_cur > 2 * reserved ? limit.rlim_cur - reserved : limit.rlim_cur / 2;
    return o->gate ? (most - most / 4) / 2 : most;
}

static void uv_server_take_limits(struct server_run *r, const struct server_run_options *o)
{
    r->idle_exit_ms = o->idle_exit_ms > 0 ? (uint64_t)o->idle_exit_ms : 0;
    r->max_per_address = DEFAULT_PER_ADDRESS;
    if (o->max_per_address != 0)
        r->max_per_address = o->max_per_address > 0 ? (unsigned)o->max_per_address : 0;
    r->max_sessionless = o->max_sessionless > 0 ? (unsigned)o->max_sessionless : 0;
}

clave_err clave__server_run_change(struct server_run *r, const struct server_run_options *o)
{
    assert(clave__run_is_current(r));
    clave_err err = clave__server_change(r->server, &o->engine);
    if (err != CLAVE_OK)
        return err;
    uv_server_take_limits(r, o);
    uv_server_set_info(r);
    uv_timer_stop(&r->idle);
    clave__run_count(r);
    return CLAVE_OK;
}

clave_err clave__server_run_check(const struct server_run_options *o, char *fault, size_t cap)
{
    const struct fault f = {fault, cap};
    const char *const http[] = {o->admin, o->metrics};
    struct findings all = clave__findings_in(&f);
    clave_tls *tls = NULL;
    fault[0] = '\0';
    if (o->tls)
        clave__findings_add(&all, clave__tls_context_serve(&tls, o->tls, &all.next));
    clave_tls_free(tls);
    for (size_t i = 0; i < o->nlisten; i++)
        clave__findings_add(&all, clave__listen_check(o->listen[i], &all.next));
    for (size_t i = 0; i < sizeof http / sizeof *http; i++)
        if (http[i])
            clave__findings_add(&all, clave__http_server_check(http[i], &all.next));
    if (o->audit)
        clave__findings_add(&all, clave__audit_log_check(o->audit, &all.next));
    return all.err;
}

static clave_err uv_server_check_files(const struct fault *f)
{
    int fault = clave__files_check(LEAST_FILES);
    if (fault == 0)
        return CLAVE_OK;
    return clave__start_error(f, clave__err_of_errno(fault),
                              "no files are left for the log and for clients: %s", strerror(fault));
}

clave_err clave__server_run_new(struct server_run **out, const struct server_run_options *o,
                                char *fault, size_t cap)
{
    const struct fault f = {fault, cap};
    struct server_run *r = malloc(sizeof *r + RUN_INPUT_SIZE);
    *out = NULL;
    fault[0] = '\0';
    if (!r)
        return CLAVE_ENOMEM;
    memset(r, 0, sizeof *r); /* not `input`: its pages are taken when something is read */
    r->mem = clave__mem_or_default(o->engine.mem);
    r->log = (struct log){o->engine.log, o->engine.log_arg, o->engine.log_about};
    r->dir.lock = r->dir.dir = -1;
    r->new_log = true;
    r->stats = DRIVER_STATS_UNKNOWN;
    r->armed_at = INT64_MAX;
    r->measured = o->measured;
    r->measured_arg = o->measured_arg;
    r->on_hangup = o->hangup;
    r->hangup_arg = o->hangup_arg;
    uv_server_take_limits(r, o);
    list_init(&r->listeners);
    list_init(&r->conns);
    list_init(&r->handshakes);
    list_init(&r->declined);
    list_init(&r->had_some);
    r->turn = 1;
    list_init(&r->hung_up);
    r->max_conns = uv_server_connections_for_files(o);
    clave_err err = clave__map_init(&r->addresses, &r->mem, clave_random_seed());
    if (err == CLAVE_OK)
        err = uv_server_begin_tls(&r->tls, o, &f);
    if (err == CLAVE_OK)
        err = uv_server_init_handles(r, o->signals, &f);
    if (err != CLAVE_OK) {
        clave_tls_free(r->tls);
        clave__map_fini(&r->addresses);
        free(r);
        return err;
    }
    err = uv_server_recover(r, o, &f);
    if (err == CLAVE_OK)
        err = uv_server_listen_all(r, o, &f);
    if (err == CLAVE_OK)
        err = clave__admin_start(r, o, &f);
    if (err == CLAVE_OK)
        err = uv_server_check_files(&f);
    if (err == CLAVE_OK) {
        uv_server_begin_notifying(r, o);
        uv_server_set_info(r);
        uv_server_measure_first(r);
        if (r->tls)
            clave__tls_context_tell_date(r->tls, &r->log);
        *out = r;
    } else {
        clave__server_run_free(r);
    }
    return err;
}

clave_err clave__server_run_loop(struct server_run *r, char *fault, size_t cap)
{
    assert(r->phase == RUN_READY);
    clave__server_start(r->server, uv_server_now_of(r), uv_server_wall_of(r));
    r->phase = RUN_SERVING;
    if (r->audit)
        clave__audit_log_server(r->audit, "serverStart", "success");
    clave__run_count(r);
    clave__run_pump(r);
    clave__run_measure(r);
    clave__txn_log_thread_run(&r->log_thread);
    snprintf(fault, cap, "%s", r->fault);
    return r->result;
}

void clave__server_run_stop(struct server_run *r)
{
    uv_async_send(&r->stop);
}

void clave__server_run_free(struct server_run *r)
{
    if (!r)
        return;
    bool durable = r->server && r->result == CLAVE_OK && clave__run_is_durable(r);
    r->phase = RUN_STOPPED;
    uv_server_close_listeners(r);
    clave__admin_stop(r);
    clave__conn_close_quiet(r, true);
    clave__snapshot_thread_stop(&r->snapshot_thread); /* before what they wake closes */
    clave__txn_log_thread_stop(&r->log_thread);
    uv_server_close_audit(r, durable);
    uv_server_end_loop(r);
    clave__server_free(r->server);
    clave__map_fini(&r->addresses);
    clave_tls_free(r->tls);
    clave__datadir_close(&r->dir);
    free(r);
}

/* ---- queries -------------------------------------------------------------------------------- */

const char *clave__server_run_address(const struct server_run *r, size_t i)
{
    struct list *e = r->listeners.next;
    while (i-- > 0 && e != &r->listeners)
        e = e->next;
    const struct listener *l = e != &r->listeners ? LIST_ENTRY(e, struct listener, link) : NULL;
    return l && !l->is_gate ? l->text : NULL; /* the gate's is the last */
}

const char *clave__server_run_admin(const struct server_run *r)
{
    return r->admin ? clave__http_server_address(r->admin, 0) : NULL;
}

const char *clave__server_run_metrics(const struct server_run *r)
{
    return r->metrics ? clave__http_server_address(r->metrics, 0) : NULL;
}

void clave__server_run_stats(const struct server_run *r, struct server_stats *out)
{
    clave__server_stats(r->server, out);
}
