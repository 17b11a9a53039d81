/* fsync_and_snapshot_times.c - how long each write of the log took with its fsync, and each
 * snapshot; how large they are. The engine makes quantiles and metrics of it. */
#include "runtime/clock.h"
#include "runtime/server/uv_server_internal.h"

void clave__run_take_log(struct server_run *r, const struct txn_log_thread *log)
{
    r->stats.log_bytes += log->grown;
    clave__server_note_fsync(r->server, (int64_t)(log->took_ns / 1000));
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
