/* server_metrics.c - the figures for monitoring. One table has the name, type, help text and value
 * of each; mntr, the admin command monitor and the page for Prometheus all use it and differ only
 * in their format. The page adds metrics that are more than a number: times, and metrics with
 * labels. The driver's HTTP server calls clave__metrics.
 *
 * Names are those of Apache 3.9 where it has such a metric; others begin with "clave_" or are older
 * than that rule. docs/operate/monitoring.md lists them, and a test compares that page and contrib/
 * with this file. */
#include "server/monitoring/server_metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "server/connection/conn.h"
#include "wire/opcode.h"

/* ---- values ---------------------------------------------------------------------------------- */

const char *clave__latency_average(const struct latency *l, char out[DECIMAL_CAP])
{
    int64_t count = l->count ? (int64_t)l->count : 1;
    int64_t whole = l->sum / count, rest = l->sum % count * 10000 / count;
    int n = snprintf(out, DECIMAL_CAP, "%" PRId64 ".%04" PRId64, whole, rest);
    while (n > 3 && out[n - 1] == '0' && out[n - 2] != '.')
        out[--n] = '\0';
    return out;
}

size_t clave__count_nodes(const struct server *s)
{
    return s->tree.nodes.count + 2;
}

struct data_sizes clave__data_sizes(const struct server *s)
{
    int64_t snapshots = s->driver.stats.snapshot_bytes, logs = s->driver.stats.log_bytes;
    return (struct data_sizes){snapshots > 0 ? snapshots : 0, logs > 0 ? logs : 0};
}

static const char *mntr_put_digits(int64_t n, char out[DECIMAL_CAP])
{
    if (n < 0)
        return NULL;
    snprintf(out, DECIMAL_CAP, "%" PRId64, n);
    return out;
}

static const char *mntr_average(const struct server *s, char out[DECIMAL_CAP])
{
    return clave__latency_average(&s->counts.latency, out);
}

static const char *mntr_nodes(const struct server *s, char out[DECIMAL_CAP])
{
    return mntr_put_digits((int64_t)clave__count_nodes(s), out);
}

static const char *mntr_uptime(const struct server *s, char out[DECIMAL_CAP])
{
    return mntr_put_digits(s->now - s->started_at, out);
}

static const char *mntr_proposals(const struct server *s, char out[DECIMAL_CAP])
{
    return mntr_put_digits(s->last_zxid - s->counts.started_zxid, out);
}

static const char *mntr_commits(const struct server *s, char out[DECIMAL_CAP])
{
    return mntr_put_digits(s->txn_log.durable_zxid - s->counts.started_zxid, out);
}

