/* serve.c - `clave serve`: settings from flags and file, then runtime/server/server_run.h runs.
 * SIGHUP applies all of a changed file or nothing; the ready line is printed once the server
 * listens. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/log_line.h"
#include "cmd/cli/config.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/serve/serve_gate.h"
#include "cmd/serve/settings_load.h"
#include "cmd/service/sd_notify.h"
#include "runtime/client/local_serve.h"
#include "runtime/server/server_run.h"

enum {
    SERVE_DATA = CONFIGURED_SETTING,
    SERVE_LOCAL,
    SERVE_ADMIN,
    SERVE_ADMIN_URL,
    SERVE_METRICS,
    SERVE_AUDIT,
    SERVE_HTTP,
    SERVE_HTTP_TOKENS,
    SERVE_HTTP_HOST,
    SERVE_HTTP_PUBLIC,
    SERVE_HTTP_PREFIX,
    SERVE_HTTP_PROXY,
    SERVE_FLEETLOCK,
    SERVE_FLEETLOCK_FROM,
    SERVE_HTTP_KEY,
    SERVE_HTTP_AUDIT,
    SERVE_HTTP_METRIC_PATHS,
    SERVE_HTTP_CONNECTIONS,
    SERVE_HTTP_WAITING,
    SERVE_HTTP_SENDER_SESSIONS,
    SERVE_HTTP_BODY,
    SERVE_HTTP_TLS_CERT,
    SERVE_HTTP_TLS_KEY,
    SERVE_HTTP_TLS_CA,
    SERVE_HTTP_TLS_CLIENTS,
    SERVE_TICK,
    SERVE_IDLE_EXIT,
    SERVE_MIN_SESSION,
    SERVE_MAX_SESSION,
    SERVE_MAX_CONNECTIONS,
    SERVE_ALL_CONNECTIONS,
    SERVE_MAX_SESSIONLESS,
    SERVE_SESSIONLESS,
    SERVE_OUTSTANDING,
    SERVE_UNDELIVERED,
    SERVE_MAX_WATCHES,
    SERVE_CONNECTION_WATCHES,
    SERVE_MAX_SESSIONS,
    SERVE_MAX_DISCONNECTED,
    SERVE_MAX_ANSWER,
    SERVE_MAX_NAME,
    SERVE_MAX_PATH,
    SERVE_MAX_DEPTH,
    SERVE_MAX_REQUEST,
    SERVE_SNAP_COUNT,
    SERVE_CONTAINER_CHECK,
    SERVE_CONTAINER_RATE,
    SERVE_CONTAINER_UNUSED,
    SERVE_EXTENDED_TYPES,
    SERVE_ENFORCE_QUOTA,
    SERVE_SUPER_DIGEST,
    SERVE_SUPER_UID,
    SERVE_REQUIRE_AUTH,
    SERVE_WORDS,
    SERVE_TLS_CA,
    SERVE_TLS_CERT,
    SERVE_TLS_KEY,
    SERVE_TLS_CLIENTS,
    SERVE_X509_SUPER,
    SERVE_SLOW_MS,
    SERVE_LOG_FORMAT,
    SERVE_LOG_TIME,
    SERVE_LOG_LEVEL,
};

struct serve {
    struct configured c;
    struct sd_notify manager;
    struct server_run *run;
    struct serve_gate *gate; /* NULL: no --http */
};

