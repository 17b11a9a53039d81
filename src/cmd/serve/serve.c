/* serve.c - `clave serve`: takes its settings from flags and a file, then runs
 * runtime/server/server_run.h. SIGHUP applies a changed file either completely or not at all. The
 * ready line is printed once the server listens.
 *
 * With --http the gate runs in the same process, on a thread and a loop of its own, so HTTP never
 * delays the ZooKeeper protocol. It is a client of the server through a Unix socket in the data
 * directory, to which the limit on connections per address does not apply. */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log_line.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/serve/settings_load.h"
#include "cmd/service/sd_notify.h"
#include "runtime/client/local_serve.h"
#include "runtime/gate/gate_access_file.h"
#include "runtime/gate/gate_run.h"
#include "runtime/server/server_run.h"
#include "runtime/start_error.h"
#include "runtime/thread_start.h"

/* How long the gate waits for its sessions to be closed. The server ends at the same time, and a
 * session that could not be closed continues when both are back. */
enum { GATE_GRACE_MS = 300 };

struct serve {
    struct configured c;
    struct sd_notify manager;
    struct server_run *run;
    struct gate *gate; /* NULL: without --http */
    struct log gate_log;
    pthread_t gate_thread;
    bool gate_runs;
};

static const struct flag flags[] = {
    {CONFIGURED_FILE, "config", "FILE",
     "a file with these flags as 'key = value' lines, or a zoo.cfg"},
    {CONFIGURED_CHECK, "check-config", NULL, "check file and flags, then end without serving"},
    {0, NULL, NULL, NULL},
};

static struct gate_limits serve_gate_limits(const struct gate_settings *s)
{
    return (struct gate_limits){s->max_connections, s->max_waiting, s->max_sender_sessions};
}

/* ---- SIGHUP ---------------------------------------------------------------------------------- */

static clave_err serve_apply(void *arg, const struct serve_settings *wanted, const struct fault *f)
{
    struct serve *v = arg;
    struct gate_access *access = NULL;
    clave_err err = v->gate ? gate_access_load(&access, &wanted->gate.access, f) : CLAVE_OK;
    if (err == CLAVE_OK)
        err = clave__server_run_change(v->run, &wanted->run);
    if (err != CLAVE_OK || !v->gate) {
        gate_access_free(access);
        return err;
    }
    const struct gate_limits limits = serve_gate_limits(&wanted->gate);
    gate_change(v->gate, access, &limits);
    return CLAVE_OK;
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
    if (v->gate && gate_reopen(v->gate))
        configured_read_again(&v->c, "TLS files of HTTP");
    configured_reload(&v->c, serve_apply, v);
}

/* ---- the server ------------------------------------------------------------------------------ */

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
        for (size_t i = 0; v->gate && (address = gate_address(v->gate, i)); i++)
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
    for (size_t i = 0; v->gate && (address = gate_address(v->gate, i)); i++)
        printf("%s%s", i > 0 ? " " : ", http ", address);
    fputs("\n", stdout);
}

static void serve_show_ready(const struct serve *v)
{
    serve_put_ready(v);
    configured_end_ready(&v->c);
}

/* Called from the loop at regular intervals, so the watchdog is fed only as long as the loop
 * turns. */
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

/* Checks the gate's addresses, tokens and libraries without starting anything. */
static clave_err serve_check_gate(const struct gate_settings *s, const struct fault *f)
{
    const struct gate_options o = {
        .http = s->http, .nhttp = s->nhttp, .http_tls = s->tls, .audit = s->audit, .key = s->key};
    struct gate_access *access;
    struct findings all = clave__findings_in(f);
    clave__findings_add(&all, gate_access_load(&access, &s->access, &all.next));
    gate_access_free(access);
    clave__findings_add(&all, gate_check(&o, &all.next));
    return all.err;
}

/* Says and returns what a start would, as far as that can be found out while a server is running.
 * `code` is the result of reading the settings. */
static int serve_check(const struct serve *v, int code)
{
    char fault[FAULTS_CAP] = "", more[FAULTS_CAP] = "";
    if (v->c.settings.local)
        return diag_usage(v->c.o, "--check-config and --local exclude each other");
    const struct fault f = {more, sizeof more};
    clave_err err = clave__server_run_check(&v->c.settings.run, fault, sizeof fault);
    if (err != CLAVE_OK)
        code = configured_worse(code, configured_fail(&v->c, err, fault));
    err = v->c.settings.gate.nhttp > 0 ? serve_check_gate(&v->c.settings.gate, &f) : CLAVE_OK;
    if (err != CLAVE_OK)
        code = configured_worse(code, configured_fail(&v->c, err, more));
    if (code == EXIT_OK)
        serve_show_checked(v);
    return code;
}

/* ---- serving --------------------------------------------------------------------------------- */

/* Tunes glibc's allocator. One arena is enough, since the two threads of the loop never allocate at
 * the same time, and an arena for each would only use more memory. Trimming is made rare: by
 * default glibc returns all free memory at the top of the heap as soon as there is twice the size
 * of the largest block so far, which takes about 0.1 ms per MiB, during which nobody is served; and
 * the memory is needed again soon afterwards. */
