/* server_loop.c - a running server: the turns of its loop, what it passes to the threads that write
 * and what follows when they are done, what it takes over while running, and why and how it ends.
 *
 * Each turn begins by passing the time to the engine. At its end, the connections that have output
 * are served, the log's batch and a piece of the snapshot go to the threads of runtime/store, and
 * the timer is set for what is due next. A turn that has left work undone is followed by another
 * one without a pause.
 *
 * What must stay true: nothing is acknowledged that is not on the disk, and after a fault of the
 * disk nothing is acknowledged at all. A server that is told to stop accepts nothing more, and
 * makes durable and answers what it has read, within a second. stop_enter is the only function that
 * changes the phase. */
#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clave/uv.h"
#include "runtime/clock.h"
#include "runtime/http/http_server.h"
#include "runtime/server/server_run_internal.h"
#include "server/store/restore.h"

/* ---- stopping -------------------------------------------------------------------------------- */

enum { GRACE_MS = 1000 };

static void stop_enter(struct server_run *r, enum run_phase phase)
{
    assert(phase >= r->phase);
    r->phase = phase;
    if (phase == RUN_STOPPED)
        clave__txn_log_thread_end(&r->log_thread);
}

/* Stops at once; the first fault is the one that is kept. */
__attribute__((format(printf, 3, 4))) static void run_fail(struct server_run *r, clave_err err,
                                                           const char *fmt, ...)
{
    assert(err != CLAVE_OK);
    if (r->result == CLAVE_OK) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(r->fault, sizeof r->fault, fmt, ap);
        va_end(ap);
        r->result = err;
    }
    stop_enter(r, RUN_STOPPED); /* the caller of the loop gets the reason */
}

void clave__run_halt(struct server_run *r)
{
    stop_enter(r, RUN_STOPPED);
}

void clave__run_close_listeners(struct server_run *r)
{
    while (!list_empty(&r->listeners))
        clave__listener_close(LIST_ENTRY(r->listeners.next, struct listener, link));
}

void clave__run_stop_http(struct server_run *r)
{
    clave__http_server_stop(r->admin);
    clave__http_server_stop(r->metrics);
    r->admin = r->metrics = NULL;
}

static void stop_on_grace(uv_timer_t *t)
{
    struct server_run *r = t->data;
    clave__conn_close_quiet(r, true);
}

static void stop_begin(struct server_run *r, const char *why)
{
    if (r->phase != RUN_SERVING)
        return;
    if (r->notify)
        r->notify(r->notify_arg, true);
    clave__log(&r->log, CLAVE_LOG_INFO, "stopping: %s", why);
    clave__run_close_listeners(r);
    clave__run_stop_http(r);
    uv_timer_start(&r->grace, stop_on_grace, GRACE_MS, 0);
    stop_enter(r, RUN_STOPPING);
    clave__run_pump(r);
}

static void stop_on_request(uv_async_t *a)
{
    stop_begin(a->data, "requested");
}

static void stop_on_signal(uv_signal_t *s, int number)
{
    struct server_run *r = s->data;
    if (r->phase ==
        RUN_STOPPING) /* the second time: do not wait for replies that clients have not read */
        clave__conn_close_quiet(r, true);
    else
        stop_begin(r, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void stop_on_idle(uv_timer_t *t)
{
    stop_begin(t->data, "no client is connected");
}

void clave__run_count(struct server_run *r)
{
    bool none = list_empty(&r->conns);
    if (r->phase == RUN_STOPPING && none && clave__run_is_durable(r))
        stop_enter(r, RUN_STOPPED);
    if (r->idle_exit_ms == 0 || r->phase != RUN_SERVING)
        return;
    if (none)
        uv_timer_start(&r->idle, stop_on_idle, r->idle_exit_ms, 0);
    else
        uv_timer_stop(&r->idle);
}

static void stop_init(struct server_run *r, bool signals)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    uv_async_init(&r->loop, &r->stop, stop_on_request);
    uv_timer_init(&r->loop, &r->idle);
    uv_timer_init(&r->loop, &r->grace);
    r->stop.data = r->idle.data = r->grace.data = r;
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&r->loop, &r->signals[i]);
        r->signals[i].data = r;
        if (signals)
            uv_signal_start(&r->signals[i], stop_on_signal, numbers[i]);
    }
}

