/* mntr_and_metrics.c - the table of figures: name, type, help and value of each, once for mntr, for
 * the admin command monitor and for the metrics, which differ only in how they write it; see
 * mntr_and_metrics.h.
 */
#include "server/figures/mntr_and_metrics.h"

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
    int64_t snapshots = s->driver_stats.snapshot_bytes, logs = s->driver_stats.log_bytes;
    return (struct data_sizes){snapshots > 0 ? snapshots : 0, logs > 0 ? logs : 0};
}

static const char *figures_put_digits(int64_t n, char out[DECIMAL_CAP])
{
    if (n < 0)
        return NULL;
    snprintf(out, DECIMAL_CAP, "%" PRId64, n);
    return out;
}

static const char *figures_average(const struct server *s, char out[DECIMAL_CAP])
{
    return clave__latency_average(&s->latency, out);
}

static const char *figures_nodes(const struct server *s, char out[DECIMAL_CAP])
{
    return figures_put_digits((int64_t)clave__count_nodes(s), out);
}

static const char *figures_uptime(const struct server *s, char out[DECIMAL_CAP])
{
    return figures_put_digits(s->now - s->started_at, out);
}

static const char *figures_cpu_seconds(const struct server *s, char out[DECIMAL_CAP])
{
    int64_t ms = s->driver_stats.cpu_ms;
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
    {"version", IN_BOTH, .constant = clave__server_version},
    {"server_state", IN_BOTH, .constant = "standalone"},
    {"avg_latency", IN_BOTH | IN_LATENCY, "gauge",
     "Milliseconds from a request to its answer, on average.", .get = figures_average},
    {"max_latency", IN_BOTH | IN_LATENCY, "gauge", "The longest latency, in milliseconds.",
     AT(latency.max)},
    {"min_latency", IN_BOTH | IN_LATENCY, "gauge", "The shortest latency, in milliseconds.",
     AT(latency.min)},
    {"packets_received", IN_BOTH | IN_LOAD, "gauge", "Since the start, or stat_reset.",
     AT(packets_received)},
    {"packets_sent", IN_BOTH | IN_LOAD, "gauge", "Since the start, or stat_reset.",
     AT(packets_sent)},
    {"num_alive_connections", IN_BOTH | IN_LOAD, "gauge", "Connections of clients.", AT(nconns)},
    {"connection_rejected", IN_BOTH | IN_LOAD, "counter", "Connections turned away by a limit.",
     AT(connections_rejected)},
    {"outstanding_requests", IN_BOTH | IN_LOAD, "gauge", "Answers waiting for the disk.",
     AT(outstanding)},
    {"undelivered_bytes", IN_LOAD, "gauge", "Answers that clients have not read.", AT(undelivered)},
    {"znode_count", IN_BOTH | IN_NODES, "gauge", "Znodes, the root counted twice.",
     .get = figures_nodes},
    {"watch_count", IN_BOTH | IN_STATE, "gauge", "Watches.", AT(watches.count)},
    {"ephemerals_count", IN_BOTH | IN_NODES, "gauge", "Ephemeral znodes.", AT(tree.ephemerals)},
    {"approximate_data_size", IN_BOTH | IN_STATE, "gauge", "Bytes of paths and data.",
     AT(tree.data_bytes)},
    {"last_zxid", IN_STATE, "gauge", "The last transaction that is on the disk.", AT(durable_zxid)},
    {"open_file_descriptor_count", IN_MONITOR | IN_PROCESS, "gauge", "Open files.",
     AT(driver_stats.open_files)},
    {"max_file_descriptor_count", IN_MONITOR | IN_PROCESS, "gauge", "Most files that may be open.",
     AT(driver_stats.max_files)},
    {"uptime", IN_BOTH | IN_STATE, "gauge", "Milliseconds since the start.", .get = figures_uptime},
    {"global_sessions", IN_BOTH | IN_LOAD, "gauge", "Sessions.", AT(sessions.table.count)},
    {"local_sessions", IN_BOTH | IN_LOAD, "gauge", "None: all are on the disk.", .constant = "0"},
    {"stale_sessions_expired", IN_MONITOR | IN_LOAD, "counter", "Sessions that have expired.",
     AT(expired)},
    {"digest_mismatches_count", IN_BOTH | IN_LOAD, "counter",
     "Transactions after which the digest in the log differed.", AT(digest_mismatches)},
    {"data_dir_size", IN_DISK, "gauge", "Bytes of the snapshots.", AT(driver_stats.snapshot_bytes)},
    {"log_dir_size", IN_DISK, "gauge", "Bytes of the logs.", AT(driver_stats.log_bytes)},
    {"data_dir_free_bytes", IN_MNTR | IN_DISK, "gauge",
     "Bytes that may still be written to the disk of the data directory.",
     AT(driver_stats.free_bytes)},
    {"data_dir_total_bytes", IN_MNTR | IN_DISK, "gauge", "Bytes of that disk.",
     AT(driver_stats.total_bytes)},
    {"process_resident_memory_bytes", IN_PROCESS, "gauge", "Memory in use.",
     AT(driver_stats.resident_bytes)},
    {"process_cpu_seconds_total", IN_PROCESS, "counter", "CPU time, user and system.",
     .get = figures_cpu_seconds},
};

static const char *figures_value(const struct figure *f, const struct server *s,
                                 char out[DECIMAL_CAP])
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
    return figures_put_digits(n, out);
}

void clave__figures_each(const struct server *s, unsigned shown, figure_visit *visit, void *arg)
{
    char digits[DECIMAL_CAP];
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        const struct figure *f = &figures[i];
        const char *value = f->shown & shown ? figures_value(f, s, digits) : NULL;
        if (value)
            visit(arg, f, value);
    }
}

/* ---- resets ---------------------------------------------------------------------------------- */

void clave__stats_reset(struct server *s)
{
    s->latency = (struct latency){0};
    s->packets_received = s->packets_sent = 0;
}