static const struct flag flags[] = {
    {CONFIGURED_FILE, "config", "FILE", "these flags as 'key = value' lines, or Apache's zoo.cfg"},
    {CONFIGURED_CHECK, "check-config", NULL, "check file and flags, then end without serving"},
    {SERVE_DATA, "data", "DIR", "the data directory, created if missing"},
    {'l', "listen", "ADDR", "[tls:]host[:port] or unix:/path; repeatable [127.0.0.1:2181]"},
    {SERVE_ADMIN, "admin", "ADDR", "HTTP with Apache's admin commands and metrics: host:port"},
    {SERVE_ADMIN_URL, "admin-url", "PATH", "the URL path of the commands [/commands]"},
    {SERVE_METRICS, "metrics", "ADDR", "HTTP with only the metrics, for Prometheus"},
    {SERVE_AUDIT, "audit", "FILE", "an audit log in ZooKeeper's format; -: standard output"},
    {SERVE_HTTP, "http", "ADDR", "HTTP: locks and znodes: [proxy:][tls:]host:port or unix:/path"},
    {SERVE_HTTP_TOKENS, "http-tokens", "FILE",
     "who may do what there: lines 'TOKEN ROLE [PREFIX...]'"},
    {SERVE_HTTP_HOST, "http-host", "NAMES", "its further names, with commas between them"},
    {SERVE_HTTP_PUBLIC, "http-public", "URL", "how clients behind a proxy see it: https://host/x"},
    {SERVE_HTTP_PREFIX, "http-prefix", "PATH", "what may stand before its paths [of http-public]"},
    {SERVE_HTTP_PROXY, "http-proxy", "ADDRS", "proxies whose X-Forwarded-For counts there"},
    {SERVE_FLEETLOCK, "fleetlock", "PATH", "machines reboot by slots below it (FleetLock)"},
    {SERVE_FLEETLOCK_FROM, "fleetlock-from", "ADDRS",
     "machines that need no token for that: 10.0.0.0/8"},
    {SERVE_HTTP_KEY, "http-key", "FILE",
     "the key that seals secrets of sessions [drawn at the start]"},
    {SERVE_HTTP_AUDIT, "http-audit", "FILE", "an audit log of what is changed there"},
    {SERVE_HTTP_METRIC_PATHS, "http-metric-paths", "PATHS",
     "locks below these are labels of its metrics"},
    {SERVE_HTTP_CONNECTIONS, "http-max-connections", "N", "its connections at a time [20000]"},
    {SERVE_HTTP_WAITING, "http-max-waiting", "N",
     "requests that wait at a time [3/4 of connections]"},
    {SERVE_HTTP_SENDER_SESSIONS, "http-max-sender-sessions", "N",
     "its sessions of one sender at a time [4/5 of all]"},
    {SERVE_HTTP_BODY, "http-max-body", "BYTES", "bytes of the body of a request [2097152]"},
    {SERVE_HTTP_TLS_CERT, "http-tls-cert", "FILE",
     "its certificate for tls:, with its chain (PEM)"},
    {SERVE_HTTP_TLS_KEY, "http-tls-key", "FILE", "the key of that [in the same file]"},
    {SERVE_HTTP_TLS_CA, "http-tls-ca", "FILE", "the authorities of its clients' certificates"},
    {SERVE_HTTP_TLS_CLIENTS, "http-tls-clients", "HOW",
     "their certificates: need, want, none [want with a CA]"},
    {SERVE_TICK, "tick", "DURATION", "the unit of session timeouts [2s]"},
    {SERVE_MIN_SESSION, "min-session-timeout", "DURATION", "shortest session timeout [2 ticks]"},
    {SERVE_MAX_SESSION, "max-session-timeout", "DURATION", "longest session timeout [20 ticks]"},
    {SERVE_MAX_CONNECTIONS, "max-connections", "N",
     "connections from one address; 0: no limit [60]"},
    {SERVE_SNAP_COUNT, "snap-count", "N",
     "transactions between two snapshots [100000, or the tree size]"},
    {SERVE_ALL_CONNECTIONS, "max-all-connections", "N", "connections in total; 0: no limit [0]"},
    {SERVE_MAX_SESSIONLESS, "max-sessionless", "N",
     "of one address without a session; 0: no limit [0]"},
    {SERVE_SESSIONLESS, "sessionless-timeout", "DURATION",
     "time for a connection to get a session [10s]"},
    {SERVE_OUTSTANDING, "max-outstanding", "N", "writes waiting for the disk [100000]"},
    {SERVE_UNDELIVERED, "max-undelivered", "BYTES",
     "bytes of answers not read by clients [256 MiB]"},
    {SERVE_MAX_REQUEST, "max-request", "BYTES", "bytes of one request: jute.maxbuffer [1048575]"},
    {SERVE_MAX_WATCHES, "max-watches", "N", "watches of all connections [10000000]"},
    {SERVE_CONNECTION_WATCHES, "max-connection-watches", "N",
     "watches of one connection [1000000]"},
    {SERVE_MAX_SESSIONS, "max-sessions", "N", "sessions [1000000]"},
    {SERVE_MAX_DISCONNECTED, "max-disconnected", "N",
     "sessions of one address without a connection [10000]"},
    {SERVE_MAX_ANSWER, "max-answer", "BYTES", "bytes of the answer to a read [64 MiB]"},
    {SERVE_MAX_NAME, "max-name", "BYTES", "bytes of a new node's name [8192]"},
    {SERVE_MAX_PATH, "max-path", "BYTES", "bytes of its path [16384]"},
    {SERVE_MAX_DEPTH, "max-depth", "N", "nodes in its path [256]"},
    {SERVE_CONTAINER_CHECK, "container-check", "DURATION",
     "pause between checks of containers and TTL nodes [1m]"},
    {SERVE_CONTAINER_RATE, "container-rate", "N", "how many of them are removed a minute [10000]"},
    {SERVE_CONTAINER_UNUSED, "container-unused", "DURATION",
     "remove also containers never used for this long; 0: keep [0]"},
    {SERVE_EXTENDED_TYPES, "extended-types", NULL, "allow nodes with a time to live"},
    {SERVE_ENFORCE_QUOTA, "enforce-quota", NULL, "refuse writes beyond a hard limit"},
    {SERVE_SUPER_DIGEST, "super-digest", "USER:HASH", "the user that passes every access check"},
    {SERVE_SUPER_UID, "super-uid", "UID",
     "the user that passes every access check over a Unix socket"},
    {SERVE_REQUIRE_AUTH, "require-auth", "SCHEMES",
     "serve only clients that authenticate: digest, uid, x509"},
    {SERVE_WORDS, "words", "LIST", "the four-letter words to answer; *: all"},
    {SERVE_TLS_CERT, "tls-cert", "FILE", "the server's certificate, with its chain (PEM)"},
    {SERVE_TLS_KEY, "tls-key", "FILE", "its key [in the same file]"},
    {SERVE_TLS_CA, "tls-ca", "FILE", "the authorities of clients' certificates (PEM)"},
    {SERVE_TLS_CLIENTS, "tls-clients", "HOW", "client certificates: need, want or none [need]"},
    {SERVE_X509_SUPER, "x509-super", "DN",
     "the certificate subject that passes every access check"},
    {SERVE_IDLE_EXIT, "idle-exit", "DURATION", "end after this long without a connection"},
    {SERVE_SLOW_MS, "slow-ms", "N", "log requests that take N milliseconds or more; 0: none [0]"},
    {SERVE_LOG_FORMAT, "log-format", "FORMAT", "format of the log: text or json [text]"},
    {SERVE_LOG_TIME, "log-time", "WHEN", "the time in lines of text: auto, yes or no [auto]"},
    {SERVE_LOG_LEVEL, "log-level", "LEVEL", "error, warn, info or debug [warn]"},
    {SERVE_LOCAL, "local", "DIR", "serve this user on this machine, for 'local:'"},
    {0, NULL, NULL, NULL},
};