static const char *mntr_cpu_seconds(const struct server *s, char out[DECIMAL_CAP])
{
    int64_t ms = s->driver.stats.cpu_ms;
    if (ms < 0)
        return NULL;
    snprintf(out, DECIMAL_CAP, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
    return out;
}

/* ---- the table ------------------------------------------------------------------------------- */

#define AT(member) .at = offsetof(struct server, member), .size = sizeof((struct server *)0)->member
enum { IN_BOTH = IN_MNTR | IN_MONITOR };

/* Where Apache has the figure, the name is Apache's. */
static const struct figure figures[] = {
    {{.name = "version"}, IN_BOTH, .constant = clave__server_version},
    {{.name = "server_state"}, IN_BOTH, .constant = "standalone"},
    {{"avg_latency", PROMETHEUS_GAUGE, 0, "Average milliseconds from a request to its answer."},
     IN_BOTH | IN_LATENCY,
     .get = mntr_average},
    {{"max_latency", PROMETHEUS_GAUGE, 0, "The longest latency, in milliseconds."},
     IN_BOTH | IN_LATENCY,
     AT(counts.latency.max)},
    {{"min_latency", PROMETHEUS_GAUGE, 0, "The shortest latency, in milliseconds."},
     IN_BOTH | IN_LATENCY,
     AT(counts.latency.min)},
    {{"packets_received", PROMETHEUS_GAUGE, 0,
      "Packets from clients since the start, or stat_reset."},
     IN_BOTH | IN_LOAD,
     AT(counts.packets_received)},
    {{"packets_sent", PROMETHEUS_GAUGE, 0, "Packets to clients since the start, or stat_reset."},
     IN_BOTH | IN_LOAD,
     AT(counts.packets_sent)},
    {{"bytes_received_count", PROMETHEUS_BARE_COUNTER, 0, "Bytes that clients have sent."},
     IN_BOTH | IN_LOAD,
     AT(counts.bytes_received)},
    {{"num_alive_connections", PROMETHEUS_GAUGE, 0, "Connections of clients."},
     IN_BOTH | IN_LOAD,
     AT(conns.n)},
    {{"connection_request_count", PROMETHEUS_BARE_COUNTER, 0,
      "Requests to start or to resume a session."},
     IN_BOTH | IN_LOAD,
     AT(counts.connect_requests)},
    {{"connection_rejected", PROMETHEUS_BARE_COUNTER, 0,
      "Connections turned away because of a limit."},
     IN_BOTH | IN_LOAD,
     AT(counts.connections_rejected)},
    {{"connection_drop_count", PROMETHEUS_BARE_COUNTER, 0,
      "Connections closed by clients without closing the session."},
     IN_BOTH | IN_LOAD,
     AT(counts.connections_dropped)},
    {{"sessionless_connections_expired", PROMETHEUS_BARE_COUNTER, 0,
      "Connections closed because they did not start a session in time."},
     IN_BOTH | IN_LOAD,
     AT(counts.sessionless_expired)},
    {{"outstanding_requests", PROMETHEUS_GAUGE, 0, "Answers waiting for the disk."},
     IN_BOTH | IN_LOAD,
     AT(counts.outstanding)},
    {{"undelivered_bytes", PROMETHEUS_GAUGE, 0, "Answers that clients have not read."},
     IN_LOAD,
     AT(conns.undelivered)},
    {{"proposal_count", PROMETHEUS_BARE_COUNTER, 0, "Transactions that were given a zxid."},
     IN_BOTH | IN_LOAD,
     .get = mntr_proposals},
    {{"commit_count", PROMETHEUS_BARE_COUNTER, 0, "Transactions that reached the disk."},
     IN_BOTH | IN_LOAD,
     .get = mntr_commits},
    {{"snap_count", PROMETHEUS_BARE_COUNTER, 0,
      "Snapshots sent to learners: always 0, there are none."},
     IN_BOTH | IN_LOAD,
     .constant = "0"},
    {{"unrecoverable_error_count", PROMETHEUS_BARE_COUNTER, 0,
      "Always 0: such an error ends the server."},
     IN_BOTH | IN_LOAD,
     .constant = "0"},
    {{"znode_count", PROMETHEUS_GAUGE, 0, "Znodes, counting the root twice."},
     IN_BOTH | IN_NODES,
     .get = mntr_nodes},
    {{"watch_count", PROMETHEUS_GAUGE, 0, "Watches."}, IN_BOTH | IN_STATE, AT(watches.count)},
    {{"ephemerals_count", PROMETHEUS_GAUGE, 0, "Ephemeral znodes."},
     IN_BOTH | IN_NODES,
     AT(tree.ephemerals)},
    {{"approximate_data_size", PROMETHEUS_GAUGE, 0, "Bytes of paths and data."},
     IN_BOTH | IN_STATE,
     AT(tree.data_bytes)},
    {{"last_zxid", PROMETHEUS_GAUGE, 0, "The last transaction that is on the disk."},
     IN_STATE,
     AT(txn_log.durable_zxid)},
    {{"open_file_descriptor_count", PROMETHEUS_GAUGE, 0, "Open files."},
     IN_BOTH | IN_PROCESS,
     AT(driver.stats.open_files)},
    {{"max_file_descriptor_count", PROMETHEUS_GAUGE, 0, "Limit on open files."},
     IN_BOTH | IN_PROCESS,
     AT(driver.stats.max_files)},
    {{"uptime", PROMETHEUS_GAUGE, 0, "Milliseconds since the start."},
     IN_BOTH | IN_STATE,
     .get = mntr_uptime},
    {{"global_sessions", PROMETHEUS_GAUGE, 0, "Sessions."},
     IN_BOTH | IN_LOAD,
     AT(sessions.table.count)},
    {{"local_sessions", PROMETHEUS_GAUGE, 0, "Always 0: every session is on the disk."},
     IN_BOTH | IN_LOAD,
     .constant = "0"},
    {{"stale_sessions_expired", PROMETHEUS_BARE_COUNTER, 0, "Sessions that have expired."},
     IN_BOTH | IN_LOAD,
     AT(counts.sessions_expired)},
    {{"digest_mismatches_count", PROMETHEUS_BARE_COUNTER, 0,
      "Transactions after which the tree did not match the digest in the log."},
     IN_BOTH | IN_LOAD,
     AT(replay.digest_mismatches)},
    {{"data_dir_size", PROMETHEUS_GAUGE, 0, "Size of the snapshots in bytes."},
     IN_DISK,
     AT(driver.stats.snapshot_bytes)},
    {{"log_dir_size", PROMETHEUS_GAUGE, 0, "Size of the logs in bytes."},
     IN_DISK,
     AT(driver.stats.log_bytes)},
    {{"data_dir_free_bytes", PROMETHEUS_GAUGE, 0,
      "Bytes that may still be written to the disk of the data directory."},
     IN_MNTR | IN_DISK,
     AT(driver.stats.free_bytes)},
    {{"data_dir_total_bytes", PROMETHEUS_GAUGE, 0,
      "Size in bytes of the disk of the data directory."},
     IN_MNTR | IN_DISK,
     AT(driver.stats.total_bytes)},
    {{"process_resident_memory_bytes", PROMETHEUS_GAUGE, 0, "Resident memory in bytes."},
     IN_PROCESS,
     AT(driver.stats.resident_bytes)},
    {{"process_cpu_seconds", PROMETHEUS_COUNTER, 0, "CPU time, user and system."},
     IN_PROCESS,
     .get = mntr_cpu_seconds},
};

static const char *mntr_value(const struct figure *f, const struct server *s, char out[DECIMAL_CAP])
{
    const char *at = (const char *)s + f->at;
    int64_t n;
    uint32_t small;
    if (f->constant)
        return f->constant;
    if (f->get)
        return f->get(s, out);
    if (f->size == sizeof n) {
        memcpy(&n, at, sizeof n);
    } else { /* a size_t of 32 bits */
        memcpy(&small, at, sizeof small);
        n = small;
    }
    return mntr_put_digits(n, out);
}

void clave__figures_each(const struct server *s, unsigned shown, figure_visit *visit, void *arg)
{
    char digits[DECIMAL_CAP];
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        const struct figure *f = &figures[i];
        const char *value = f->shown & shown ? mntr_value(f, s, digits) : NULL;
        if (value)
            visit(arg, f, value);
    }
}

