/* server_figures.c - the figures that only the driver can measure, for conf, envi, the admin
 * commands and the metrics: how long each write of the log took, fsync included, and each snapshot;
 * every few seconds, the free space on the disk and the process's own figures; and port, directory
 * and system, which change only with the settings. The engine makes quantiles and pages from them.
 *
 * They are kept up to date in server_run.stats, so that no request makes the loop access a file.
 * The operator is warned before the disk is full, because a server that cannot write its log
 * stops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/server/server_run_internal.h"

/* ---- low disk space -------------------------------------------------------------------------- */

/* Space is low once less than a tenth is free, and until an eighth is free again. */
static bool is_low_space(const struct disk_space *s, bool was_low)
{
    return s->free_bytes < s->total_bytes / (was_low ? 8 : 10);
}

static void run_warn_of_low_space(struct server_run *r, const struct disk_space *s)
{
    if (s->free_bytes < 0)
        return; /* unknown: it may still be low */
    const long long left = (long long)s->free_bytes >> 20, all = (long long)s->total_bytes >> 20;
    const struct log_about about = {.path = r->dir.path};
    const bool low = is_low_space(s, r->is_low);
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

/* ---- what was written, and how long it took -------------------------------------------------- */

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

/* ---- every few seconds ----------------------------------------------------------------------- */

/* The interval between measurements. It is shorter while there are admin commands or metrics, which
 * programs read every few seconds. */
enum { MEASURE_MS = 10000, MEASURE_FOR_HTTP_MS = 2000 };

void clave__run_take_space(struct server_run *r, const struct disk_space *space)
{
    r->stats.free_bytes = space->free_bytes;
    r->stats.total_bytes = space->total_bytes;
    run_warn_of_low_space(r, space);
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
        return; /* it is measured after that job anyway */
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

/* ---- figures that change only with the settings ---------------------------------------------- */

/* The port of the first address that has one. */
static int32_t conf_port(const struct server_run *r, bool tls, int32_t none)
{
    for (struct list *e = r->listeners.next; e != &r->listeners; e = e->next) {
        const struct listener *l = LIST_ENTRY(e, struct listener, link);
        const char *colon = l->is_unix || l->tls != tls ? NULL : strrchr(l->text, ':');
        if (colon)
            return (int32_t)strtol(colon + 1, NULL, 10);
    }
    return none;
}

void clave__run_set_driver_info(struct server_run *r)
{
    snprintf(r->version_2, sizeof r->version_2, "%s/version-2", r->dir.path);
    struct driver_info info = {
        .client_port = conf_port(r, false, -1),
        .secure_client_port = conf_port(r, true, 0),
        .max_per_address = (int32_t)r->address_limit.max_connections,
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
