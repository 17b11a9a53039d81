/* serve.c - `clave serve`: settings from flags and file, then runtime/server/uv_server.h runs.
 * SIGHUP applies all of a changed file or nothing; the ready line is printed once the server
 * listens. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cmd/cli/cmd_options.h"
#include "cmd/cli/config.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/run/sd_notify.h"
#include "cmd/serve/serve_config.h"
#include "runtime/client/local_serve.h"
#include "runtime/server/uv_server.h"

enum {
    SERVE_CONFIG = FLAG_LONG,
    SERVE_CHECK,
    SERVE_DATA, /* from here on each flag is the setting of the same name */
    SERVE_LOCAL,
    SERVE_ADMIN,
    SERVE_ADMIN_URL,
    SERVE_METRICS,
    SERVE_AUDIT,
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
    SERVE_LOG_LEVEL,
};

/* A flag as given. */
struct given {
    const char *name;
    const char *value;
};

struct serve {
    struct options *o;
    struct given given[SETTINGS_MAX_FLAGS];
    size_t ngiven;
    const char *config; /* NULL: none */
    bool check;         /* only the configuration, without serving */
    struct serve_log log;
    struct serve_settings settings;  /* that the server was started with */
    struct serve_settings *reloaded; /* since the last SIGHUP; NULL: those */
    struct sd_notify manager;
    struct server_run *run;
};

static const struct flag flags[] = {
    {SERVE_CONFIG, "config", "FILE", "these flags as 'key = value' lines, or Apache's zoo.cfg"},
    {SERVE_CHECK, "check-config", NULL, "check file and flags, then end without serving"},
    {SERVE_DATA, "data", "DIR", "the data directory, created if missing"},
    {'l', "listen", "ADDR", "[tls:]host[:port] or unix:/path; repeatable [127.0.0.1:2181]"},
    {SERVE_ADMIN, "admin", "ADDR", "HTTP with Apache's admin commands and metrics: host:port"},
    {SERVE_ADMIN_URL, "admin-url", "PATH", "the URL path of the commands [/commands]"},
    {SERVE_METRICS, "metrics", "ADDR", "HTTP with only the metrics, for Prometheus"},
    {SERVE_AUDIT, "audit", "FILE", "an audit log in ZooKeeper's format; -: standard output"},
    {SERVE_TICK, "tick", "DURATION", "the unit of session timeouts [2s]"},
    {SERVE_MIN_SESSION, "min-session-timeout", "DURATION", "shortest session timeout [2 ticks]"},
    {SERVE_MAX_SESSION, "max-session-timeout", "DURATION", "longest session timeout [20 ticks]"},
    {SERVE_MAX_CONNECTIONS, "max-connections", "N",
     "connections from one address; 0: no limit [60]"},
    {SERVE_SNAP_COUNT, "snap-count", "N",
     "transactions between two snapshots [100000, or the znodes]"},
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
    {SERVE_LOG_LEVEL, "log-level", "LEVEL", "error, warn, info or debug [warn]"},
    {SERVE_LOCAL, "local", "DIR", "serve this user on this machine, for 'local:'"},
    {0, NULL, NULL, NULL},
};

/* ---- settings: the file, and over it the flags ---------------------------------------------- */

static const char *name_of(int id)
{
    const struct flag *f = flags;
    while (f->id != id)
        f++;
    return f->name;
}

/* false after a message. */
static bool serve_take_flag(struct options *o, struct serve *v, struct serve_settings *scratch,
                            int id)
{
    char why[400] = "";
    const struct fault f = {why, sizeof why};
    if (id == SERVE_CONFIG) {
        v->config = o->value;
        return true;
    }
    if (id == SERVE_CHECK) {
        v->check = true;
        return true;
    }
    struct given g = {name_of(id), o->value ? o->value : "true"};
    if (v->ngiven == SETTINGS_MAX_FLAGS) {
        diag_usage(o, "at most %d flags", SETTINGS_MAX_FLAGS);
        return false;
    }
    if (settings_set(scratch, g.name, g.value, &f) != CLAVE_OK) {
        diag_usage(o, "--%s '%s': %s", g.name, g.value, why[0] ? why : "out of memory");
        return false;
    }
    v->given[v->ngiven++] = g;
    return true;
}

/* Flags take precedence over the file, and given addresses replace all of the file's. EINVAL,
 * ENOMEM: with a fault, or reported in the log. */
static clave_err build(const struct serve *v, struct serve_settings *out, const struct fault *f)
{
    const struct log log = {serve_log_line, (void *)(uintptr_t)&v->log};
    clave_err err = CLAVE_OK;
    bool listens = false;
    settings_init(out);
    if (v->config)
        err = serve_config_load(out, v->config, &log);
    for (size_t i = 0; i < v->ngiven && err == CLAVE_OK; i++) {
        bool listen = strcmp(v->given[i].name, "listen") == 0;
        if (listen && !listens)
            out->run.nlisten = 0;
        listens = listens || listen;
        err = settings_set(out, v->given[i].name, v->given[i].value, f);
    }
    return err == CLAVE_OK ? settings_check(out, f) : err;
}

