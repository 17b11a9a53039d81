/* grow.c - `clave grow`: prepares moving the data of one server to an ensemble of Apache ZooKeeper.
 * Writes the configuration files, says what the data requires, and lists the steps in an order in
 * which servers without the data can never form a quorum. Changes nothing but its output
 * directory. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log_line.h"
#include "client/hosts.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/cli/shell_command.h"
#include "cmd/data/data_files.h"
#include "server/request/session_tracker.h"
#include "server/store/recovery_plan.h"
#include "server/store/txn_log.h"
#include "server/tree/tree.h"

enum { GROW_OUT = FLAG_LONG, GROW_DATA_DIR, GROW_TICK, MOST_SERVERS = 9, LEAST_SERVERS = 3 };

struct member {
    char host[256]; /* in brackets if it is an IPv6 address */
    int64_t quorum_port;
    int64_t election_port;
    int64_t client_port;
};

struct growing {
    struct options *o;
    const char *dir;
    const char *out;      /* directory for the files */
    const char *data_dir; /* data directory on each of the servers */
    int64_t tick_ms;
    struct member members[MOST_SERVERS];
    size_t n;

    /* What the data requires. */
    struct server_stats st;
    int64_t ttl_nodes;
    int64_t gap; /* a zxid without a record; 0: none */
    size_t sessions;
    int32_t shortest_ms; /* of all sessions; 0: there are no sessions */
    int32_t longest_ms;  /* longest session timeout that exists, or may exist */
    int32_t quiet_ms;    /* wait after a restore; 0: none */
};

/* ---- the servers ----------------------------------------------------------------------------- */

static bool grow_take_port(const char **at, int64_t *port)
{
    char *end;
    if (**at != ':')
        return **at == '\0';
    long v = strtol(*at + 1, &end, 10);
    if (end == *at + 1 || v < 1 || v > 65535)
        return false;
    *port = v;
    *at = end;
    return true;
}

/* Parses HOST[:QUORUM:ELECTION[:CLIENT]]. NULL, or what is wrong with it. */
static const char *grow_parse_member(const char *text, struct member *m)
{
    static const char form[] = "expected HOST[:QUORUM:ELECTION[:CLIENT]]";
    const char *close = text[0] == '[' ? strchr(text, ']') : NULL;
    size_t n = close ? (size_t)(close + 1 - text) : strcspn(text, ":");
    const char *fault = clave__hosts_name_fault(text, n);
    *m = (struct member){.quorum_port = 2888, .election_port = 3888, .client_port = 2181};
    if (strchr(text, ','))
        return "one server per argument, not a list with commas";
    if (fault || n >= sizeof m->host)
        return fault ? fault : form;
    memcpy(m->host, text, n);
    const char *at = text + n;
    if (*at == ':' && !strchr(at + 1, ':'))
        return "give both ports, of the quorum and of elections, or none";
    if (!grow_take_port(&at, &m->quorum_port) || !grow_take_port(&at, &m->election_port) ||
        !grow_take_port(&at, &m->client_port) || *at != '\0')
        return form;
    return m->quorum_port != m->election_port && m->quorum_port != m->client_port &&
                   m->election_port != m->client_port
               ? NULL
               : "its ports must differ";
}

/* Whether two servers have the same host and a port in common. This also finds a server that was
 * named twice, which would be two votes that fail together. */
static bool grow_share_a_port(const struct member *a, const struct member *b)
{
    const int64_t left[] = {a->quorum_port, a->election_port, a->client_port};
    const int64_t right[] = {b->quorum_port, b->election_port, b->client_port};
    if (strcasecmp(a->host, b->host) != 0)
        return false;
    for (size_t i = 0; i < 9; i++)
        if (left[i / 3] == right[i % 3])
            return true;
    return false;
}

