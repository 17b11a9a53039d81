/* serve_gate.c - see serve_gate.h; serve.c calls it. */
#include "cmd/serve/serve_gate.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/gate/gate_run.h"
#include "runtime/start_error.h"
#include "runtime/thread_start.h"

/* How long to wait for sessions to be closed. The server ends at the same time, and a session that
 * could not be closed continues when both are back. */
enum { GRACE_MS = 300 };

struct serve_gate {
    struct gate *gate;
    struct log log; /* the server's log */
    pthread_t thread;
    bool runs;
};

clave_err serve_gate_name(struct serve_settings *v, const struct fault *f)
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

clave_err serve_gate_check(const struct serve_settings *v, const struct fault *f)
{
    const struct gate_options o = {.http = v->gate.http,
                                   .nhttp = v->gate.nhttp,
                                   .http_tls = v->gate.tls,
                                   .audit = v->gate.audit,
                                   .key = v->gate.key};
    struct gate_access *access;
    struct findings all = clave__findings_in(f);
    clave__findings_add(&all, gate_access_load(&access, &v->gate.access, &all.next));
    gate_access_free(access);
    clave__findings_add(&all, gate_check(&o, &all.next));
    return all.err;
}

/* Marks the lines of the gate with "http:", since a session of the gate is also a session of the
 * server and appears in both logs. */
static void serve_gate_log_about(void *arg, int level, const char *msg,
                                 const struct log_about *about)
{
    const struct serve_gate *g = arg;
    clave__log_about(&g->log, level, about, "http: %s", msg);
}

static void serve_gate_log(void *arg, int level, const char *msg)
{
    serve_gate_log_about(arg, level, msg, &(struct log_about){0});
}

clave_err serve_gate_new(struct serve_gate **out, const struct serve_settings *v,
                         const char *connect, const struct log *log, const struct fault *f)
{
    const struct gate_settings *s = &v->gate;
    struct serve_gate *g = calloc(1, sizeof *g);
    struct gate_options o = {.hosts = v->run.gate,
                             .connect = connect,
                             .http = s->http,
                             .nhttp = s->nhttp,
                             .http_tls = s->tls,
                             .log = {serve_gate_log, g, serve_gate_log_about},
                             .metric_paths = s->metric_paths,
                             .audit = s->audit,
                             .data_dir = v->run.data_dir,
                             .key = s->key,
                             .limits = {s->max_connections, s->max_waiting, s->max_sender_sessions},
                             .max_body = s->max_body,
                             .in_server = true,
                             .grace_ms = GRACE_MS};
    *out = NULL;
    if (!g)
        return CLAVE_ENOMEM;
    g->log = *log;
    clave_err err = gate_access_load(&o.access, &s->access, f);
    if (err == CLAVE_OK)
        err = gate_new(&g->gate, &o, f);
    if (err == CLAVE_OK) {
        *out = g;
        return CLAVE_OK;
    }
    gate_access_free(o.access);
    free(g);
    return err;
}

void serve_gate_node_gone(struct serve_gate *g, int64_t czxid, enum server_gone how)
{
    gate_node_gone(g->gate, czxid, how);
}

void serve_gate_server_health(struct serve_gate *g, const struct server_health *health)
{
    gate_server_health(g->gate, health);
}

static void *serve_gate_thread(void *arg)
{
    const struct serve_gate *g = arg;
    gate_run(g->gate);
    return NULL;
}

clave_err serve_gate_run(struct serve_gate *g)
{
    assert(!g->runs);
    int fault = clave__thread_start(&g->thread, "clave-http", serve_gate_thread, g);
    g->runs = fault == 0;
    return g->runs ? CLAVE_OK : CLAVE_ETHREAD;
}

clave_err serve_gate_load(struct gate_access **out, const struct serve_settings *wanted,
                          const struct fault *f)
{
    return gate_access_load(out, &wanted->gate.access, f);
}

void serve_gate_change(struct serve_gate *g, struct gate_access *access,
                       const struct serve_settings *wanted)
{
    const struct gate_settings *s = &wanted->gate;
    const struct gate_limits limits = {s->max_connections, s->max_waiting, s->max_sender_sessions};
    gate_change(g->gate, access, &limits);
}

bool serve_gate_reopen(struct serve_gate *g)
{
    return gate_reopen(g->gate);
}

const char *serve_gate_address(const struct serve_gate *g, size_t i)
{
    return gate_address(g->gate, i);
}

void serve_gate_free(struct serve_gate *g)
{
    if (!g)
        return;
    if (g->runs) {
        gate_stop(g->gate);
        pthread_join(g->thread, NULL);
    }
    gate_free(g->gate);
    free(g);
}