/* ---- the page: figures ----------------------------------------------------------------------- */

static void prometheus_put(void *arg, const struct figure *f, const char *value)
{
    clave__prometheus_family(arg, &f->metric);
    clave__prometheus_digits(arg, NULL, value);
}

static void prometheus_put_info(struct prometheus *p)
{
    static const struct prometheus_family f = {"zookeeper_info", PROMETHEUS_GAUGE, 0,
                                               "Version and state of the server."};
    const struct prometheus_label labels[] = {
        {"version", clave__server_version}, {"server_state", "standalone"}, {NULL, NULL}};
    clave__prometheus_family(p, &f);
    clave__prometheus_put(p, labels, 1);
}

/* ---- the page: times ------------------------------------------------------------------------- */

enum { NEVER = 0 };

/* Apache also exposes an ensemble's metrics on a standalone server, where they are empty. */
static const struct {
    struct prometheus_family family;
    size_t at; /* its quantiles in struct server; NEVER: it stays empty */
} summaries[] = {
    {{"readlatency", PROMETHEUS_SUMMARY, 0, "Milliseconds from a read to its answer."},
     offsetof(struct server, counts.read_ms)},
    {{"updatelatency", PROMETHEUS_SUMMARY, 0, "Milliseconds from a write to its answer."},
     offsetof(struct server, counts.write_ms)},
    {{"local_write_committed_time_ms", PROMETHEUS_SUMMARY, 0,
      "Milliseconds until a write is committed."},
     offsetof(struct server, counts.write_ms)},
    {{"server_write_committed_time_ms", PROMETHEUS_SUMMARY, 0,
      "Always empty: there are no other servers."},
     NEVER},
    {{"proposal_latency", PROMETHEUS_SUMMARY, 0, "Always empty: there are no followers."}, NEVER},
    {{"election_time", PROMETHEUS_SUMMARY, 0,
      "Always empty: there are no elections of a leading server."},
     NEVER},
    {{"fsynctime", PROMETHEUS_SUMMARY, 3,
      "Milliseconds to write a batch of transactions to the disk."},
     offsetof(struct server, counts.fsync_us)},
    {{"log_append_ms", PROMETHEUS_SUMMARY, 3, "The same as fsynctime."},
     offsetof(struct server, counts.fsync_us)},
    {{"snapshottime", PROMETHEUS_SUMMARY, 0, "Milliseconds to make and write a snapshot."},
     offsetof(struct server, counts.snapshot_ms)},
};

static struct prometheus_summary prometheus_summary_of(const struct quantiles *q, int64_t now)
{
    return (struct prometheus_summary){.quantiles = {clave__quantiles_at(q, now, 500),
                                                     clave__quantiles_at(q, now, 900),
                                                     clave__quantiles_at(q, now, 990)},
                                       .has_quantiles = true,
                                       .sum = q->sum,
                                       .count = q->count};
}

