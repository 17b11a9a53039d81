/* gate.c - `clave gate`: takes its settings from flags and a file, then runs src/runtime/gate on
 * this thread. SIGHUP applies a changed file either completely or not at all, and reads the tokens
 * again. The ready line is printed once the gate listens. */
#include "runtime/gate/gate_run.h"

#include <signal.h>
#include <stdio.h>

#include "base/log_line.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/diag.h"
#include "cmd/cli/json.h"
#include "cmd/serve/settings_load.h"
#include "cmd/service/sd_notify.h"
#include "runtime/server/server_run.h"
#include "runtime/start_error.h"

enum { GRACE_MS = 3000 };

static const struct flag flags[] = {
    {CONFIGURED_FILE, "config", "FILE", "a file with these flags as 'key = value' lines"},
    {CONFIGURED_CHECK, "check-config", NULL, "check file and flags, then end without serving"},
    {0, NULL, NULL, NULL},
};

struct gating {
    struct configured c;
    struct sd_notify manager;
    const char *hosts;
    struct gate *gate;
    uv_signal_t ends[2];
    uv_signal_t hangup;
    uv_timer_t watchdog;
};

/* ---- output ---------------------------------------------------------------------------------- */

static void gate_verb_show(const struct gating *v)
{
    const char *address;
    struct json j;
    if (v->c.o->json) {
        json_begin(&j, stdout);
        clave__json_open(&j, "http", '[');
        for (size_t i = 0; (address = gate_address(v->gate, i)); i++)
            clave__json_string(&j, NULL, address);
        clave__json_close(&j, ']');
        clave__json_string(&j, "connect", v->hosts);
        json_end(&j);
        return;
    }
    fputs("clave: gate on ", stdout);
    for (size_t i = 0; (address = gate_address(v->gate, i)); i++)
        printf("%s%s", i > 0 ? " " : "", address);
    printf(", servers %s\n", v->hosts);
}

static void gate_verb_show_checked(const struct gating *v)
{
    const struct gate_settings *g = &v->c.settings.gate;
    struct json j;
    if (!v->c.o->json) {
        fputs("clave: the configuration is valid: http", stdout);
        for (size_t i = 0; i < g->nhttp; i++)
            printf(" %s", g->http[i]);
        printf(", servers %s\n", v->hosts);
        return;
    }
    json_begin(&j, stdout);
    clave__json_open(&j, "http", '[');
    for (size_t i = 0; i < g->nhttp; i++)
        clave__json_string(&j, NULL, g->http[i]);
    clave__json_close(&j, ']');
    clave__json_string(&j, "connect", v->hosts);
    json_end(&j);
}

/* ---- while it runs --------------------------------------------------------------------------- */

static void gate_verb_on_end(uv_signal_t *s, int number)
{
    struct gating *v = s->data;
    const struct log log = configured_log(&v->c);
    clave__log(&log, CLAVE_LOG_INFO, "stopping: %s", number == SIGTERM ? "SIGTERM" : "SIGINT");
    sd_notify_stopping(&v->manager);
    gate_stop(v->gate);
}

static clave_err gate_verb_apply(void *arg, const struct serve_settings *wanted,
                                 const struct fault *f)
{
    struct gating *v = arg;
    const struct log log = configured_log(&v->c);
    struct gate_access *access;
    clave_err err = gate_access_load(&access, &wanted->gate.access, f);
    if (err != CLAVE_OK)
        return err;
    if (wanted->gate.access.tokens)
        clave__log(&log, CLAVE_LOG_INFO, "%s read: %zu user%s", wanted->gate.access.tokens,
                   gate_access_of(access)->nusers, clave__plural(gate_access_of(access)->nusers));
    const struct gate_settings *s = &wanted->gate;
    const struct gate_limits limits = {s->max_connections, s->max_waiting, s->max_sender_sessions};
    gate_change(v->gate, access, &limits);
    return CLAVE_OK;
}

static void gate_verb_on_hangup(uv_signal_t *s, int number)
{
    struct gating *v = s->data;
    (void)number;
    if (gate_reopen(v->gate))
        configured_read_again(&v->c, "TLS files of HTTP");
    configured_reload(&v->c, gate_verb_apply, v);
}

static void gate_verb_on_watchdog(uv_timer_t *t)
{
    struct gating *v = t->data;
    sd_notify_watchdog(&v->manager);
}

static void gate_verb_open_handles(struct gating *v)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    uv_loop_t *loop = gate_loop(v->gate);
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(loop, &v->ends[i]);
        v->ends[i].data = v;
        uv_signal_start(&v->ends[i], gate_verb_on_end, numbers[i]);
    }
    uv_signal_init(loop, &v->hangup);
    uv_timer_init(loop, &v->watchdog);
    v->hangup.data = v->watchdog.data = v;
    uv_signal_start(&v->hangup, gate_verb_on_hangup, SIGHUP);
    uint64_t every = (uint64_t)v->manager.watchdog_ms / 4;
    if (every > 0)
        uv_timer_start(&v->watchdog, gate_verb_on_watchdog, every, every);
}