static void serve_set_heap(bool has_gate)
{
#ifdef M_ARENA_MAX
    enum { LARGE = 1 << 20, KEPT = 32 << 20 };
    mallopt(M_ARENA_MAX, has_gate ? 2 : 1); /* the gate's thread may allocate at any time */
    mallopt(M_MMAP_THRESHOLD, LARGE);       /* a block of this size is returned when it is freed */
    mallopt(M_TRIM_THRESHOLD, KEPT);
#else
    (void)has_gate;
#endif
}

/* ---- the gate -------------------------------------------------------------------------------- */

/* Sets run.gate, the address of the socket between the two. EINVAL: the path of the data directory
 * is too long; ENOMEM. */
static clave_err serve_name_gate(struct serve_settings *v, const struct fault *f)
{
    enum { MOST = sizeof((struct sockaddr_un *)0)->sun_path };
    const char *data = v->run.data_dir;
    char here[PATH_MAX] = "", text[2 * PATH_MAX];
    if (*data != '/' && !getcwd(here, sizeof here))
        return clave__start_error_errno(f, errno, "cannot name", data);
    int n = snprintf(text, sizeof text, "unix:%s%s%s/gate.sock", here, *here ? "/" : "", data);
    if (n >= (int)(MOST + strlen("unix:")))
        return clave__start_error(f, CLAVE_EINVAL,
                                  "--http needs a Unix socket in the data directory, and the path "
                                  "%s has more than the %d bytes that it may have",
                                  text + strlen("unix:"), MOST - 1);
    v->run.gate = settings_keep(v, text);
    return v->run.gate ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Marks the lines of the gate with "http:", since a session of the gate is also a session of the
 * server and appears in both logs. */
static void serve_gate_log_about(void *arg, int level, const char *msg,
                                 const struct log_about *about)
{
    const struct serve *v = arg;
    clave__log_about(&v->gate_log, level, about, "http: %s", msg);
}

static void serve_gate_log(void *arg, int level, const char *msg)
{
    serve_gate_log_about(arg, level, msg, &(struct log_about){0});
}

static void *serve_gate_thread(void *arg)
{
    const struct serve *v = arg;
    gate_run(v->gate);
    return NULL;
}

/* Binds the gate's addresses and starts its thread. */
static clave_err serve_start_gate(struct serve *v, const struct fault *f)
{
    const struct gate_settings *s = &v->c.settings.gate;
    struct gate_options o = {.hosts = v->c.settings.run.gate,
                             .connect = clave__server_run_address(v->run, 0),
                             .http = s->http,
                             .nhttp = s->nhttp,
                             .http_tls = s->tls,
                             .log = {serve_gate_log, v, serve_gate_log_about, &v->c.log.level},
                             .metric_paths = s->metric_paths,
                             .audit = s->audit,
                             .data_dir = v->c.settings.run.data_dir,
                             .key = s->key,
                             .limits = serve_gate_limits(s),
                             .max_body = s->max_body,
                             .in_server = true,
                             .grace_ms = GATE_GRACE_MS};
    v->gate_log = configured_log(&v->c);
    clave_err err = gate_access_load(&o.access, &s->access, f);
    if (err != CLAVE_OK)
        return err;
    err = gate_new(&v->gate, &o, f);
    if (err != CLAVE_OK) {
        gate_access_free(o.access);
        return err;
    }
    v->gate_runs = clave__thread_start(&v->gate_thread, "clave-http", serve_gate_thread, v) == 0;
    return v->gate_runs ? CLAVE_OK : CLAVE_ETHREAD;
}

static void serve_end_gate(struct serve *v)
{
    if (v->gate_runs) {
        gate_stop(v->gate);
        pthread_join(v->gate_thread, NULL);
    }
    gate_free(v->gate);
}

/* An ephemeral node is gone, or the state of the server was measured: called from the server's
 * threads. */
static void serve_on_gone(void *arg, int64_t czxid, enum server_gone how)
{
    const struct serve *v = arg;
    gate_node_gone(v->gate, czxid, how);
}

static void serve_on_measured(void *arg, const struct server_health *health)
{
    const struct serve *v = arg;
    gate_server_health(v->gate, health);
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
    clave_err err = has_gate ? serve_name_gate(&v->c.settings, &f) : CLAVE_OK;
    if (has_gate) {
        run->engine.node_gone = serve_on_gone;
        run->engine.node_gone_arg = v;
        run->measured = serve_on_measured;
        run->measured_arg = v;
    }
    if (err == CLAVE_OK)
        err = clave__server_run_new(&v->run, run, fault, sizeof fault);
    if (err == CLAVE_OK && has_gate)
        err = serve_start_gate(v, &f);
    if (err == CLAVE_OK) {
        serve_show_ready(v);
        serve_tell_ready(v);
        serve_log_begin_queue(&v->c.log);
        err = clave__server_run_loop(v->run, fault, sizeof fault);
        serve_log_end_queue(&v->c.log);
    }
    serve_end_gate(v);
    clave__server_run_free(v->run);
    sd_notify_close(&v->manager);
    return err == CLAVE_OK ? EXIT_OK : configured_fail(&v->c, err, fault);
}

/* Whether the configuration forbids local servers. The client library checks this before it starts
 * one; but an older library does not read that setting, so the server checks it as well. */
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
    .more_flags = settings_flag,
    .shares = SETTINGS_OF_SERVE,
    .max_args = -1,
    .offline = true,
    .run = run_serve,
};