/* ---- SIGHUP --------------------------------------------------------------------------------- */

static clave_err serve_apply(void *arg, const struct serve_settings *wanted, const struct fault *f)
{
    struct serve *v = arg;
    struct gate_access *access = NULL;
    clave_err err = v->gate ? serve_gate_load(&access, wanted, f) : CLAVE_OK;
    if (err == CLAVE_OK)
        err = clave__server_run_change(v->run, &wanted->run);
    if (err == CLAVE_OK && v->gate)
        serve_gate_change(v->gate, access, wanted);
    else
        gate_access_free(access);
    return err;
}

static void serve_on_hangup(void *arg, bool tls_renewed)
{
    struct serve *v = arg;
    const struct server_run_options *run = &v->c.settings.run;
    const struct log log = configured_log(&v->c);
    if (!v->c.config && !v->gate && !run->tls && !run->audit) {
        clave__log(&log, CLAVE_LOG_WARN,
                   "SIGHUP: no configuration file, no TLS and no audit log, nothing to reload");
        return;
    }
    if (tls_renewed)
        configured_read_again(&v->c, "TLS files");
    if (v->gate && serve_gate_reopen(v->gate))
        configured_read_again(&v->c, "TLS files of HTTP");
    configured_reload(&v->c, serve_apply, v);
}

/* ---- the server ----------------------------------------------------------------------------- */