static int grow_take_members(struct growing *g, char **specs, size_t n)
{
    if (n < LEAST_SERVERS || n > MOST_SERVERS || n % 2 == 0)
        return diag_usage(g->o, "an ensemble has 3, 5, 7 or 9 servers, not %zu", n);
    for (g->n = 0; g->n < n; g->n++) {
        const char *fault = grow_parse_member(specs[g->n], &g->members[g->n]);
        if (fault)
            return diag_usage(g->o, "'%s' is not a server: %s", specs[g->n], fault);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            if (grow_share_a_port(&g->members[i], &g->members[j]))
                return diag_usage(g->o, "'%s' and '%s' are servers on the same host and port",
                                  specs[j], specs[i]);
    return EXIT_OK;
}

/* ---- the data -------------------------------------------------------------------------------- */

static void grow_look_at_node(void *arg, const struct node_view *n)
{
    struct growing *g = arg;
    g->ttl_nodes += clave__owner_kind(n->stored_owner) == NODE_TTL;
}

static void grow_look_at_session(void *arg, int64_t id, int32_t timeout_ms)
{
    struct growing *g = arg;
    if (id == SESSION_OF_RESTORE) { /* it belongs to no client */
        g->quiet_ms = timeout_ms;
        return;
    }
    g->sessions++;
    g->shortest_ms =
        g->shortest_ms == 0 || timeout_ms < g->shortest_ms ? timeout_ms : g->shortest_ms;
    g->longest_ms = timeout_ms > g->longest_ms ? timeout_ms : g->longest_ms;
}

static bool grow_look_for_gap(struct growing *g, struct data_files *f, int64_t zxid)
{
    char name[FILE_NAME_SIZE];
    struct file_content bytes;
    struct log_walk w;
    struct txn_log_entry e;
    clave__file_name(name, FILE_LOG, zxid);
    if (!data_files_read(f, name, &bytes))
        return false;
    if (clave__txn_log_walk(&w, bytes.p ? bytes.p : "", bytes.n))
        while (clave__txn_log_next_entry(&w, &e) == LOG_STEP_RECORD)
            continue;
    g->gap = g->gap ? g->gap : w.gap;
    clave__file_free(&bytes);
    return true;
}

/* Takes the noted longest session timeout into account: a client that is away may come back with a
 * session as long as the server allowed. */
static int grow_look_at_note(struct growing *g, const struct data_files *f)
{
    char text[600] = "";
    const struct fault fault = {text, sizeof text};
    int32_t noted_ms;
    clave_err err = clave__datadir_longest_session(&f->dir, &noted_ms, &fault);
    if (err != CLAVE_OK)
        return diag_end(g->o, NULL, data_files_exit(err),
                        "%s; 'clave serve' writes it again when it starts or gets SIGHUP", text);
    g->longest_ms = noted_ms > g->longest_ms ? noted_ms : g->longest_ms;
    return EXIT_OK;
}

static int grow_look_at_data(struct growing *g)
{
    struct data_files f;
    char text[600] = "";
    const struct fault fault = {text, sizeof text};
    int code = data_files_open(&f, g->o, g->dir);
    struct server *s = code == EXIT_OK ? data_files_server(&f) : NULL;
    clave_err err = s ? clave__datadir_recover(&f.dir, s, &fault) : CLAVE_ENOMEM;
    if (s && err == CLAVE_OK) {
        clave__server_stats(s, &g->st);
        clave__server_each_node(s, grow_look_at_node, g);
        clave__server_each_session(s, grow_look_at_session, g);
        code = grow_look_at_note(g, &f);
        for (size_t i = 0; i < f.logs.n && code == EXIT_OK; i++)
            code = grow_look_for_gap(g, &f, f.logs.zxid[i]) ? EXIT_OK : EXIT_IO;
    } else if (code == EXIT_OK) {
        code = diag_end(g->o, NULL, EXIT_IO, "%s", text[0] ? text : clave_strerror(err));
    }
    clave__server_free(s);
    data_files_close(&f);
    return code;
}

/* ---- the files ------------------------------------------------------------------------------- */

static void grow_write_config(const struct growing *g, const struct member *own, FILE *f)
{
    fprintf(f, "tickTime=%" PRId64 "\ninitLimit=10\nsyncLimit=5\n", g->tick_ms);
    fprintf(f, "dataDir=%s\nclientPort=%" PRId64 "\n", g->data_dir, own->client_port);
    fputs("admin.enableServer=false\n4lw.commands.whitelist=srvr,ruok,mntr,conf,isro\n", f);
    if (g->longest_ms > 20 * g->tick_ms)
        fprintf(f, "# sessions may be longer than 20 ticks\nmaxSessionTimeout=%d\n",
                (int)g->longest_ms);
    if (g->ttl_nodes > 0)
        fputs("# without this, nodes with a time to live are removed when a server starts\n"
              "extendedTypesEnabled=true\n",
              f);
    for (size_t i = 0; i < g->n; i++)
        fprintf(f, "server.%zu=%s:%" PRId64 ":%" PRId64 "\n", i + 1, g->members[i].host,
                g->members[i].quorum_port, g->members[i].election_port);
}

/* The text of a server's zoo.cfg, which the caller frees. NULL: no memory. */
static char *grow_make_config(const struct growing *g, const struct member *own, size_t *n)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, n);
    if (!f)
        return NULL;
    grow_write_config(g, own, f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* Writes the file completely or not at all: a server started with half of a configuration would
 * have other peers, or none. */
static bool grow_write_file(const struct growing *g, size_t i, const char *name, const char *text,
                            size_t n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%zu", g->out, i + 1);
    int number = text ? clave__make_path(path, 0755) : ENOMEM;
    int dir = number == 0 ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir >= 0)
        number = clave__file_replace(dir, name, 0644, text, n);
    else if (number == 0)
        number = errno;
    if (dir >= 0)
        close(dir);
    if (number != 0)
        diag(g->o, "cannot write %s/%s: %s", path, name, strerror(number));
    return number == 0;
}

