/* server_stats.c - how a server is: what its driver has measured, the times of fsyncs and
 * snapshots among it, and what it counts itself. */
#include <string.h>

#include "server/monitoring/mntr_and_metrics.h"

void clave__server_set_driver_info(struct server *s, const struct driver_info *info)
{
    s->driver.info = *info;
}

void clave__server_set_driver_stats(struct server *s, const struct driver_stats *stats)
{
    s->driver.stats = *stats;
}

void clave__server_note_fsync(struct server *s, int64_t us)
{
    clave__quantiles_note(&s->counts.fsync_us, s->now, us, 1);
}

void clave__server_note_snapshot(struct server *s, int64_t ms)
{
    clave__quantiles_note(&s->counts.snapshot_ms, s->now, ms, 1);
}

/* The session of a restored directory ends with the time for which nothing is granted, and a tick
 * later at most. */
static int64_t stats_quiet_ms(const struct server *s)
{
    const struct session *quiet = s->sessions.of_restore;
    if (!quiet)
        return 0;
    int64_t left = s->started_at + quiet->timeout_ms - s->now;
    return left > 0 ? left : 1;
}

/* Of another epoch: only the files can tell. */
static int64_t stats_snapshot_behind(const struct server *s)
{
    int64_t from = s->driver.stats.snapshot_zxid, to = s->last_zxid;
    return from >= 0 && to >= from && to >> 32 == from >> 32 ? to - from : -1;
}

void clave__server_health(const struct server *s, struct server_health *out)
{
    *out = (struct server_health){
        .uptime_ms = s->now - s->started_at,
        .sessions = (int64_t)s->sessions.table.count,
        .connections = (int64_t)s->conns.n,
        .requests = (int64_t)s->counts.packets_received,
        .outstanding = (int64_t)s->counts.outstanding,
        .nodes = (int64_t)s->tree.nodes.count + 1,
        .watches = (int64_t)s->watches.count,
        .data_bytes = (int64_t)s->tree.data_bytes,
        .read_ms = clave__quantiles_at(&s->counts.read_ms, s->now, 990),
        .write_ms = clave__quantiles_at(&s->counts.write_ms, s->now, 990),
        .fsync_us = clave__quantiles_at(&s->counts.fsync_us, s->now, 990),
        .snapshot_behind = stats_snapshot_behind(s),
        .quiet_ms = stats_quiet_ms(s),
        .driver = s->driver.stats,
    };
}

void clave__server_stats(const struct server *s, struct server_stats *out)
{
    *out = (struct server_stats){
        .last_zxid = s->last_zxid,
        .durable_zxid = s->txn_log.durable_zxid,
        .nodes = s->tree.nodes.count + 1,
        .sessions = s->sessions.table.count,
        .connections = s->conns.n,
        .watches = s->watches.count,
        .ephemerals = s->tree.ephemerals,
        .packets_received = s->counts.packets_received,
        .packets_sent = s->counts.packets_sent,
        .data_bytes = s->tree.data_bytes,
        .undelivered = s->conns.undelivered,
        .digest = s->tree.digest,
        .digest_mismatches = s->replay.digest_mismatches,
    };
    memcpy(out->requests, s->counts.requests, sizeof out->requests);
    for (size_t i = 0; i < SERVER_BOUNDS; i++)
        out->refused[i] = s->refused.bounds[i].refused;
}

void clave__stats_reset(struct server *s)
{
    s->counts.latency = (struct latency){0};
    s->counts.packets_received = s->counts.packets_sent = 0;
}
