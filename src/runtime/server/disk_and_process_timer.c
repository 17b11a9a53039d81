/* disk_and_process_timer.c - measures the room on the disk and the process every few seconds, and
 * tells how the server is. What was written is counted when it is (fsync_and_snapshot_times.c). */
#include "runtime/server/uv_server_internal.h"

/* Between two measures; while there are admin commands or metrics, which programs read every few
 * seconds. */
enum { MEASURE_MS = 10000, MEASURE_FOR_HTTP_MS = 2000 };

void clave__run_take_space(struct server_run *r, const struct disk_space *space)
{
    r->stats.free_bytes = space->free_bytes;
    r->stats.total_bytes = space->total_bytes;
    clave__run_warn_of_low_space(r, space);
}

void clave__run_take_process(struct server_run *r, const struct process_files *files)
{
    r->stats.open_files = files->open_files;
    r->stats.max_files = files->max_files;
    r->stats.resident_bytes = files->resident_bytes;
}

static void timer_tell_health(struct server_run *r)
{
    struct server_health health;
    if (!r->measured)
        return;
    clave__server_health(r->server, &health);
    r->measured(r->measured_arg, &health);
}

static void timer_on_timer(uv_timer_t *t)
{
    struct server_run *r = t->data;
    timer_tell_health(r);
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
    uv_timer_start(&r->measure_timer, timer_on_timer, every, every);
    timer_tell_health(r);
}
