/* metrics.c - the figures for Prometheus, under the names that Apache's provider gives them. The
 * driver's HTTP server calls clave__admin_metrics. docs/operation.md lists the names. */
#include <inttypes.h>

#include "server/figures/admin.h"
#include "server/figures/figures.h"

static void head(struct text *p, const char *name, const char *type, const char *help)
{
    clave__text_put(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauge(struct text *p, const char *name, int64_t value, const char *help)
{
    head(p, name, "gauge", help);
    clave__text_put(p, "%s %" PRId64 "\n", name, value);
}

/* A figure of this process, named as Prometheus' client libraries name it. */
static void if_known(struct text *p, const char *name, int64_t value, const char *help)
{
    if (value >= 0)
        gauge(p, name, value, help);
}

static void counter(struct text *p, const char *name, uint64_t value, const char *help)
{
    head(p, name, "counter", help);
    clave__text_put(p, "%s %" PRIu64 "\n", name, value);
}

/* A label's value is quoted: \, " and newlines are escaped. */
static void put_label(struct text *p, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            clave__text_put(p, "\\n");
        else
            clave__text_put(p, *text == '\\' || *text == '"' ? "\\%c" : "%c", *text);
    }
}

static void info(struct text *p)
{
    head(p, "zookeeper_info", "gauge", "Version and state of the server.");
    clave__text_put(p, "zookeeper_info{version=\"");
    put_label(p, clave__server_version);
    clave__text_put(p, "\",server_state=\"standalone\"} 1\n");
}

static void latency(struct text *p, const struct server *s)
{
    char avg[32];
    const struct latency *l = &s->latency;
    head(p, "avg_latency", "gauge", "Milliseconds from a request to its answer, on average.");
    clave__text_put(p, "avg_latency %s\n", clave__latency_average(l, avg));
    gauge(p, "max_latency", l->max, "The longest latency, in milliseconds.");
    gauge(p, "min_latency", l->min, "The shortest latency, in milliseconds.");
    head(p, "request_latency_ms", "summary", "Milliseconds from a request to its answer.");
    clave__text_put(p, "request_latency_ms_sum %" PRId64 "\nrequest_latency_ms_count %" PRIu64 "\n",
                    l->sum, l->count);
}

static void metrics_load(struct text *p, const struct server *s)
{
    gauge(p, "packets_received", (int64_t)s->packets_received, "Since the start, or stat_reset.");
    gauge(p, "packets_sent", (int64_t)s->packets_sent, "Since the start, or stat_reset.");
    gauge(p, "num_alive_connections", (int64_t)s->nconns, "Connections of clients.");
    gauge(p, "outstanding_requests", (int64_t)s->outstanding, "Answers waiting for the disk.");
    gauge(p, "undelivered_bytes", (int64_t)s->undelivered, "Answers that clients have not read.");
    gauge(p, "global_sessions", (int64_t)s->sessions.table.count, "Sessions.");
    gauge(p, "local_sessions", 0, "None: all are on the disk.");
    counter(p, "digest_mismatches_count", s->digest_mismatches,
            "Transactions after which the digest in the log differed.");
}

static void tree(struct text *p, const struct server *s)
{
    gauge(p, "znode_count", (int64_t)clave__count_nodes(s), "Znodes, the root counted twice.");
    gauge(p, "ephemerals_count", (int64_t)s->tree.ephemerals, "Ephemeral znodes.");
    gauge(p, "watch_count", (int64_t)s->watches.count, "Watches.");
    gauge(p, "approximate_data_size", (int64_t)s->tree.data_bytes, "Bytes of paths and data.");
    gauge(p, "last_zxid", s->durable_zxid, "The last transaction that is on the disk.");
    gauge(p, "uptime", s->now - s->started_at, "Milliseconds since the start.");
}

static void directory(struct text *p, const struct server *s)
{
    uint64_t snapshots, logs;
    if (!clave__data_sizes(s, &snapshots, &logs))
        return;
    gauge(p, "data_dir_size", (int64_t)snapshots, "Bytes of the snapshots.");
    gauge(p, "log_dir_size", (int64_t)logs, "Bytes of the logs.");
}

static void requests(struct text *p, const struct server *s)
{
    static const struct {
        int32_t op;
        const char *name;
    } ops[] = {
        {OP_CREATE, "create"},
        {OP_DELETE, "delete"},
        {OP_EXISTS, "exists"},
        {OP_GET_DATA, "getData"},
        {OP_SET_DATA, "setData"},
        {OP_GET_ACL, "getACL"},
        {OP_SET_ACL, "setACL"},
        {OP_GET_CHILDREN, "getChildren"},
        {OP_SYNC, "sync"},
        {OP_PING, "ping"},
        {OP_GET_CHILDREN2, "getChildren2"},
        {OP_MULTI, "multi"},
        {OP_CREATE2, "create2"},
        {OP_CHECK_WATCHES, "checkWatches"},
        {OP_REMOVE_WATCHES, "removeWatches"},
        {OP_CREATE_CONTAINER, "createContainer"},
        {OP_CREATE_TTL, "createTTL"},
        {OP_MULTI_READ, "multiRead"},
        {OP_AUTH, "auth"},
        {OP_SET_WATCHES, "setWatches"},
        {OP_GET_EPHEMERALS, "getEphemerals"},
        {OP_GET_ALL_CHILDREN_NUMBER, "getAllChildrenNumber"},
        {OP_SET_WATCHES2, "setWatches2"},
        {OP_ADD_WATCH, "addWatch"},
        {OP_WHO_AM_I, "whoAmI"},
    };
    head(p, "requests_total", "counter", "Requests of clients, by operation.");
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        clave__text_put(p, "requests_total{op=\"%s\"} %" PRIu64 "\n", ops[i].name,
                        s->requests[ops[i].op]);
}

static void process(struct text *p, const struct server_vitals *v)
{
    if_known(p, "open_file_descriptor_count", v->open_files, "Open files.");
    if_known(p, "max_file_descriptor_count", v->max_files, "Most files that may be open.");
    if_known(p, "process_resident_memory_bytes", v->resident_bytes, "Memory in use.");
    if (v->cpu_ms < 0)
        return;
    head(p, "process_cpu_seconds_total", "counter", "CPU time, user and system.");
    clave__text_put(p, "process_cpu_seconds_total %" PRId64 ".%03d\n", v->cpu_ms / 1000,
                    (int)(v->cpu_ms % 1000));
}

clave_err clave__admin_metrics(const struct server *s, const struct server_vitals *v,
                               struct buf *out)
{
    struct text p = {.out = out};
    info(&p);
    latency(&p, s);
    metrics_load(&p, s);
    tree(&p, s);
    directory(&p, s);
    requests(&p, s);
    process(&p, v);
    return p.err;
}
