/* admin.c - the commands of Apache's AdminServer, as JSON; see admin.h. One table of commands: a
 * new one is a say_ function and a line in `commands`. Names of fields are Apache's. */
#include "server/figures/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/figures/list_sessions.h"

typedef void say(struct server *s, struct json *j, const struct server_vitals *v);

/* ---- commands of one line -------------------------------------------------------------------- */

static void nothing(struct server *s, struct json *j, const struct server_vitals *v)
{
    (void)s;
    (void)j;
    (void)v;
}

static void reset_connections(struct server *s, struct json *j, const struct server_vitals *v)
{
    (void)j;
    (void)v;
    clave__conn_stats_reset(s);
}

static void reset_stats(struct server *s, struct json *j, const struct server_vitals *v)
{
    (void)j;
    (void)v;
    clave__stats_reset(s);
}

static void say_environment(struct server *s, struct json *j, const struct server_vitals *v)
{
    (void)s;
    (void)v;
    clave__json_string(j, "zookeeper.version", clave__server_version);
}

static void say_read_only(struct server *s, struct json *j, const struct server_vitals *v)
{
    (void)s;
    (void)v;
    clave__json_bool(j, "read_only", false);
}

/* One server has no quorum: what a standalone Apache server answers. */
static void say_votes(struct server *s, struct json *j, const struct server_vitals *v)
{
    (void)s;
    (void)v;
    clave__json_open(j, "current_config", '{');
    clave__json_close(j, '}');
}

static void say_zab(struct server *s, struct json *j, const struct server_vitals *v)
{
    (void)s;
    (void)v;
    clave__json_bool(j, "voting", false);
    clave__json_string(j, "zabstate", "");
}

static void say_watch_summary(struct server *s, struct json *j, const struct server_vitals *v)
{
    struct watch_figures f = clave__watch_figures(s);
    (void)v;
    clave__json_int(j, "num_connections", (int64_t)f.conns);
    clave__json_int(j, "num_paths", (int64_t)f.paths);
    clave__json_int(j, "num_total_watches", (int64_t)f.watches);
}

/* ---- the driver's part ----------------------------------------------------------------------- */

static void say_configuration(struct server *s, struct json *j, const struct server_vitals *v)
{
    const struct server_place *at = &s->place;
    const char *dir = at->data_dir ? at->data_dir : "";
    (void)v;
    clave__json_int(j, "client_port", at->client_port);
    if (at->secure_client_port > 0)
        clave__json_int(j, "secure_client_port", at->secure_client_port);
    clave__json_string(j, "data_dir", dir);
    clave__json_string(j, "data_log_dir", dir);
    clave__json_int(j, "tick_time", s->tick_ms);
    clave__json_int(j, "max_client_cnxns", at->max_per_address);
    clave__json_int(j, "min_session_timeout", s->min_session_ms);
    clave__json_int(j, "max_session_timeout", s->max_session_ms);
    clave__json_int(j, "server_id", 0);
    clave__json_int(j, "client_port_listen_backlog", -1);
}

static void put_sizes(const struct server *s, struct json *j, const char *snapshots_key,
                      const char *logs_key)
{
    uint64_t snapshots, logs;
    clave__data_sizes(s, &snapshots, &logs);
    clave__json_int(j, snapshots_key, (int64_t)snapshots);
    clave__json_int(j, logs_key, (int64_t)logs);
}

static void server_admin_say_dirs(struct server *s, struct json *j, const struct server_vitals *v)
{
    (void)v;
    put_sizes(s, j, "datadir_size", "logdir_size");
}

