/* uv_disk.c - what a running server gives to the threads that write, and what it does when they are
 * done: batches of the log, pieces of a snapshot, the room on the disk. Nothing is acknowledged
 * that is not on the disk, and after a disk fault nothing at all. */
#include <assert.h>
#include <string.h>

#include "runtime/server/uv_server_internal.h"

/* Memory kept between batches, and between the pieces of a snapshot. */
enum { KEEP_BYTES = 1 << 20 };

/* ---- to the disk ----------------------------------------------------------------------------- */

/* The records since the last batch. The next piece of a snapshot that they wait for wakes the loop
 * when it is written. */
static void uv_disk_post_records(struct server_run *r)
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

static void uv_disk_post_snapshot_job(struct server_run *r, enum snapshot_job job)
{
    assert(clave__disk_thread_state(&r->snapshot_thread.thread) == JOB_FREE);
    r->snapshot_thread.job = job;
    r->is_saving = job == SNAPSHOT_PIECE;
    clave__disk_thread_post(&r->snapshot_thread.thread);
}

/* Posts the next piece, one a turn of the loop. The engine has none while it waits for the log. */
static void uv_disk_post_piece(struct server_run *r)
{
    assert(r->is_saving);
    bool done;
    struct buf *bytes = &r->snapshot_thread.thread.bytes;
    clave_err err = clave__server_snapshot_step(r->server, bytes, &done);
    if (err != CLAVE_OK) {
        clave__log(&r->log, CLAVE_LOG_ERROR, "cannot make a snapshot: %s", clave_strerror(err));
        uv_disk_post_snapshot_job(r, SNAPSHOT_ABANDON);
    } else if (done || clave__buf_len(bytes) > 0) {
        uv_disk_post_snapshot_job(r, done ? SNAPSHOT_LAST : SNAPSHOT_PIECE);
    }
}

/* A snapshot begins between two batches, so that the next one starts a log of its own. */
static void uv_disk_post_snapshot(struct server_run *r)
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
        uv_disk_post_piece(r);
}

void clave__run_post(struct server_run *r)
{
    uv_disk_post_records(r);
    uv_disk_post_snapshot(r);
}

/* ---- from the disk --------------------------------------------------------------------------- */

/* After a fault nothing more is acknowledged: an fsync may not report the same error again, so that
 * "it worked the second time" would be a lie. */
static bool uv_disk_check(struct server_run *r, int number, const char *what)
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
    if (uv_disk_check(r, log->fault, "cannot write the log in")) {
        clave__server_durable(r->server, log->last_zxid);
        if (r->audit)
            clave__audit_log_durable(r->audit);
        clave__run_take_log(r, log);
    }
    clave__run_pump(r);
}

static void uv_disk_tell_snapshot_written(const struct server_run *r)
{
    clave__log(&r->log, CLAVE_LOG_INFO, "snapshot.%llx written",
               (unsigned long long)r->snapshot_thread.zxid);
    if (r->snapshot_thread.purge_fault != 0)
        clave__log_about(&r->log, CLAVE_LOG_WARN, &(struct log_about){.path = r->dir.path},
                         "cannot remove old snapshots and logs from %s: %s", r->dir.path,
                         strerror(r->snapshot_thread.purge_fault));
}

static void uv_disk_collect_snapshot_job(struct server_run *r)
{
    struct snapshot_thread *t = &r->snapshot_thread;
    clave__disk_thread_take(&t->thread, r->is_saving ? KEEP_BYTES : 0);
    if (!uv_disk_check(r, t->thread.fault, "cannot write a snapshot in"))
        return;
    clave__run_take_space(r, &t->space);
    if (t->job == SNAPSHOT_MEASURE)
        clave__run_take_process(r, &t->files);
    if (t->job == SNAPSHOT_LAST) {
        clave__run_take_snapshot(r);
        uv_disk_tell_snapshot_written(r);
    }
    clave__server_set_driver_stats(r->server, &r->stats);
}

void clave__run_on_disk_done(void *run)
{
    struct server_run *r = run;
    clave__run_tick(r);
    if (clave__disk_thread_state(&r->snapshot_thread.thread) == JOB_DONE)
        uv_disk_collect_snapshot_job(r);
}

bool clave__run_is_durable(const struct server_run *r)
{
    return clave__server_log_pending(r->server).n == 0 && r->log_thread.state == LOG_FREE;
}