static bool grow_write_server(const struct growing *g, size_t i)
{
    char id[24];
    size_t n = 0;
    char *config = grow_make_config(g, &g->members[i], &n);
    bool fine = grow_write_file(g, i, "zoo.cfg", config, n);
    free(config);
    n = (size_t)snprintf(id, sizeof id, "%zu\n", i + 1);
    return fine && grow_write_file(g, i, "myid", id, n);
}

static int grow_write_all(const struct growing *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (!grow_write_server(g, i))
            return EXIT_IO;
    return EXIT_OK;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void grow_say_data(const struct growing *g)
{
    char text[DURATION_CAP];
    printf("%s is whole: zxid 0x%" PRIx64 ", digest %" PRIu64 ", %zu node%s, %zu session%s\n",
           g->dir, (uint64_t)g->st.last_zxid, g->st.digest, g->st.nodes, clave__plural(g->st.nodes),
           g->sessions, clave__plural(g->sessions));
    if (g->shortest_ms > 0)
        printf("The shortest session timeout is %s: locks stay held if the first two servers\n"
               "serve within that time after clave is stopped.\n",
               clave__duration_format(g->shortest_ms, text));
    if (g->quiet_ms > 0)
        printf("It was restored from a backup, and earlier holders may still believe that they "
               "hold:\n"
               "start no server of the ensemble until %s after the old server, the one that was\n"
               "backed up, has stopped. ZooKeeper does not wait by itself, as clave does.\n",
               clave__duration_format(g->quiet_ms, text));
    if (g->ttl_nodes > 0)
        printf("%" PRId64 " node%s %s a time to live: extendedTypesEnabled is set.\n", g->ttl_nodes,
               clave__plural((uint64_t)g->ttl_nodes), g->ttl_nodes == 1 ? "has" : "have");
    if (g->gap != 0)
        printf("The log has no record of zxid 0x%" PRIx64
               ": ZooKeeper 3.9.4 and later do not start\n"
               "on it. Use an older version, or wait until clave has removed this log.\n",
               (uint64_t)g->gap);
}

/* If every server has the data, every quorum has it, whichever servers start first. */
static void grow_say_steps(const struct growing *g)
{
    printf("\nThe files for %zu servers are in %s. Next:\n", g->n, g->out);
    printf("1. Copy N/zoo.cfg to where server N looks for it, and N/myid into %s.\n", g->data_dir);
    printf("2. Give the clients all addresses:");
    for (size_t i = 0; i < g->n; i++)
        printf("%s%s:%" PRId64, i > 0 ? "," : " ", g->members[i].host, g->members[i].client_port);
    char dir[HINT_CAP];
    printf("\n3. Stop clave serve. This must print ok: clave data check %s\n",
           hint_word(g->dir, dir));
    printf("4. Copy %s/version-2 into %s of EVERY server, before any is started:\n", g->dir,
           g->data_dir);
    printf("   two servers without it would form a quorum and start empty.\n");
    printf("5. Start server 1, which certainly has the data, then the others. Once 'srvr' of one\n"
           "   says 'Mode: leader', the sessions continue, and so do the locks.\n"
           "To go back: stop all servers, and start clave serve on the data of the last leader.\n");
}

static void grow_put_connect(const struct growing *g, struct json *j)
{
    char text[MOST_SERVERS * (sizeof g->members[0].host + 8)];
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s:%" PRId64, i > 0 ? "," : "",
                              g->members[i].host, g->members[i].client_port);
    clave__json_bytes(j, "connect", text, n);
}