/* How much memory is kept between batches, and between the pieces of a snapshot. */
enum { KEEP_BYTES = 1 << 20 };

/* ---- to the disk ----------------------------------------------------------------------------- */

/* Posts the records since the last batch. If they have to wait for a piece of the snapshot, the
 * loop is woken when that piece has been written. */
static void disk_post_records(struct server_run *r)
{
    struct txn_log_thread *log = &r->log_thread;
    struct log_batch pending = clave__server_log_pending(r->server);
    if (pending.n == 0 || log->state != LOG_FREE || clave__server_log_waits(r->server))
        return;
    assert(clave__buf_len(&log->bytes) == 0);
    log->first_zxid = pending.first_zxid;
    log->last_zxid = pending.last_zxid;
    log->new_file = r->new_log;
    r->new_log = false;
    clave__server_log_swap(r->server, &log->bytes);
    clave__txn_log_thread_post(log);
    if (r->audit)
        clave__audit_log_posted(r->audit);
}

static void disk_post_snapshot_job(struct server_run *r, enum snapshot_job job)
{
    assert(clave__disk_thread_state(&r->snapshot_thread.thread) == JOB_FREE);
    r->snapshot_thread.job = job;
    r->is_saving = job == SNAPSHOT_PIECE;
    clave__disk_thread_post(&r->snapshot_thread.thread);
}

/* Posts the next piece, one per turn of the loop. The engine has none while it waits for the
 * log. */
static void disk_post_piece(struct server_run *r)
{
    assert(r->is_saving);
    bool done;
    struct buf *bytes = &r->snapshot_thread.thread.bytes;
    clave_err err = clave__server_snapshot_step(r->server, bytes, &done);
    if (err != CLAVE_OK) {
        clave__log(&r->log, CLAVE_LOG_ERROR, "cannot make a snapshot: %s", clave_strerror(err));
        disk_post_snapshot_job(r, SNAPSHOT_ABANDON);
    } else if (done || clave__buf_len(bytes) > 0) {
        disk_post_snapshot_job(r, done ? SNAPSHOT_LAST : SNAPSHOT_PIECE);
    }
}

/* Begins a snapshot, between two batches so that the next batch starts a log of its own. */
static void disk_post_snapshot(struct server_run *r)
{
    if (clave__disk_thread_state(&r->snapshot_thread.thread) != JOB_FREE)
        return;
    if (!r->is_saving && r->phase == RUN_SERVING && clave__server_wants_snapshot(r->server) &&
        clave__server_log_pending(r->server).n == 0) {
        r->snapshot_thread.zxid = clave__server_snapshot_begin(r->server);
        r->is_saving = r->new_log = true;
        r->saving_since = uv_now(&r->loop);
    }
    if (r->is_saving)
        disk_post_piece(r);
}

/* Gives the threads whatever there is to be written. */
static void run_post(struct server_run *r)
{
    disk_post_records(r);
    disk_post_snapshot(r);
}

/* ---- a turn of the loop ---------------------------------------------------------------------- */

/* How much one turn writes, which is a millisecond's work. */
enum { SERVED_A_TURN = 128, SENT_A_TURN = 1024 * 1024 };

bool clave__run_is_current(const struct server_run *r)
{
    return clave__txn_log_thread_is_current(&r->log_thread);
}

int64_t clave__run_now(const struct server_run *r)
{
    return clave_now() + r->ahead_ms;
}

int64_t clave__run_wall(const struct server_run *r)
{
    return clave__clock_wall() + r->ahead_ms;
}