static void gate_verb_close_handles(struct gating *v)
{
    for (size_t i = 0; i < 2; i++)
        uv_close((uv_handle_t *)&v->ends[i], NULL);
    uv_close((uv_handle_t *)&v->hangup, NULL);
    uv_close((uv_handle_t *)&v->watchdog, NULL);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void gate_verb_run(struct gating *v)
{
    gate_verb_open_handles(v);
    gate_verb_show(v);
    configured_end_ready(&v->c);
    sd_notify_ready(&v->manager);
    sd_notify_send(&v->manager, "STATUS=gate on %s, servers %s", gate_address(v->gate, 0),
                   v->hosts);
    serve_log_begin_queue(&v->c.log);
    gate_run(v->gate);
    serve_log_end_queue(&v->c.log);
    gate_verb_close_handles(v);
    gate_free(v->gate);
}

/* `code` is the result of reading the settings. */
static int gate_verb_check(const struct gating *v, const struct gate_options *g, int code)
{
    const struct gate_settings *s = &v->c.settings.gate;
    char why[FAULTS_CAP] = "";
    const struct fault f = {why, sizeof why};
    struct findings all = clave__findings_in(&f);
    struct gate_access *access;
    clave__findings_add(&all, gate_access_load(&access, &s->access, &all.next));
    gate_access_free(access);
    clave__findings_add(&all, gate_check(g, &all.next));
    if (all.err != CLAVE_OK)
        code = configured_worse(code, configured_fail(&v->c, all.err, why));
    if (code == EXIT_OK)
        gate_verb_show_checked(v);
    return code;
}

static int gate_verb_start(struct gating *v, int code)
{
    const struct gate_settings *s = &v->c.settings.gate;
    char why[1024] = "";
    const struct fault f = {why, sizeof why};
    struct gate_options g = {.hosts = v->hosts,
                             .tls = v->c.o->tls,
                             .auths = v->c.o->client.auths,
                             .nauths = v->c.o->client.nauths,
                             .session_timeout_ms = v->c.o->session_timeout_ms,
                             .http = s->http,
                             .nhttp = s->nhttp,
                             .http_tls = s->tls,
                             .log = configured_log(&v->c),
                             .metric_paths = s->metric_paths,
                             .audit = s->audit,
                             .key = s->key,
                             .limits = {s->max_connections, s->max_waiting, s->max_sender_sessions},
                             .max_body = s->max_body,
                             .grace_ms = GRACE_MS};
    if (v->c.check)
        return gate_verb_check(v, &g, code);
    clave_err err = gate_access_load(&g.access, &s->access, &f);
    if (err == CLAVE_OK)
        err = gate_new(&v->gate, &g, &f);
    if (err == CLAVE_OK) {
        gate_verb_run(v);
        return EXIT_OK;
    }
    gate_access_free(g.access);
    return configured_fail(&v->c, err, why);
}

static int run_gate(struct options *o, int argc, char **argv)
{
    struct gating v = {.c = {.o = o, .is_gate = true}};
    if (configured_take_flags(&v.c, argc, argv) == OPTIONS_STOP)
        return o->status;
    int code = configured_read(&v.c);
    bool goes_on = code == EXIT_OK || v.c.check;
    if (goes_on && v.c.settings.gate.connect)
        o->connect = v.c.settings.gate.connect;
    if (goes_on && !(v.hosts = connect_dial(o)))
        code = EXIT_USAGE;
    if (code == EXIT_OK || v.c.check) {
        clave__open_files_raise_limit();
        sd_notify_open(&v.manager);
        code = gate_verb_start(&v, code);
        sd_notify_close(&v.manager);
    }
    configured_fini(&v.c);
    return code;
}

const struct verb verb_gate = {
    .name = "gate",
    .args = "--connect HOSTS --http ADDR",
    .summary = "Serve locks, elections and znodes over HTTP, for ZooKeeper servers",
    .text = "Prints one line when it is ready. SIGTERM and SIGINT end it, SIGHUP reads the file,\n"
            "the tokens and the certificates again. Without tokens, a loopback address may read\n"
            "and lock, this user on a Unix socket may do everything, and nobody else anything.\n"
            "An ADDR without a host, such as :8080, is every address of this machine.\n"
            "GET /v1/openapi.json describes it all.\n",
    .flags = flags,
    .more_flags = settings_flag,
    .shares = SETTINGS_OF_GATE,
    .max_args = -1,
    .waits_forever = true,
    .run = run_gate,
};
