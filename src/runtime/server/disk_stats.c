/* disk_stats.c - what a running server knows of its disk, and of its process: how long each write
 * of the log and its fsync took, the size of its files, the room that is left. uv_disk.c reports
 * what was written; the room is measured every few seconds. */
#include "runtime/clock.h"
#include "runtime/server/uv_server_internal.h"

/* Between two measures of the room on the disk and of the process; while there are admin commands
 * or metrics, which programs read every few seconds. */
enum { MEASURE_MS = 10000, MEASURE_FOR_HTTP_MS = 2000 };

void clave__run_take_log(struct server_run *r, const struct txn_log_thread *log)
{
    r->stats.log_bytes += log->grown;
    clave__server_note_append(r->server, (int64_t)(log->took_ns / 1000));
    clave__server_set_driver_stats(r->server, &r->stats);
}

void clave__run_take_snapshot(struct server_run *r)
{
    const struct snapshot_thread *t = &r->snapshot_thread;
    r->stats.snapshot_bytes += t->file.end - t->purged.snapshots;
    r->stats.log_bytes -= t->purged.logs;
    r->stats.snapshot_zxid = t->zxid;
    r->stats.snapshot_seconds = clave__clock_wall() / 1000;
    clave__server_note_snapshot(r->server, (int64_t)(uv_now(&r->loop) - r->saving_since));
}

/* Below a tenth, until there is an eighth again. What is not known is never low. */
static bool disk_stats_is_low(const struct disk_space *s, bool was_low)
{
    return s->free_bytes >= 0 && s->free_bytes < s->total_bytes / (was_low ? 8 : 10);
}

void clave__run_take_space(struct server_run *r, const struct disk_space *space)
{
    long long left = (long long)space->free_bytes >> 20, all = (long long)space->total_bytes >> 20;
    bool low = disk_stats_is_low(space, r->is_low);
    const struct log_about about = {.path = r->dir.path};
    r->stats.free_bytes = space->free_bytes;
    r->stats.total_bytes = space->total_bytes;
    if (space->free_bytes < 0)
        return; /* not known: it may still be low */
    if (low && !r->is_low)
        clave__log_about(
            &r->log, CLAVE_LOG_WARN, &about,
            "the disk of %s has %lld MiB of %lld MiB left, less than a tenth: free some "
            "space, because the server ends when it is full",
            r->dir.path, left, all);
    if (!low && r->is_low)
        clave__log_about(&r->log, CLAVE_LOG_INFO, &about,
                         "the disk of %s has %lld MiB of %lld MiB left again", r->dir.path, left,
                         all);
    r->is_low = low;
}

void clave__run_take_process(struct server_run *r, const struct process_files *files)
{
    r->stats.open_files = files->open_files;
    r->stats.max_files = files->max_files;
    r->stats.resident_bytes = files->resident_bytes;
}

static void disk_stats_tell_health(struct server_run *r)
{
    struct server_health health;
    if (!r->measured)
        return;
    clave__server_health(r->server, &health);
    r->measured(r->measured_arg, &health);
}

static void disk_stats_on_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    disk_stats_tell_health(r);
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
    uv_timer_start(&r->measure_timer, disk_stats_on_timer, every, every);
    disk_stats_tell_health(r);
}