void clave__run_tick(struct server_run *r)
{
    if (r->ticked)
        return;
    r->ticked = true;
    int64_t now = clave__run_now(r);
    if (r->armed_at < now) {
        clave__server_woke_late(r->server, r->armed_at, now);
        r->armed_at = INT64_MAX; /* it was notified once; the timer is set again later */
    }
    clave__server_tick(r->server, now, clave__run_wall(r));
}

static void loop_on_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    clave__run_tick(r);
    r->armed_at = INT64_MAX;
    clave__run_pump(r); /* timers come before the loop waits, loop_on_check after */
}

/* Sets the timer. If the deadline moves back, the timer stays: it will fire early, and is then set
 * again. */
static void loop_arm(struct server_run *r, int64_t at, int64_t now)
{
    if (at >= r->armed_at)
        return;
    r->armed_at = at > now ? at : now;
    if (at <= now) /* due at once: nothing is late, and loop_on_busy comes next */
        return;
    uv_timer_start(&r->timer, loop_on_timer, (uint64_t)(at - now), 0);
}

static void loop_pump_audit(struct server_run *r)
{
    if (!r->audit)
        return;
    if (clave__run_is_durable(r)) { /* including lines about the server itself */
        clave__audit_log_posted(r->audit);
        clave__audit_log_durable(r->audit);
    }
    clave__audit_log_pump(r->audit);
}

/* Begins a turn with what the last one has left. Being active, this handle keeps the loop from
 * sleeping. */
static void loop_on_busy(uv_idle_t *h)
{
    struct server_run *r = h->data;
    clave__run_tick(r);
    r->armed_at = INT64_MAX; /* the timer is set anew */
}

/* Writes to a bounded number of connections, and a bounded number of bytes, which is a
 * millisecond's work. Returns true if there may be more. */
static bool loop_serve_some(struct server_run *r)
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
    more = loop_serve_some(r) || more;
    run_post(r);
    loop_pump_audit(r);
    const int64_t at = clave__server_deadline(r->server), now = clave__run_now(r);
    more = more || at <= now;
    if (more)
        uv_idle_start(&r->busy, loop_on_busy);
    else
        uv_idle_stop(&r->busy);
    if (r->phase == RUN_STOPPING && clave__run_is_durable(r) && !more) {
        clave__conn_close_quiet(r, false);
        clave__run_count(r);
    }
    if (r->ticked)
        clave__server_end_turn(r->server, now);
    loop_arm(r, at, now);
    r->ticked = false;
}

/* Called after the reads, completions and wake-ups of one pass of the loop: makes one batch, and
 * one write per connection. */
static void loop_on_check(uv_check_t *check)
{
    clave__run_pump(check->data);
}

static void loop_init(struct server_run *r)
{
    r->armed_at = INT64_MAX;
    uv_timer_init(&r->loop, &r->timer);
    uv_idle_init(&r->loop, &r->busy);
    uv_check_init(&r->loop, &r->check);
    r->timer.data = r->busy.data = r->check.data = r;
    uv_check_start(&r->check, loop_on_check);
}

/* ---- from the disk --------------------------------------------------------------------------- */

/* Returns false after a fault, from when on nothing more is acknowledged: an fsync need not report
 * the same error again, so believing a later success would be wrong. */
static bool disk_check(struct server_run *r, int number, const char *what)
{
    if (number == 0)
        return true;
    struct fault f = {r->fault, sizeof r->fault};
    if (r->result == CLAVE_OK)
        r->result = clave__start_error_errno(&f, number, what, r->dir.path);
    run_fail(r, r->result, "%s", r->fault);
    return false;
}

void clave__run_on_log_written(void *arg)
{
    struct server_run *r = arg;
    struct txn_log_thread *log = &r->log_thread;
    assert(log->state == LOG_FREE);
    clave__run_tick(r);
    clave__buf_clear(&log->bytes);
    clave__buf_trim(&log->bytes, KEEP_BYTES);
    if (disk_check(r, log->fault, "cannot write the log in")) {
        clave__server_durable(r->server, log->last_zxid);
        if (r->audit)
            clave__audit_log_durable(r->audit);
        clave__run_take_log(r, log);
    }
    clave__run_pump(r);
}