static void grow_show_json(const struct growing *g)
{
    struct json j;
    json_begin(&j, stdout);
    json_hex(&j, "zxid", g->st.last_zxid);
    data_files_json_digest(&j, g->st.digest);
    clave__json_int(&j, "nodes", (int64_t)g->st.nodes);
    clave__json_int(&j, "sessions", (int64_t)g->sessions);
    clave__json_int(&j, "shortest_session_ms", g->shortest_ms);
    clave__json_int(&j, "restore_quiet_ms", g->quiet_ms);
    clave__json_int(&j, "ttl_nodes", g->ttl_nodes);
    if (g->gap != 0)
        json_hex(&j, "gap_zxid", g->gap);
    else
        clave__json_string(&j, "gap_zxid", NULL);
    clave__json_string(&j, "out", g->out);
    clave__json_string(&j, "data_dir", g->data_dir);
    grow_put_connect(g, &j);
    json_end(&j);
}

static int run_grow(struct options *o, int argc, char **argv)
{
    struct growing g = {
        .o = o, .out = "ensemble", .data_dir = "/var/lib/zookeeper", .tick_ms = 2000};
    int id;
    while ((id = options_next(o, argc, argv)) > 0) {
        if (id == GROW_OUT)
            g.out = o->value;
        if (id == GROW_DATA_DIR)
            g.data_dir = o->value;
        if (id == GROW_TICK && !options_duration(o, "tick", 1, 60000, &g.tick_ms))
            return EXIT_USAGE;
    }
    if (id == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 2, -1))
        return EXIT_USAGE;
    g.dir = o->argv[0];
    int code = grow_take_members(&g, o->argv + 1, (size_t)o->argc - 1);
    if (code == EXIT_OK)
        code = grow_look_at_data(&g);
    if (code == EXIT_OK)
        code = grow_write_all(&g);
    if (code != EXIT_OK)
        return code;
    if (o->json) {
        grow_show_json(&g);
    } else {
        grow_say_data(&g);
        grow_say_steps(&g);
    }
    return finish_stdout(o);
}

static const struct flag flags[] = {
    {GROW_OUT, "out", "DIR", "the directory to write to [ensemble]"},
    {GROW_DATA_DIR, "data-dir", "DIR", "dataDir of the servers [/var/lib/zookeeper]"},
    {GROW_TICK, "tick", "DURATION", "the unit of session timeouts [2s]"},
    {0, NULL, NULL, NULL},
};

const struct verb verb_grow = {
    .name = "grow",
    .args = "DIR HOST[:QUORUM:ELECTION[:CLIENT]]...",
    .summary = "Prepare the move from one server to an Apache ZooKeeper ensemble",
    .text = "Reads the data directory without changing it; writes zoo.cfg and myid for each\n"
            "server; and prints the steps in an order in which nothing can be lost.\n",
    .flags = flags,
    .max_args = -1,
    .offline = true,
    .run = run_grow,
};
