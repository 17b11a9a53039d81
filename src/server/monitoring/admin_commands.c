/* admin_commands.c - the commands of Apache's AdminServer, as JSON; see listing.h. A new command is
 * a function and a line in the table `commands`. Fields have Apache's names. */
#include "server/monitoring/listing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/monitoring/server_metrics.h"

typedef void command_run(struct server *s, struct json *j);

/* ---- commands of one line -------------------------------------------------------------------- */

static void command_reset_stats(struct server *s, struct json *j)
{
    (void)j;
    clave__stats_reset(s);
}

static void command_environment(struct server *s, struct json *j)
{
    clave__json_string(j, "zookeeper.version", clave__server_version);
    for (size_t i = 0; i < ENVIRONMENT_LINES; i++)
        if (s->driver.info.environment[i].name)
            clave__json_string(j, s->driver.info.environment[i].name,
                               s->driver.info.environment[i].value);
}

static void command_read_only(struct server *s, struct json *j)
{
    (void)s;
    clave__json_bool(j, "read_only", false);
}

/* A single server has no quorum; this is the answer of a standalone Apache server. */
static void command_votes(struct server *s, struct json *j)
{
    (void)s;
    clave__json_open(j, "current_config", '{');
    clave__json_close(j, '}');
}

static void command_zab(struct server *s, struct json *j)
{
    (void)s;
    clave__json_bool(j, "voting", false);
    clave__json_string(j, "zabstate", "");
}

/* ---- the driver's information ---------------------------------------------------------------- */

static void command_configuration(struct server *s, struct json *j)
{
    const struct driver_info *at = &s->driver.info;
    const char *dir = at->data_dir ? at->data_dir : "";
    clave__json_int(j, "client_port", at->client_port);
    if (at->secure_client_port > 0)
        clave__json_int(j, "secure_client_port", at->secure_client_port);
    clave__json_string(j, "data_dir", dir);
    clave__json_string(j, "data_log_dir", dir);
    clave__json_int(j, "tick_time", s->limits.tick_ms);
    clave__json_int(j, "max_client_cnxns", at->max_per_address);
    clave__json_int(j, "min_session_timeout", s->limits.min_session_ms);
    clave__json_int(j, "max_session_timeout", s->limits.max_session_ms);
    clave__json_int(j, "server_id", 0);
    clave__json_int(j, "client_port_listen_backlog", -1);
}

static void admin_put_sizes(const struct server *s, struct json *j, const char *snapshots_key,
                            const char *logs_key)
{
    struct data_sizes sizes = clave__data_sizes(s);
    clave__json_int(j, snapshots_key, sizes.snapshots);
    clave__json_int(j, logs_key, sizes.logs);
}

static void command_dirs(struct server *s, struct json *j)
{
    admin_put_sizes(s, j, "datadir_size", "logdir_size");
}

static void command_last_snapshot(struct server *s, struct json *j)
{
    char hex[20];
    snprintf(hex, sizeof hex, "%" PRIx64, (uint64_t)s->driver.stats.snapshot_zxid);
    clave__json_string(j, "zxid", hex);
    clave__json_int(j, "timestamp", s->driver.stats.snapshot_seconds);
}

/* ---- figures --------------------------------------------------------------------------------- */

static void admin_put_figure(void *arg, const struct figure *f, const char *value)
{
    if (f->metric.help)
        clave__json_number(arg, f->metric.name, value);
    else
        clave__json_string(arg, f->metric.name, value);
}

static void command_monitor(struct server *s, struct json *j)
{
    clave__figures_each(s, IN_MONITOR, admin_put_figure, j);
}

static void command_server_stats(struct server *s, struct json *j)
{
    char avg[DECIMAL_CAP];
    clave__json_string(j, "version", clave__server_version);
    clave__json_bool(j, "read_only", false);
    clave__json_open(j, "server_stats", '{');
    clave__json_int(j, "packets_received", (int64_t)s->counts.packets_received);
    clave__json_int(j, "packets_sent", (int64_t)s->counts.packets_sent);
    admin_put_sizes(s, j, "data_dir_size", "log_dir_size");
    clave__json_string(j, "server_state", "standalone");
    clave__json_int(j, "last_processed_zxid", s->txn_log.durable_zxid);
    clave__json_int(j, "outstanding_requests", (int64_t)s->counts.outstanding);
    clave__json_number(j, "avg_latency", clave__latency_average(&s->counts.latency, avg));
    clave__json_int(j, "max_latency", s->counts.latency.max);
    clave__json_int(j, "min_latency", s->counts.latency.min);
    clave__json_int(j, "num_alive_client_connections", (int64_t)s->conns.n);
    clave__json_bool(j, "provider_null", false);
    clave__json_int(j, "uptime", s->now - s->started_at);
    clave__json_close(j, '}');
    clave__json_int(j, "node_count", (int64_t)clave__count_nodes(s));
}

