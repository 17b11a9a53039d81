/* mntr_and_metrics.c - the table of figures: name, type, help and value of each, once for mntr, for
 * the admin command monitor and for the metrics, which differ only in how they write it; see
 * mntr_and_metrics.h.
 */
#include "server/monitoring/mntr_and_metrics.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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

/* The names are those of Apache where it has the figure. */
static const struct figure figures[] = {
    {{.name = "version"}, IN_BOTH, .constant = clave__server_version},
    {{.name = "server_state"}, IN_BOTH, .constant = "standalone"},
    {{"avg_latency", PROMETHEUS_GAUGE, 0, "Milliseconds from a request to its answer, on average."},
     IN_BOTH | IN_LATENCY,
     .get = mntr_average},
    {{"max_latency", PROMETHEUS_GAUGE, 0, "The longest latency, in milliseconds."},
     IN_BOTH | IN_LATENCY,
     AT(counts.latency.max)},
    {{"min_latency", PROMETHEUS_GAUGE, 0, "The shortest latency, in milliseconds."},
     IN_BOTH | IN_LATENCY,
     AT(counts.latency.min)},
    {{"packets_received", PROMETHEUS_GAUGE, 0, "Since the start, or stat_reset."},
     IN_BOTH | IN_LOAD,
     AT(counts.packets_received)},
    {{"packets_sent", PROMETHEUS_GAUGE, 0, "Since the start, or stat_reset."},
     IN_BOTH | IN_LOAD,
     AT(counts.packets_sent)},
    {{"bytes_received_count", PROMETHEUS_BARE_COUNTER, 0, "Bytes that clients have sent."},
     IN_BOTH | IN_LOAD,
     AT(counts.bytes_received)},
    {{"num_alive_connections", PROMETHEUS_GAUGE, 0, "Connections of clients."},
     IN_BOTH | IN_LOAD,
     AT(conns.n)},
    {{"connection_request_count", PROMETHEUS_BARE_COUNTER, 0,
      "Sessions that clients asked for or came back to."},
     IN_BOTH | IN_LOAD,
     AT(counts.connect_requests)},
    {{"connection_rejected", PROMETHEUS_BARE_COUNTER, 0, "Connections turned away by a limit."},
     IN_BOTH | IN_LOAD,
     AT(counts.connections_rejected)},
    {{"connection_drop_count", PROMETHEUS_BARE_COUNTER, 0,
      "Connections closed by clients, their session open."},
     IN_BOTH | IN_LOAD,
     AT(counts.connections_dropped)},
    {{"sessionless_connections_expired", PROMETHEUS_BARE_COUNTER, 0,
      "Connections that did not start a session."},
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
      "Snapshots sent to learners, of which there are none."},
     IN_BOTH | IN_LOAD,
     .constant = "0"},
    {{"unrecoverable_error_count", PROMETHEUS_BARE_COUNTER, 0, "0: such an error ends the server."},
     IN_BOTH | IN_LOAD,
     .constant = "0"},
    {{"znode_count", PROMETHEUS_GAUGE, 0, "Znodes, the root counted twice."},
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
    {{"max_file_descriptor_count", PROMETHEUS_GAUGE, 0, "Most files that may be open."},
     IN_BOTH | IN_PROCESS,
     AT(driver.stats.max_files)},
    {{"uptime", PROMETHEUS_GAUGE, 0, "Milliseconds since the start."},
     IN_BOTH | IN_STATE,
     .get = mntr_uptime},
    {{"global_sessions", PROMETHEUS_GAUGE, 0, "Sessions."},
     IN_BOTH | IN_LOAD,
     AT(sessions.table.count)},
    {{"local_sessions", PROMETHEUS_GAUGE, 0, "None: all are on the disk."},
     IN_BOTH | IN_LOAD,
     .constant = "0"},
    {{"stale_sessions_expired", PROMETHEUS_BARE_COUNTER, 0, "Sessions that have expired."},
     IN_BOTH | IN_LOAD,
     AT(counts.sessions_expired)},
    {{"digest_mismatches_count", PROMETHEUS_BARE_COUNTER, 0,
      "Transactions after which the digest in the log differed."},
     IN_BOTH | IN_LOAD,
     AT(replay.digest_mismatches)},
    {{"data_dir_size", PROMETHEUS_GAUGE, 0, "Bytes of the snapshots."},
     IN_DISK,
     AT(driver.stats.snapshot_bytes)},
    {{"log_dir_size", PROMETHEUS_GAUGE, 0, "Bytes of the logs."},
     IN_DISK,
     AT(driver.stats.log_bytes)},
    {{"data_dir_free_bytes", PROMETHEUS_GAUGE, 0,
      "Bytes that may still be written to the disk of the data directory."},
     IN_MNTR | IN_DISK,
     AT(driver.stats.free_bytes)},
    {{"data_dir_total_bytes", PROMETHEUS_GAUGE, 0, "Bytes of that disk."},
     IN_MNTR | IN_DISK,
     AT(driver.stats.total_bytes)},
    {{"process_resident_memory_bytes", PROMETHEUS_GAUGE, 0, "Memory in use."},
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