static void say_last_snapshot(struct server *s, struct json *j, const struct server_vitals *v)
{
    int64_t zxid = -1, seconds = -1;
    char hex[20];
    (void)v;
    if (s->place.last_snapshot)
        s->place.last_snapshot(s->place.arg, &zxid, &seconds);
    snprintf(hex, sizeof hex, "%" PRIx64, (uint64_t)zxid);
    clave__json_string(j, "zxid", hex);
    clave__json_int(j, "timestamp", seconds);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void put_latency(const struct server *s, struct json *j)
{
    char avg[32];
    clave__json_number(j, "avg_latency", clave__latency_average(&s->latency, avg));
    clave__json_int(j, "max_latency", s->latency.max);
    clave__json_int(j, "min_latency", s->latency.min);
}

static void put_packets(const struct server *s, struct json *j)
{
    clave__json_int(j, "packets_received", (int64_t)s->packets_received);
    clave__json_int(j, "packets_sent", (int64_t)s->packets_sent);
}

static void say_monitor(struct server *s, struct json *j, const struct server_vitals *v)
{
    clave__json_string(j, "version", clave__server_version);
    clave__json_string(j, "server_state", "standalone");
    put_latency(s, j);
    put_packets(s, j);
    clave__json_int(j, "num_alive_connections", (int64_t)s->nconns);
    clave__json_int(j, "outstanding_requests", (int64_t)s->outstanding);
    clave__json_int(j, "znode_count", (int64_t)clave__count_nodes(s));
    clave__json_int(j, "watch_count", (int64_t)s->watches.count);
    clave__json_int(j, "ephemerals_count", (int64_t)s->tree.ephemerals);
    clave__json_int(j, "approximate_data_size", (int64_t)s->tree.data_bytes);
    if (v->open_files >= 0)
        clave__json_int(j, "open_file_descriptor_count", v->open_files);
    if (v->max_files >= 0)
        clave__json_int(j, "max_file_descriptor_count", v->max_files);
    clave__json_int(j, "uptime", s->now - s->started_at);
    clave__json_int(j, "global_sessions", (int64_t)s->sessions.table.count);
    clave__json_int(j, "local_sessions", 0);
    clave__json_int(j, "digest_mismatches_count", (int64_t)s->digest_mismatches);
}

static void say_server_stats(struct server *s, struct json *j, const struct server_vitals *v)
{
    (void)v;
    clave__json_string(j, "version", clave__server_version);
    clave__json_bool(j, "read_only", false);
    clave__json_open(j, "server_stats", '{');
    put_packets(s, j);
    put_sizes(s, j, "data_dir_size", "log_dir_size");
    clave__json_string(j, "server_state", "standalone");
    clave__json_int(j, "last_processed_zxid", s->durable_zxid);
    clave__json_int(j, "outstanding_requests", (int64_t)s->outstanding);
    put_latency(s, j);
    clave__json_int(j, "num_alive_client_connections", (int64_t)s->nconns);
    clave__json_bool(j, "provider_null", false);
    clave__json_int(j, "uptime", s->now - s->started_at);
    clave__json_close(j, '}');
    clave__json_int(j, "node_count", (int64_t)clave__count_nodes(s));
}

static void say_stats(struct server *s, struct json *j, const struct server_vitals *v)
{
    say_server_stats(s, j, v);
    clave__list_connections(s, j, false);
}

static void server_admin_say_connections(struct server *s, struct json *j,
                                         const struct server_vitals *v)
{
    (void)v;
    clave__list_connections(s, j, true);
}

/* ---- the commands ---------------------------------------------------------------------------- */

/* Missing on purpose: hash (there is no log of digests), the trace mask, observers, Java's system
 * properties, and the configuration as it was read, which may contain secrets. */
static const struct command {
    const char *names[3]; /* the first is the one in the answer */
    say *say;
    const char *error;
} commands[] = {
    {{"configuration", "conf", "config"}, say_configuration, NULL},
    {{"connection_stat_reset", "crst"}, reset_connections, NULL},
    {{"connections", "cons"}, server_admin_say_connections, NULL},
    {{"dirs"}, server_admin_say_dirs, NULL},
    {{"dump"}, clave__list_sessions, NULL},
    {{"environment", "env", "envi"}, say_environment, NULL},
    {{"is_read_only", "isro"}, say_read_only, NULL},
    {{"last_snapshot", "lsnp"}, say_last_snapshot, NULL},
    {{"leader", "lead"}, nothing, "server is not initialized"}, /* as a standalone Apache server */
    {{"monitor", "mntr"}, say_monitor, NULL},
    {{"ruok"}, nothing, NULL},
    {{"server_stats", "srvr"}, say_server_stats, NULL},
    {{"stat_reset", "srst"}, reset_stats, NULL},
    {{"stats", "stat"}, say_stats, NULL},
    {{"voting_view"}, say_votes, NULL},
    {{"watch_summary", "wchs"}, say_watch_summary, NULL},
    {{"watches", "wchc"}, clave__list_watches, NULL},
    {{"watches_by_path", "wchp"}, clave__list_watches_by_path, NULL},
    {{"zabstate"}, say_zab, NULL},
};
enum { NCOMMANDS = sizeof commands / sizeof *commands };

static const struct command *server_admin_find(const char *name)
{
    for (size_t i = 0; i < NCOMMANDS; i++)
        for (size_t k = 0; k < 3 && commands[i].names[k]; k++)
            if (strcmp(name, commands[i].names[k]) == 0)
                return &commands[i];
    return NULL;
}

const char *clave__admin_name(size_t i)
{
    return i < NCOMMANDS ? commands[i].names[0] : NULL;
}

clave_err clave__admin_command(struct server *s, const char *name, const struct server_vitals *v,
                               struct buf *out)
{
    const struct command *c = server_admin_find(name);
    struct json j = clave__json_to(out);
    clave__json_open(&j, NULL, '{');
    if (c)
        c->say(s, &j, v);
    clave__json_string(&j, "command", c ? c->names[0] : name);
    clave__json_string(&j, "error", c ? c->error : "Unknown command");
    clave__json_close(&j, '}');
    if (j.err == CLAVE_OK)
        j.err = clave__buf_append(out, "\n", 1);
    return j.err == CLAVE_OK && !c ? CLAVE_EINVAL : j.err;
}