static void serve_put_ready(const struct serve *v)
{
    struct server_stats st;
    struct json j;
    const char *address, *data = v->c.settings.run.data_dir;
    const char *admin = clave__server_run_admin(v->run);
    const char *metrics = clave__server_run_metrics(v->run);
    clave__server_run_stats(v->run, &st);
    if (v->c.o->json) {
        json_begin(&j, stdout);
        clave__json_open(&j, "listen", '[');
        for (size_t i = 0; (address = clave__server_run_address(v->run, i)); i++)
            clave__json_string(&j, NULL, address);
        clave__json_close(&j, ']');
        if (admin)
            clave__json_string(&j, "admin", admin);
        if (metrics)
            clave__json_string(&j, "metrics", metrics);
        if (v->gate)
            clave__json_open(&j, "http", '[');
        for (size_t i = 0; v->gate && (address = serve_gate_address(v->gate, i)); i++)
            clave__json_string(&j, NULL, address);
        if (v->gate)
            clave__json_close(&j, ']');
        clave__json_string(&j, "data", data);
        json_hex(&j, "zxid", st.last_zxid);
        clave__json_int(&j, "sessions", (int64_t)st.sessions);
        json_end(&j);
        return;
    }
    fputs("clave: serving on ", stdout);
    for (size_t i = 0; (address = clave__server_run_address(v->run, i)); i++)
        printf("%s%s", i > 0 ? " " : "", address);
    printf(", data %s, zxid 0x%llx, %zu session%s", data, (unsigned long long)st.last_zxid,
           st.sessions, clave__plural(st.sessions));
    if (admin)
        printf(", admin %s", admin);
    if (metrics)
        printf(", metrics %s", metrics);
    for (size_t i = 0; v->gate && (address = serve_gate_address(v->gate, i)); i++)
        printf("%s%s", i > 0 ? " " : ", http ", address);
    fputs("\n", stdout);
}

static void serve_show_ready(const struct serve *v)
{
    serve_put_ready(v);
    configured_end_ready(&v->c);
}

/* The loop feeds the watchdog as it turns. */
static void serve_notify(void *arg, bool stopping)
{
    struct serve *v = arg;
    if (stopping)
        sd_notify_stopping(&v->manager);
    else
        sd_notify_watchdog(&v->manager);
}

static void serve_tell_ready(struct serve *v)
{
    sd_notify_ready(&v->manager);
    sd_notify_send(&v->manager, "STATUS=serving on %s, data %s",
                   clave__server_run_address(v->run, 0), v->c.settings.run.data_dir);
}

/* ---- only checking --------------------------------------------------------------------------- */

static void serve_show_checked(const struct serve *v)
{
    const struct server_run_options *run = &v->c.settings.run;
    const char *const names[] = {"data", "admin", "metrics"};
    const char *const values[] = {run->data_dir, run->admin, run->metrics};
    struct json j;
    if (!v->c.o->json) {
        fputs("clave: the configuration is valid: listen", stdout);
        for (size_t i = 0; i < run->nlisten; i++)
            printf(" %s", run->listen[i]);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (values[i])
                printf(", %s %s", names[i], values[i]);
        fputs("\n", stdout);
        return;
    }
    json_begin(&j, stdout);
    clave__json_open(&j, "listen", '[');
    for (size_t i = 0; i < run->nlisten; i++)
        clave__json_string(&j, NULL, run->listen[i]);
    clave__json_close(&j, ']');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (values[i])
            clave__json_string(&j, names[i], values[i]);
    json_end(&j);
}

/* What a start would say and return, as far as that can be known beside a running server. `code`
 * is that of the settings themselves. */
static int serve_check(const struct serve *v, int code)
{
    char fault[FAULTS_CAP] = "", more[FAULTS_CAP] = "";
    if (v->c.settings.local)
        return diag_usage(v->c.o, "--check-config and --local exclude each other");
    const struct fault f = {more, sizeof more};
    clave_err err = clave__server_run_check(&v->c.settings.run, fault, sizeof fault);
    if (err != CLAVE_OK)
        code = configured_worse(code, configured_fail(&v->c, err, fault));
    err = v->c.settings.gate.nhttp > 0 ? serve_gate_check(&v->c.settings, &f) : CLAVE_OK;
    if (err != CLAVE_OK)
        code = configured_worse(code, configured_fail(&v->c, err, more));
    if (code == EXIT_OK)
        serve_show_checked(v);
    return code;
}

/* ---- serving --------------------------------------------------------------------------------- */

/* The two threads of the loop never allocate at once: an arena of its own for each would only keep
 * more memory. By default glibc gives memory back whenever two of the largest blocks so far are
 * free at the heap's end, all of it at once: some 0.1 ms a MiB, during which nobody is served, to
 * be asked for again soon. */
static void serve_set_heap(bool has_gate)
{
#ifdef M_ARENA_MAX
    enum { LARGE = 1 << 20, KEPT = 32 << 20 };
    mallopt(M_ARENA_MAX, has_gate ? 2 : 1); /* the gate's thread allocates at any time */
    mallopt(M_MMAP_THRESHOLD, LARGE);       /* such a block goes back by itself */
    mallopt(M_TRIM_THRESHOLD, KEPT);
#else
    (void)has_gate;
#endif
}

