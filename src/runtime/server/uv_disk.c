/* uv_disk.c - what a running server gives to the threads that write, and what it does when they are
 * done: batches of the log, pieces of a snapshot, the room on the disk. Nothing is acknowledged
 * that is not on the disk, and after a disk fault nothing at all. */
#include <assert.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/server/uv_server_internal.h"

/* Memory kept between batches, and between the pieces of a snapshot. */
enum { KEEP_BYTES = 1 << 20 };

/* Between two measures of the room on the disk and of the process; while there are admin commands
 * or metrics, which programs read every few seconds. */
enum { MEASURE_MS = 10000, MEASURE_FOR_HTTP_MS = 2000 };

/* ---- to the disk ----------------------------------------------------------------------------- */

/* The records since the last batch. The next piece of a snapshot that they wait for wakes the loop
 * when it is written. */
static void post_records(struct server_run *r)
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

static void post_snapshot_job(struct server_run *r, enum snapshot_job job)
{
    assert(clave__disk_thread_state(&r->snapshot_thread.thread) == JOB_FREE);
    r->snapshot_thread.job = job;
    r->is_saving = job == SNAPSHOT_PIECE;
    clave__disk_thread_post(&r->snapshot_thread.thread);
}

/* Posts the next piece, one a turn of the loop. The engine has none while it waits for the log. */
static void post_piece(struct server_run *r)
{
    assert(r->is_saving);
    bool done;
    struct buf *bytes = &r->snapshot_thread.thread.bytes;
    clave_err err = clave__server_snapshot_step(r->server, bytes, &done);
    if (err != CLAVE_OK) {
        clave__log(&r->log, CLAVE_LOG_ERROR, "cannot make a snapshot: %s", clave_strerror(err));
        post_snapshot_job(r, SNAPSHOT_ABANDON);
    } else if (done || clave__buf_len(bytes) > 0) {
        post_snapshot_job(r, done ? SNAPSHOT_LAST : SNAPSHOT_PIECE);
    }
}

/* A snapshot begins between two batches, so that the next one starts a log of its own. */
static void post_snapshot(struct server_run *r)
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
        post_piece(r);
}

void clave__run_post(struct server_run *r)
{
    post_records(r);
    post_snapshot(r);
}

/* ---- from the disk --------------------------------------------------------------------------- */

/* After a fault nothing more is acknowledged: an fsync may not report the same error again, so that
 * "it worked the second time" would be a lie. */
static bool uv_server_check_disk(struct server_run *r, int number, const char *what)
{
    if (number == 0)
        return true;
    struct fault f = {r->fault, sizeof r->fault};
    if (r->result == CLAVE_OK)
        r->result = clave__start_error_errno(&f, number, what, r->dir.path);
    clave__run_fail(r, r->result, "%s", r->fault);
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
    if (uv_server_check_disk(r, log->fault, "cannot write the log in")) {
        clave__server_durable(r->server, log->last_zxid);
        if (r->audit)
            clave__audit_log_durable(r->audit);
        r->stats.log_bytes += log->grown;
        clave__server_note_append(r->server, (int64_t)(log->took_ns / 1000));
        clave__server_set_driver_stats(r->server, &r->stats);
    }
    clave__run_pump(r);
}

static void tell_snapshot_written(const struct server_run *r)
{
    clave__log(&r->log, CLAVE_LOG_INFO, "snapshot.%llx written",
               (unsigned long long)r->snapshot_thread.zxid);
    if (r->snapshot_thread.purge_fault != 0)
        clave__log(&r->log, CLAVE_LOG_WARN, "cannot remove old snapshots and logs from %s: %s",
                   r->dir.path, strerror(r->snapshot_thread.purge_fault));
}

static void count_written_snapshot(struct server_run *r)
{
    const struct snapshot_thread *t = &r->snapshot_thread;
    r->stats.snapshot_bytes += t->file.end - t->purged.snapshots;
    r->stats.log_bytes -= t->purged.logs;
    r->stats.snapshot_zxid = t->zxid;
    r->stats.snapshot_seconds = clave__clock_wall() / 1000;
}

void clave__run_take_space(struct server_run *r, const struct space *space)
{
    long long left = (long long)space->free_bytes >> 20, all = (long long)space->total_bytes >> 20;
    bool low = clave__space_is_low(space, r->is_low);
    r->stats.free_bytes = space->free_bytes;
    r->stats.total_bytes = space->total_bytes;
    if (space->free_bytes < 0)
        return; /* not known: it may still be low */
    if (low && !r->is_low)
        clave__log(&r->log, CLAVE_LOG_WARN,
                   "the disk of %s has %lld MiB of %lld MiB left, less than a tenth: free some "
                   "space, because the server ends when it is full",
                   r->dir.path, left, all);
    if (!low && r->is_low)
        clave__log(&r->log, CLAVE_LOG_INFO, "the disk of %s has %lld MiB of %lld MiB left again",
                   r->dir.path, left, all);
    r->is_low = low;
}

void clave__run_take_process(struct server_run *r, const struct process_files *files)
{
    r->stats.open_files = files->open_files;
    r->stats.max_files = files->max_files;
    r->stats.resident_bytes = files->resident_bytes;
}

static void run_tell_health(struct server_run *r)
{
    struct server_health health;
    if (!r->measured)
        return;
    clave__server_health(r->server, &health);
    r->measured(r->measured_arg, &health);
}

static void on_measure_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    run_tell_health(r);
    if (r->is_saving || clave__disk_thread_state(&r->snapshot_thread.thread) != JOB_FREE)
        return; /* it is measured after that job */
    r->snapshot_thread.job = SNAPSHOT_MEASURE;
    clave__disk_thread_post(&r->snapshot_thread.thread);
}

void clave__run_measure(struct server_run *r)
{
    uint64_t every = r->admin || r->metrics || r->measured ? MEASURE_FOR_HTTP_MS : MEASURE_MS;
    uv_timer_init(&r->loop, &r->measure_timer);
    r->measure_timer.data = r;
    uv_timer_start(&r->measure_timer, on_measure_timer, every, every);
    run_tell_health(r);
}

static void collect_snapshot_job(struct server_run *r)
{
    struct snapshot_thread *t = &r->snapshot_thread;
    clave__disk_thread_take(&t->thread, r->is_saving ? KEEP_BYTES : 0);
    if (!uv_server_check_disk(r, t->thread.fault, "cannot write a snapshot in"))
        return;
    clave__run_take_space(r, &t->space);
    if (t->job == SNAPSHOT_MEASURE)
        clave__run_take_process(r, &t->files);
    if (t->job == SNAPSHOT_LAST) {
        count_written_snapshot(r);
        clave__server_note_snapshot(r->server, (int64_t)(uv_now(&r->loop) - r->saving_since));
        tell_snapshot_written(r);
    }
    clave__server_set_driver_stats(r->server, &r->stats);
}

void clave__run_on_disk_done(void *run)
{
    struct server_run *r = run;
    clave__run_tick(r);
    if (clave__disk_thread_state(&r->snapshot_thread.thread) == JOB_DONE)
        collect_snapshot_job(r);
}

bool clave__run_is_durable(const struct server_run *r)
{
    return clave__server_log_pending(r->server).n == 0 && r->log_thread.state == LOG_FREE;
}
