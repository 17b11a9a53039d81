/* gate_engine.c - the engine of src/web in this gate: how it is made, what it requests, and what
 * other threads of the process tell it. */
#include <assert.h>
#include <string.h>

#include "clave/uv.h"
#include "runtime/clock.h"
#include "runtime/gate/gate_internal.h"
#include "runtime/gate/gate_jansson.h"
#include "runtime/gate/gate_key.h"
#include "runtime/thread_start.h"
#include "web/api/api.h"

enum { MAX_SESSIONS = 10000 };

/* ---- what the engine requests ---------------------------------------------------------------- */

static clave_err gate_client_open(void *arg, const clave_client_options *o,
                                  clave_async_client **out)
{
    struct gate *g = arg;
    return gate_clients_open(&g->clients, o, out);
}

static void gate_client_free(void *arg, clave_async_client *c)
{
    struct gate *g = arg;
    gate_clients_free(&g->clients, c);
}

static void gate_client_flush(void *arg, clave_async_client *c)
{
    struct gate *g = arg;
    gate_clients_flush(&g->clients, c);
}

static void gate_answered(void *arg, struct web_exchange *x, void *transport)
{
    (void)arg;
    clave__http_answer(transport, clave__web_exchange_answer(x));
}

static void gate_wake(void *arg, struct web_exchange *x, void *transport)
{
    (void)arg;
    (void)x;
    clave__http_wake(transport);
}

static void gate_on_audit(void *arg, const struct web_audit *a)
{
    const struct gate *g = arg;
    gate_audit_put(g->audit, a);
}

static void gate_on_loaded(void *arg, int64_t zxid)
{
    const struct gate *g = arg;
    gate_replay_start(g->replay, zxid);
}

/* ---- what it is told ------------------------------------------------------------------------- */

void gate_on_replayed(uv_async_t *a)
{
    struct gate *g = a->data;
    clave__web_take_replay(g->web, clave_now(), gate_replay_take(g->replay));
}

void gate_on_ended_nodes(uv_async_t *a)
{
    struct gate *g = a->data;
    gate_end_cause_pass_on(g->ends, g->web);
}

void gate_on_measured(uv_async_t *a)
{
    struct gate *g = a->data;
    gate_server_stats_pass_on(g->figures, g->web);
}

void gate_server_health(struct gate *g, const struct server_health *health)
{
    assert(g->figures); /* it is in a server */
    gate_server_stats_put(g->figures, health);
}

void gate_node_gone(struct gate *g, int64_t czxid, enum server_gone how)
{
    assert(g->ends);
    gate_end_cause_put(g->ends, czxid, how);
}

void gate_on_audited(void *arg)
{
    struct gate *g = arg;
    if (g->audit)
        gate_audit_pump(g->audit);
}

void gate_set_wall(struct gate *g)
{
    clave__web_set_wall(g->web, clave__clock_wall() - clave_now());
}

/* ---- the engine ------------------------------------------------------------------------------ */

static clave_err gate_take_metric_paths(struct gate *g, const char *paths, const struct fault *f)
{
    char *rest = NULL;
    g->metric_text = clave__mem_strdup(&g->mem, paths);
    if (!g->metric_text)
        return CLAVE_ENOMEM;
    for (char *p = strtok_r(g->metric_text, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
        if (g->nmetric_paths == MAX_METRIC_PATHS)
            return clave__start_error(f, CLAVE_EINVAL, "at most %d paths of metrics",
                                      MAX_METRIC_PATHS);
        g->metric_paths[g->nmetric_paths++] = p;
    }
    return CLAVE_OK;
}

clave_err gate_make_engine(struct gate *g, const struct gate_options *o, const struct fault *f)
{
    const char *why;
    const struct jansson *jansson = gate_jansson(&why);
    uint8_t key[GATE_KEY_LEN];
    if (!jansson)
        return clave__start_error(f, CLAVE_EIO, "%s", why);
    clave_err err = CLAVE_OK;
    if (o->key)
        err = gate_key_read(o->key, key, f);
    else if (o->data_dir)
        err = gate_key_keep(o->data_dir, key, f);
    else
        err = gate_key_draw(key, f);
    if (err == CLAVE_OK && !o->key && !o->data_dir)
        clave__log(&o->log, CLAVE_LOG_INFO,
                   "a random key is used: the secrets of sessions become invalid when this process "
                   "ends (--http-key keeps them)");
    if (err == CLAVE_OK && o->metric_paths)
        err = gate_take_metric_paths(g, o->metric_paths, f);
    if (err == CLAVE_OK && o->audit)
        err = gate_audit_open(&g->audit, o->audit, &g->mem, &g->log, &g->audit_done, f);
    if (err == CLAVE_OK && o->data_dir)
        err = gate_replay_new(&g->replay, o->data_dir, &g->mem, &g->log, &g->replayed);
    if (err == CLAVE_OK && o->in_server)
        err = gate_end_cause_new(&g->ends, &g->mem, &g->ended);
    if (err == CLAVE_OK && o->in_server)
        err = gate_server_stats_new(&g->figures, &g->mem, &g->measured);
    if (err != CLAVE_OK)
        return err;
    g->env = (struct web_env){.arg = g,
                              .client_open = gate_client_open,
                              .client_free = gate_client_free,
                              .client_flush = gate_client_flush,
                              .answered = gate_answered,
                              .wake = gate_wake,
                              .audit = o->audit ? gate_on_audit : NULL,
                              .loaded = o->data_dir ? gate_on_loaded : NULL};
    const struct web_options wo = {.mem = &g->mem,
                                   .seed = clave_random_seed(),
                                   .log = g->log,
                                   .env = &g->env,
                                   .hosts = o->hosts,
                                   .connect = o->connect,
                                   .tls = o->tls,
                                   .auths = o->auths,
                                   .nauths = o->nauths,
                                   .session_timeout_ms = o->session_timeout_ms,
                                   .session_key = key,
                                   .key_is_shared = o->key != NULL,
                                   .jansson = jansson,
                                   .access = gate_access_of(o->access),
                                   .assets = clave__page_assets,
                                   .nassets = clave__page_nassets,
                                   .max_body = o->max_body,
                                   .max_waiting = gate_max_waiting(g, &o->limits),
                                   .max_sessions = gate_files(o, 2, MAX_SESSIONS),
                                   .max_connections = gate_max_connections(g, &o->limits),
                                   .max_sender_sessions = gate_max_sender_sessions(g, &o->limits),
                                   .observe = true,
                                   .metric_paths = g->metric_paths,
                                   .nmetric_paths = g->nmetric_paths};
    err = clave__web_new(&g->web, &wo);
    explicit_bzero(key, sizeof key);
    if (err == CLAVE_OK)
        gate_set_wall(g);
    return err;
}