static void set_log(struct serve *v, const struct serve_settings *settings)
{
    v->log.format = settings->log_format;
    v->log.level = settings->log_level > 0 ? settings->log_level : CLAVE_LOG_WARN;
    if (v->check && v->log.level < CLAVE_LOG_WARN)
        v->log.level = CLAVE_LOG_WARN; /* what would be ignored is what the check is for */
    v->log.level += v->o->verbose;
}

/* The previous ones are freed. */
static void keep_reloaded(struct serve *v, struct serve_settings *wanted)
{
    if (v->reloaded)
        settings_fini(v->reloaded);
    free(v->reloaded);
    v->reloaded = wanted;
}

static void tell_reloaded(const struct serve *v, const struct serve_settings *wanted)
{
    const struct log log = {serve_log_line, (void *)(uintptr_t)&v->log};
    char changes[400];
    settings_tell_fixed(&v->settings, wanted, &log);
    settings_tell_useless(wanted, &log);
    settings_list_changes(v->reloaded ? v->reloaded : &v->settings, wanted, changes,
                          sizeof changes);
    clave__log(&log, CLAVE_LOG_INFO, "%s reloaded: %s", v->config,
               *changes ? changes : "no setting has changed");
}

/* SIGHUP: applies all of the file or nothing. */
static void serve_on_hangup(void *arg)
{
    struct serve *v = arg;
    const struct log log = {serve_log_line, &v->log};
    struct serve_settings *wanted = malloc(sizeof *wanted);
    char why[400] = "";
    const struct fault f = {why, sizeof why};
    clave_err err = wanted ? build(v, wanted, &f) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        err = clave__server_run_change(v->run, &wanted->run);
    if (err == CLAVE_OK) {
        set_log(v, wanted);
        tell_reloaded(v, wanted);
        keep_reloaded(v, wanted);
        return;
    }
    if (why[0])
        clave__log(&log, CLAVE_LOG_ERROR, "%s: %s", v->config, why);
    clave__log(&log, CLAVE_LOG_ERROR, "%s: not reloaded, nothing is changed", v->config);
    if (wanted)
        settings_fini(wanted);
    free(wanted);
}

/* ---- the server ----------------------------------------------------------------------------- */

