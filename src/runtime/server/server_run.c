/* server_run.c - starts a server, runs its loop, and frees it (server_run.h). What happens while it
 * runs is in server_loop.c.
 *
 * The order matters: the data directory is locked and recovered before the addresses are bound, so
 * whoever can connect is served. And everything that can fail for want of memory, files or threads
 * fails here, with a message that says what to do. */
#include "runtime/server/server_run.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clave/uv.h"
#include "runtime/http/http_server.h"
#include "runtime/listen.h"
#include "runtime/server/server_run_internal.h"
#include "runtime/start_error.h"
#include "runtime/thread_start.h"

/* ---- the limit of open files ----------------------------------------------------------------- */

enum { RESERVED_FILES = 32 };
/* Without this many files left for the log, a snapshot and the first clients, the server does not
 * start. */
enum { LEAST_FILES = 16 };

/* A gate in this process takes a quarter of them for HTTP, and both ends of its sessions are here.
 */
static size_t open_files_for_connections(const struct server_run_options *o)
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

/* EFILES. */
static clave_err open_files_check(const struct fault *f)
{
    int fault = clave__files_check(LEAST_FILES);
    if (fault == 0)
        return CLAVE_OK;
    return clave__start_error(f, clave__err_of_errno(fault),
                              "no file descriptors are left for the log and for clients: %s",
                              strerror(fault));
}

void clave__open_files_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- starting -------------------------------------------------------------------------------- */

/* The engine's work per turn of the loop, which is two milliseconds. */
enum { WORK_A_TURN = 10000 };

static void run_on_notify_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    r->notify(r->notify_arg, false);
}

static void run_close_handle(uv_handle_t *h, void *arg)
{
    (void)arg;
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

static void run_end_loop(struct server_run *r)
{
    clave__notifier_close(&r->disk_done);
    uv_walk(&r->loop, run_close_handle, NULL);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    uv_loop_close(&r->loop);
}

static clave_err run_init_handles(struct server_run *r, bool signals, const struct fault *f)
{
    int fault = clave__loop_init(&r->loop);
    if (fault == 0) {
        fault = clave__notifier_open(&r->disk_done, &r->loop, clave__run_on_disk_done, r);
        if (fault != 0)
            run_end_loop(r);
    }
    if (fault != 0)
        return clave__start_error(f, clave__err_of_errno(fault), "cannot start to serve: %s",
                                  strerror(fault));
    clave__run_init_loop(r, signals);
    uv_timer_init(&r->loop, &r->notify_timer);
    r->notify_timer.data = r;
    if (signals) { /* it has the process to itself; a failed write is reported by its errno */
        signal(SIGPIPE, SIG_IGN);
        signal(SIGXFSZ, SIG_IGN);
    }
    return CLAVE_OK;
}

static clave_err run_open_audit(struct server_run *r, const char *path, const struct fault *f)
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

/* `durable`: write only what is durable. */
static void run_close_audit(struct server_run *r, bool durable)
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

static clave_err run_recover(struct server_run *r, const struct server_run_options *o,
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
        err = run_open_audit(r, o->audit, f);
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
        err = clave__run_note_longest_session(r, f);
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

static clave_err run_begin_tls(clave_tls **out, const struct server_run_options *o,
                               const struct fault *f)
{
    for (size_t i = 0; i < o->nlisten && !o->tls; i++)
        if (strncmp(o->listen[i], "tls:", 4) == 0)
            return clave__start_error(f, CLAVE_EINVAL, "%s needs a certificate", o->listen[i]);
    return o->tls ? clave__tls_context_serve(out, o->tls, f) : CLAVE_OK;
}

static clave_err run_listen_all(struct server_run *r, const struct server_run_options *o,
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

/* Measured here once, so that the first answers have all figures; few files are open yet. */
static void run_measure_first(struct server_run *r)
{
    const struct process_files files = clave__process_measure();
    clave__run_take_process(r, &files);
    clave__server_set_driver_stats(r->server, &r->stats);
}

static void run_begin_notifying(struct server_run *r, const struct server_run_options *o)
{
    r->notify = o->notify;
    r->notify_arg = o->notify_arg;
    if (o->notify && o->notify_ms > 0)
        uv_timer_start(&r->notify_timer, run_on_notify_timer, (uint64_t)o->notify_ms,
                       (uint64_t)o->notify_ms);
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

clave_err clave__server_run_new(struct server_run **out, const struct server_run_options *o,
                                char *fault, size_t cap)
{
    const struct fault f = {fault, cap};
    struct server_run *r = malloc(sizeof *r + RUN_INPUT_SIZE);
    *out = NULL;
    fault[0] = '\0';
    if (!r)
        return CLAVE_ENOMEM;
    memset(r, 0, sizeof *r); /* except `input`, whose pages are allocated when something is read */
    r->mem = clave__mem_or_default(o->engine.mem);
    r->log = (struct log){o->engine.log, o->engine.log_arg, o->engine.log_about, NULL};
    r->dir.lock = r->dir.dir = -1;
    r->new_log = true;
    r->stats = DRIVER_STATS_UNKNOWN;
    r->measured = o->measured;
    r->measured_arg = o->measured_arg;
    r->on_hangup = o->hangup;
    r->hangup_arg = o->hangup_arg;
    clave__run_take_limits(r, o);
    list_init(&r->listeners);
    list_init(&r->conns);
    clave__fair_reading_init(&r->reading);
    list_init(&r->hung_up);
    r->max_conns = open_files_for_connections(o);
    clave_err err = clave__address_limit_init(&r->address_limit, &r->mem);
    if (err == CLAVE_OK)
        err = run_begin_tls(&r->tls, o, &f);
    if (err == CLAVE_OK)
        err = run_init_handles(r, o->signals, &f);
    if (err != CLAVE_OK) {
        clave_tls_free(r->tls);
        clave__address_limit_fini(&r->address_limit);
        free(r);
        return err;
    }
    err = run_recover(r, o, &f);
    if (err == CLAVE_OK)
        err = run_listen_all(r, o, &f);
    if (err == CLAVE_OK)
        err = clave__admin_start(r, o, &f);
    if (err == CLAVE_OK)
        err = open_files_check(&f);
    if (err == CLAVE_OK) {
        run_begin_notifying(r, o);
        clave__run_set_driver_info(r);
        run_measure_first(r);
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
    clave__server_start(r->server, clave__run_now(r), clave__run_wall(r));
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
    clave__run_close_listeners(r);
    clave__run_stop_http(r);
    clave__conn_close_quiet(r, true);
    clave__snapshot_thread_stop(&r->snapshot_thread); /* before what they wake is closed */
    clave__txn_log_thread_stop(&r->log_thread);
    run_close_audit(r, durable);
    run_end_loop(r);
    clave__server_free(r->server);
    clave__address_limit_fini(&r->address_limit);
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
    return l && !l->is_gate ? l->text : NULL; /* the gate's is the last one */
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