static clave_err serve_start_gate(struct serve *v, char *fault, size_t cap)
{
    const struct fault f = {fault, cap};
    const struct log log = configured_log(&v->c);
    const char *connect = clave__server_run_address(v->run, 0);
    clave_err err = serve_gate_new(&v->gate, &v->c.settings, connect, &log, &f);
    if (err == CLAVE_OK)
        err = serve_gate_run(v->gate);
    if (err == CLAVE_OK)
        serve_show_ready(v);
    return err;
}

static void serve_on_gone(void *arg, int64_t czxid, enum server_gone how)
{
    const struct serve *v = arg;
    serve_gate_node_gone(v->gate, czxid, how);
}

static void serve_on_measured(void *arg, const struct server_health *health)
{
    const struct serve *v = arg;
    serve_gate_server_health(v->gate, health);
}

static int serve(struct serve *v)
{
    struct server_run_options *run = &v->c.settings.run;
    bool has_gate = v->c.settings.gate.nhttp > 0;
    char fault[1024] = "";
    const struct fault f = {fault, sizeof fault};
    sd_notify_open(&v->manager);
    run->notify = serve_notify;
    run->notify_arg = v;
    run->notify_ms = v->manager.watchdog_ms / 4;
    run->hangup = serve_on_hangup;
    run->hangup_arg = v;
    clave_err err = has_gate ? serve_gate_name(&v->c.settings, &f) : CLAVE_OK;
    if (has_gate) {
        run->engine.node_gone = serve_on_gone;
        run->engine.node_gone_arg = v;
        run->measured = serve_on_measured;
        run->measured_arg = v;
    }
    if (err == CLAVE_OK)
        err = clave__server_run_new(&v->run, run, fault, sizeof fault);
    if (err == CLAVE_OK && has_gate)
        err = serve_start_gate(v, fault, sizeof fault);
    else if (err == CLAVE_OK)
        serve_show_ready(v);
    if (err == CLAVE_OK) {
        serve_tell_ready(v);
        serve_log_begin_queue(&v->c.log);
        err = clave__server_run_loop(v->run, fault, sizeof fault);
        serve_log_end_queue(&v->c.log);
    }
    serve_gate_free(v->gate);
    clave__server_run_free(v->run);
    sd_notify_close(&v->manager);
    return err == CLAVE_OK ? EXIT_OK : configured_fail(&v->c, err, fault);
}

/* A server that the configuration forbids is not started for programs with an older library either,
 * which do not read it. */
static bool serve_is_ruled_out(const struct serve *v, char *fault, size_t cap)
{
    clave__client_settings_find_never(&v->c.o->client);
    if (v->c.o->client.local != CLIENT_LOCAL_NEVER)
        return false;
    snprintf(fault, cap, "%s: a local server must not be used (CLAVE_CONNECT names another)",
             v->c.o->client.local_from);
    clave__local_refuse(fault);
    return true;
}

static int serve_local(struct serve *v)
{
    char fault[1024] = "";
    if (serve_is_ruled_out(v, fault, sizeof fault))
        return configured_fail(&v->c, CLAVE_EINVAL, fault);
    serve_log_begin_queue(&v->c.log);
    clave_err err =
        clave__local_serve(v->c.settings.local, &v->c.settings.run, fault, sizeof fault);
    serve_log_end_queue(&v->c.log);
    return err == CLAVE_OK ? EXIT_OK : configured_fail(&v->c, err, fault);
}

static int run_serve(struct options *o, int argc, char **argv)
{
    struct serve v = {.c = {.o = o}};
    if (configured_take_flags(&v.c, argc, argv) == OPTIONS_STOP)
        return o->status;
    int code = configured_read(&v.c);
    clave__open_files_raise_limit();
    serve_set_heap(v.c.settings.gate.nhttp > 0);
    if (v.c.check)
        code = serve_check(&v, code);
    else if (code == EXIT_OK)
        code = v.c.settings.local ? serve_local(&v) : serve(&v);
    configured_fini(&v.c);
    return code;
}

const struct verb verb_serve = {
    .name = "serve",
    .args = "--data DIR",
    .summary = "Serve the ZooKeeper protocol, durably, from one data directory",
    .text =
        "Prints one line when it is ready. SIGTERM and SIGINT end it; sessions and locks remain\n"
        "and continue when it starts again, or when Apache ZooKeeper is started on its data.\n"
        "A Unix socket is for this user; 'unix:/path?mode=0660&group=NAME' is for a group too.\n"
        "An address without a host, such as :8080, is every address of this machine.\n",
    .flags = flags,
    .max_args = -1,
    .offline = true,
    .run = run_serve,
};