static void show_ready(const struct serve *v)
{
    struct server_stats st;
    struct json j;
    const char *address, *data = v->settings.run.data_dir;
    const char *admin = clave__server_run_admin(v->run);
    const char *metrics = clave__server_run_metrics(v->run);
    clave__server_run_stats(v->run, &st);
    if (v->o->json) {
        json_begin(&j, stdout);
        clave__json_open(&j, "listen", '[');
        for (size_t i = 0; (address = clave__server_run_address(v->run, i)); i++)
            clave__json_string(&j, NULL, address);
        clave__json_close(&j, ']');
        if (admin)
            clave__json_string(&j, "admin", admin);
        if (metrics)
            clave__json_string(&j, "metrics", metrics);
        clave__json_string(&j, "data", data);
        json_hex(&j, "zxid", st.last_zxid);
        clave__json_int(&j, "sessions", (int64_t)st.sessions);
        json_end(&j);
        return;
    }
    fputs("clave: serving on ", stdout);
    for (size_t i = 0; (address = clave__server_run_address(v->run, i)); i++)
        printf("%s%s", i > 0 ? " " : "", address);
    printf(", data %s, zxid 0x%llx, %zu sessions", data, (unsigned long long)st.last_zxid,
           st.sessions);
    if (admin)
        printf(", admin %s", admin);
    if (metrics)
        printf(", metrics %s", metrics);
    fputs("\n", stdout);
    fflush(stdout); /* the process that started the server may be waiting for this line */
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

static void tell_ready(struct serve *v)
{
    sd_notify_ready(&v->manager);
    sd_notify_send(&v->manager, "STATUS=serving on %s, data %s",
                   clave__server_run_address(v->run, 0), v->settings.run.data_dir);
}

static int serve_fail(const struct serve *v, clave_err err, const char *fault)
{
    const struct log log = {serve_log_line, (void *)(uintptr_t)&v->log};
    clave__log(&log, CLAVE_LOG_ERROR, "%s", *fault ? fault : clave_strerror(err));
    return err == CLAVE_EINVAL ? EXIT_USAGE : exit_code_of(err);
}

/* ---- only checking --------------------------------------------------------------------------- */

static void show_checked(const struct serve *v)
{
    const struct server_run_options *run = &v->settings.run;
    const char *const names[] = {"data", "admin", "metrics"};
    const char *const values[] = {run->data_dir, run->admin, run->metrics};
    struct json j;
    if (!v->o->json) {
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

/* What a start would say and return, as far as that can be known beside a running server. */
static int serve_check(const struct serve *v)
{
    char fault[1024] = "";
    if (v->settings.local)
        return diag_usage(v->o, "--check-config and --local exclude each other");
    clave_err err = clave__server_run_check(&v->settings.run, fault, sizeof fault);
    if (err != CLAVE_OK)
        return serve_fail(v, err, fault);
    show_checked(v);
    return EXIT_OK;
}

/* ---- serving --------------------------------------------------------------------------------- */

/* A connection is an open file, and the soft limit exists for programs that use select(). */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* The two threads of the loop never allocate at once: an arena of its own for each would only keep
 * more memory. */
static void share_heap(void)
{
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

static int serve(struct serve *v)
{
    struct server_run_options *run = &v->settings.run;
    char fault[1024] = "";
    sd_notify_open(&v->manager);
    run->notify = serve_notify;
    run->notify_arg = v;
    run->notify_ms = v->manager.watchdog_ms / 4;
    if (v->config)
        run->hangup = serve_on_hangup;
    run->hangup_arg = v;
    clave_err err = clave__server_run_new(&v->run, run, fault, sizeof fault);
    if (err != CLAVE_OK)
        return serve_fail(v, err, fault);
    show_ready(v);
    tell_ready(v);
    err = clave__server_run_loop(v->run, fault, sizeof fault);
    clave__server_run_free(v->run);
    sd_notify_close(&v->manager);
    return err == CLAVE_OK ? EXIT_OK : serve_fail(v, err, fault);
}

/* Programs that use the library read no configuration: a server that it forbids is not started for
 * them either. */
static bool serve_is_ruled_out(const struct serve *v, char *fault, size_t cap)
{
    config_find_never(v->o);
    if (v->o->local != OPTIONS_LOCAL_NEVER)
        return false;
    snprintf(fault, cap, "%s: a local server must not be used (CLAVE_CONNECT names another)",
             v->o->local_from);
    clave__local_refuse(fault);
    return true;
}

static int serve_local(const struct serve *v)
{
    char fault[1024] = "";
    if (serve_is_ruled_out(v, fault, sizeof fault))
        return serve_fail(v, CLAVE_EINVAL, fault);
    clave_err err = clave__local_serve(v->settings.local, &v->settings.run, fault, sizeof fault);
    return err == CLAVE_OK ? EXIT_OK : serve_fail(v, err, fault);
}

/* EXIT_OK, or the exit code. */
static int serve_prepare(struct serve *v)
{
    char why[400] = "";
    const struct fault f = {why, sizeof why};
    clave_err err = build(v, &v->settings, &f);
    if (why[0])
        return diag_usage(v->o, "%s", why);
    if (err != CLAVE_OK)
        return err == CLAVE_EINVAL ? EXIT_USAGE : exit_code_of(err);
    set_log(v, &v->settings);
    v->settings.run.engine.log = serve_log_line;
    v->settings.run.engine.log_arg = &v->log;
    settings_tell_useless(&v->settings, &(struct log){serve_log_line, &v->log});
    return EXIT_OK;
}

/* What only flags can set: the log of reading the file itself. OPTIONS_STOP: after a message. */
static int take_flags(struct serve *v, int argc, char **argv)
{
    struct serve_settings scratch;
    int id;
    settings_init(&scratch);
    while ((id = options_next(v->o, argc, argv)) > 0)
        if (!serve_take_flag(v->o, v, &scratch, id)) {
            v->o->status = EXIT_USAGE;
            id = OPTIONS_STOP;
            break;
        }
    set_log(v, &scratch);
    settings_fini(&scratch);
    if (id == OPTIONS_END && v->o->connect) {
        diag_usage(v->o, "--connect: a server does not connect; use --listen for its addresses");
        id = OPTIONS_STOP;
    }
    return id == OPTIONS_STOP || options_args(v->o, 0, 0) ? id : OPTIONS_STOP;
}

static int run_serve(struct options *o, int argc, char **argv)
{
    struct serve v = {.o = o};
    if (take_flags(&v, argc, argv) == OPTIONS_STOP)
        return o->status;
    int code = serve_prepare(&v);
    raise_file_limit();
    share_heap();
    if (code == EXIT_OK && v.check)
        code = serve_check(&v);
    else if (code == EXIT_OK)
        code = v.settings.local ? serve_local(&v) : serve(&v);
    keep_reloaded(&v, NULL);
    settings_fini(&v.settings);
    return code;
}

const struct verb verb_serve = {
    .name = "serve",
    .args = "--data DIR",
    .summary = "Serve the ZooKeeper protocol, durably, from one data directory",
    .text =
        "Prints one line when it is ready. SIGTERM and SIGINT end it; sessions and locks remain\n"
        "and continue when it starts again, or when Apache ZooKeeper is started on its data.\n"
        "A Unix socket is for this user; 'unix:/path?mode=0660&group=NAME' is for a group too.\n",
    .flags = flags,
    .max_args = -1,
    .offline = true,
    .run = run_serve,
};