static bool command_stats(struct listing *l)
{
    command_server_stats(l->s, &l->json);
    l->brief = true;
    return false;
}

static bool command_watch_summary(struct listing *l)
{
    const struct watch_counts *n = &l->counts;
    clave__json_int(&l->json, "num_connections", (int64_t)n->conns);
    clave__json_int(&l->json, "num_paths", (int64_t)n->paths);
    clave__json_int(&l->json, "num_total_watches", (int64_t)n->watches);
    return false;
}

/* ---- the commands ---------------------------------------------------------------------------- */

/* Left out on purpose: hash (we keep no log of digests), the trace mask, observers, Java's system
 * properties, and the raw configuration, which may contain secrets. */
static const struct command {
    const char *names[3]; /* the answer uses the first */
    command_run *run;     /* writes the whole answer, unless there are parts */
    const char *error;
    bool changes; /* something: it is no GET */
    listing_part *parts[LISTING_PARTS];
} commands[] = {
    {{"configuration", "conf", "config"}, .run = command_configuration},
    {{"connection_stat_reset", "crst"}, .changes = true, .parts = {clave__connections_reset}},
    {{"connections", "cons"}, .parts = {clave__connections_json, clave__secure_connections_json}},
    {{"dirs"}, .run = command_dirs},
    {{"dump"}, .parts = {clave__expiries_collect, clave__expiries_json, clave__owners_json}},
    {{"environment", "env", "envi"}, .run = command_environment},
    {{"is_read_only", "isro"}, .run = command_read_only},
    {{"last_snapshot", "lsnp"}, .run = command_last_snapshot},
    /* the answer of a standalone Apache server */
    {{"leader", "lead"}, .error = "server is not initialized"},
    {{"monitor", "mntr"}, .run = command_monitor},
    {{"ruok"}, .run = NULL},
    {{"server_stats", "srvr"}, .run = command_server_stats},
    {{"stat_reset", "srst"}, .changes = true, .run = command_reset_stats},
    {{"stats", "stat"},
     .parts = {command_stats, clave__connections_json, clave__secure_connections_json}},
    {{"voting_view"}, .run = command_votes},
    {{"watch_summary", "wchs"},
     .parts = {clave__watches_count_by_connection, clave__watches_count_by_path,
               command_watch_summary}},
    {{"watches", "wchc"}, .parts = {clave__watches_json}},
    {{"watches_by_path", "wchp"}, .parts = {clave__watches_by_path_json}},
    {{"zabstate"}, .run = command_zab},
};
enum { NCOMMANDS = sizeof commands / sizeof *commands };

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < NCOMMANDS; i++)
        for (size_t k = 0; k < 3 && commands[i].names[k]; k++)
            if (strcmp(name, commands[i].names[k]) == 0)
                return &commands[i];
    return NULL;
}

bool clave__admin_changes(const char *name)
{
    const struct command *c = command_find(name);
    return c && c->changes;
}

const char *clave__admin_name(size_t i)
{
    return i < NCOMMANDS ? commands[i].names[0] : NULL;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The first part of every answer. */
static bool admin_open(struct listing *l)
{
    const struct command *c = l->what;
    clave__json_open(&l->json, NULL, '{');
    if (c && c->run)
        c->run(l->s, &l->json);
    return false;
}

/* The last part of every answer. */
static bool admin_close(struct listing *l)
{
    const struct command *c = l->what;
    struct json *j = &l->json;
    clave__json_string(j, "command", c ? c->names[0] : l->asked);
    clave__json_string(j, "error", c ? c->error : "Unknown command");
    clave__json_close(j, '}');
    if (j->err == CLAVE_OK)
        j->err = clave__buf_append(j->to, "\n", 1);
    return false;
}

clave_err clave__admin_begin(struct listing *l, struct server *s, const char *name)
{
    static listing_part *const none[LISTING_PARTS] = {NULL};
    const struct command *c = command_find(name);
    clave__listing_begin(l, s, c ? c->parts : none);
    clave__listing_enclose(l, admin_open, admin_close);
    l->what = c;
    l->asked = name;
    return c ? CLAVE_OK : CLAVE_EINVAL;
}