static void prometheus_put_times(struct prometheus *p, const struct server *s)
{
    static const struct prometheus_family all = {"request_latency_ms", PROMETHEUS_SUMMARY, 0,
                                                 "Milliseconds from a request to its answer."};
    struct prometheus_summary summary = {.sum = s->counts.latency.sum,
                                         .count = s->counts.latency.count};
    clave__prometheus_family(p, &all);
    clave__prometheus_summary(p, NULL, &summary);
    for (size_t i = 0; i < sizeof summaries / sizeof *summaries; i++) {
        const void *at = (const char *)s + summaries[i].at;
        summary = (struct prometheus_summary){{-1, -1, -1}, true, 0, 0};
        if (summaries[i].at != NEVER)
            summary = prometheus_summary_of(at, s->now);
        clave__prometheus_family(p, &summaries[i].family);
        clave__prometheus_summary(p, NULL, &summary);
    }
}

/* ---- the page: metrics with labels ----------------------------------------------------------- */

static void prometheus_put_labelled(struct prometheus *p, const char *label, const char *value,
                                    uint64_t n)
{
    const struct prometheus_label labels[] = {{label, value}, {NULL, NULL}};
    clave__prometheus_put(p, labels, (int64_t)n);
}

static void prometheus_put_requests(struct prometheus *p, const struct server *s)
{
    static const struct prometheus_family f = {"requests", PROMETHEUS_COUNTER, 0,
                                               "Requests of clients, by operation."};
    clave__prometheus_family(p, &f);
    for (int32_t op = 0; op < (int32_t)(sizeof s->counts.requests / sizeof *s->counts.requests);
         op++)
        if (clave__opcode(op)->body)
            prometheus_put_labelled(p, "op", clave__opcode(op)->name, s->counts.requests[op]);
}

static void prometheus_put_limits(struct prometheus *p, const struct server *s)
{
    static const struct prometheus_family f = {"limit_refused", PROMETHEUS_COUNTER, 0,
                                               "Requests beyond a limit, by limit."};
    clave__prometheus_family(p, &f);
    for (enum server_limit l = 0; l < SERVER_LIMITS; l++)
        prometheus_put_labelled(p, "limit", clave__client_limit_name(l),
                                s->refused.limits[l].refused);
}

static void prometheus_put_sessions(struct prometheus *p, const struct sessions *t)
{
    static const struct prometheus_family
        slack = {"clave_session_slack_seconds", PROMETHEUS_HISTOGRAM, 3,
                 "Time that a session had left when its client was heard."},
        ends = {"clave_session_ends", PROMETHEUS_COUNTER, 0, "Sessions that ended, by cause."};
    static const char *const causes[SESSION_ENDS] = {
        [SESSION_EXPIRED] = "expired", [SESSION_CLOSED] = "closed", [SESSION_BARRED] = "operator"};
    clave__prometheus_family(p, &slack);
    clave__prometheus_histogram(p, NULL, &t->slack_ms);
    clave__prometheus_family(p, &ends);
    for (size_t i = 0; i < SESSION_ENDS; i++)
        prometheus_put_labelled(p, "cause", causes[i], t->ends[i]);
}

/* ---- the page -------------------------------------------------------------------------------- */

clave_err clave__metrics(const struct server *s, enum prometheus_format format, struct buf *out)
{
    struct prometheus p = clave__prometheus_to(out, format);
    prometheus_put_info(&p);
    clave__figures_each(s, IN_LATENCY, prometheus_put, &p);
    prometheus_put_times(&p, s);
    for (unsigned section = IN_LOAD; section <= IN_DISK; section *= 2)
        clave__figures_each(s, section, prometheus_put, &p);
    prometheus_put_requests(&p, s);
    prometheus_put_limits(&p, s);
    prometheus_put_sessions(&p, &s->sessions);
    clave__figures_each(s, IN_PROCESS, prometheus_put, &p);
    clave__prometheus_end(&p);
    return p.err;
}

/* ---- figures from the driver, and the server's health ---------------------------------------- */

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

/* How much longer nothing is granted after a restore, in ms: until the session of the restore
 * expires, at most a tick after its timeout. */
static int64_t stats_quiet_ms(const struct server *s)
{
    const struct session *quiet = s->sessions.of_restore;
    if (!quiet)
        return 0;
    int64_t left = s->started_at + quiet->timeout_ms - s->now;
    return left > 0 ? left : 1;
}

/* Transactions since the newest snapshot; -1 if that is of another epoch, because then only the
 * files could tell. */
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
    for (size_t i = 0; i < SERVER_LIMITS; i++)
        out->refused[i] = s->refused.limits[i].refused;
}

void clave__stats_reset(struct server *s)
{
    s->counts.latency = (struct latency){0};
    s->counts.packets_received = s->counts.packets_sent = 0;
}