static void disk_tell_snapshot_written(const struct server_run *r)
{
    clave__log(&r->log, CLAVE_LOG_INFO, "snapshot.%llx written",
               (unsigned long long)r->snapshot_thread.zxid);
    if (r->snapshot_thread.purge_fault != 0)
        clave__log_about(&r->log, CLAVE_LOG_WARN, &(struct log_about){.path = r->dir.path},
                         "cannot remove old snapshots and logs from %s: %s", r->dir.path,
                         strerror(r->snapshot_thread.purge_fault));
}

static void disk_collect_snapshot_job(struct server_run *r)
{
    struct snapshot_thread *t = &r->snapshot_thread;
    clave__disk_thread_take(&t->thread, r->is_saving ? KEEP_BYTES : 0);
    if (!disk_check(r, t->thread.fault, "cannot write a snapshot in"))
        return;
    clave__run_take_space(r, &t->space);
    if (t->job == SNAPSHOT_MEASURE)
        clave__run_take_process(r, &t->files);
    if (t->job == SNAPSHOT_LAST) {
        clave__run_take_snapshot(r);
        disk_tell_snapshot_written(r);
    }
    clave__server_set_driver_stats(r->server, &r->stats);
}

void clave__run_on_disk_done(void *run)
{
    struct server_run *r = run;
    clave__run_tick(r);
    if (clave__disk_thread_state(&r->snapshot_thread.thread) == JOB_DONE)
        disk_collect_snapshot_job(r);
}

bool clave__run_is_durable(const struct server_run *r)
{
    return clave__server_log_pending(r->server).n == 0 && r->log_thread.state == LOG_FREE;
}

/* ---- changes while it runs ------------------------------------------------------------------- */

clave_err clave__run_note_longest_session(const struct server_run *r, const struct fault *f)
{
    return clave__datadir_note_longest_session(&r->dir, clave__restore_longest_session(r->server),
                                               f);
}

/* Updates the note on the longest session. Sessions may be longer now, or the note may have been
 * damaged since the start, which would also damage backups. */
static void reload_note(struct server_run *r)
{
    char text[600] = "";
    if (clave__run_note_longest_session(r, &(struct fault){text, sizeof text}) != CLAVE_OK)
        clave__log(&r->log, CLAVE_LOG_ERROR, "%s; until then a restore needs --longest-session",
                   text);
}

static void reload_on_hangup(uv_signal_t *s, int number)
{
    struct server_run *r = s->data;
    (void)number;
    bool renewed = r->tls && clave__tls_context_renew(r->tls, &r->log);
    if (r->audit)
        clave__audit_log_reopen(r->audit);
    if (r->on_hangup)
        r->on_hangup(r->hangup_arg, renewed);
    reload_note(r);
}

void clave__run_take_limits(struct server_run *r, const struct server_run_options *o)
{
    r->idle_exit_ms = o->idle_exit_ms > 0 ? (uint64_t)o->idle_exit_ms : 0;
    clave__address_limit_set(&r->address_limit, o->max_per_address, o->max_sessionless);
}

clave_err clave__server_run_change(struct server_run *r, const struct server_run_options *o)
{
    assert(clave__run_is_current(r));
    clave_err err = clave__server_change(r->server, &o->engine);
    if (err != CLAVE_OK)
        return err;
    clave__run_take_limits(r, o);
    r->admin_hosts = o->admin_hosts;
    clave__run_set_driver_info(r);
    uv_timer_stop(&r->idle);
    clave__run_count(r);
    return CLAVE_OK;
}

static void reload_init(struct server_run *r, bool signals)
{
    uv_signal_init(&r->loop, &r->hangup);
    r->hangup.data = r;
    if (signals) /* caught even if there is nothing to reload, because by default it would kill the
                    process */
        uv_signal_start(&r->hangup, reload_on_hangup, SIGHUP);
}

void clave__run_init_loop(struct server_run *r, bool signals)
{
    loop_init(r);
    stop_init(r, signals);
    reload_init(r, signals);
}
