/* server.c - the gate itself: its health, how it and the servers have been doing in the last hour,
 * who the sender is, the contract (openapi.json) and the page. Invariant: the newest `n` samples of
 * the trend end with the one before `next`, and are SAMPLE_MS apart, unless the process was stopped
 * in between. */
#include "web/api/api.h"

#include <assert.h>
#include <string.h>

#include "clave/version.h"
#include "client/client_for_gate.h"
#include "observe/lock_json.h"
#include "web/observe/observe.h"

/* ==== figures of the last hour ================================================================ */

enum { SAMPLE_MS = 10000, SAMPLES = 360 };
/* The figures of the server are out of date after this time without new ones. */
enum { TELLS_WITHIN_MS = 30000 };

/* The gate's own figures, which follow those of the server. */
enum { GATE_LATENCY_MS = WEB_FIGURES, GATE_SESSIONS, GATE_WAITING, GATE_REQUESTS, GATE_FIGURES };

/* The names of the figures in JSON. The page draws those that are sampled. */
static const struct {
    const char *name;
    bool sampled;
} figures[GATE_FIGURES] = {
    [WEB_UPTIME_MS] = {"uptime_ms", false},
    [WEB_SESSIONS] = {"sessions", true},
    [WEB_CONNECTIONS] = {"connections", true},
    [WEB_REQUESTS] = {"requests", true},
    [WEB_OUTSTANDING] = {"outstanding", true},
    [WEB_ZNODES] = {"znodes", true},
    [WEB_WATCHES] = {"watches", false},
    [WEB_DATA_BYTES] = {"data_bytes", true},
    [WEB_READ_MS] = {"read_ms", true},
    [WEB_WRITE_MS] = {"write_ms", true},
    [WEB_FSYNC_US] = {"fsync_us", true},
    [WEB_FILES_BYTES] = {"files_bytes", false},
    [WEB_FREE_BYTES] = {"free_bytes", true},
    [WEB_DISK_BYTES] = {"disk_bytes", false},
    [WEB_MEMORY_BYTES] = {"memory_bytes", true},
    [WEB_SNAPSHOT_SECONDS] = {"snapshot_seconds", false},
    [WEB_SNAPSHOT_BEHIND] = {"snapshot_behind", false},
    [WEB_QUIET_MS] = {"quiet_ms", false},
    [GATE_LATENCY_MS] = {"latency_ms", true},
    [GATE_SESSIONS] = {"sessions", true},
    [GATE_WAITING] = {"waiting", true},
    [GATE_REQUESTS] = {"requests", true},
};

struct server_trend {
    struct web *web;
    struct timer sample;
    int64_t began; /* when the first sample was taken */
    int64_t told;  /* when the server's figures came last; 0: never */
    int64_t server[WEB_FIGURES];
    int64_t at; /* when the newest sample was taken; wall clock */
    size_t n, next;
    int64_t samples[SAMPLES][GATE_FIGURES];
};

/* ---- taking ---------------------------------------------------------------------------------- */

static bool trend_knows_server(const struct server_trend *f)
{
    return f->told > 0 && f->web->now - f->told < TELLS_WITHIN_MS;
}

static int64_t trend_now(const struct server_trend *f, size_t which)
{
    switch (which) {
    case GATE_LATENCY_MS:
        return f->web->latency_ms;
    case GATE_SESSIONS:
        return (int64_t)clave__senders_have(f->web, SENDER_SESSIONS);
    case GATE_WAITING:
        return (int64_t)clave__senders_have(f->web, SENDER_WAITS);
    case GATE_REQUESTS:
        return (int64_t)clave__http_metrics_answered(f->web);
    default:
        return trend_knows_server(f) ? f->server[which] : -1;
    }
}

/* The latency in a sample was measured after the previous sample. */
static void trend_on_sample(struct timer *t, int64_t now)
{
    struct server_trend *f = LIST_ENTRY(t, struct server_trend, sample);
    f->began = f->began ? f->began : now;
    f->at = clave__observe_now(f->web->observe);
    for (size_t i = 0; i < GATE_FIGURES; i++)
        f->samples[f->next][i] = trend_now(f, i);
    f->next = (f->next + 1) % SAMPLES;
    f->n += f->n < SAMPLES;
    clave__own_client_measure(f->web);
    if (!f->web->closing)
        clave__web_timer_set(f->web, t, now + SAMPLE_MS);
}

void clave__server_trend_take(struct server_trend *f, const int64_t server[WEB_FIGURES])
{
    f->told = f->web->now;
    for (size_t i = 0; i < WEB_FIGURES; i++)
        f->server[i] = server[i];
}

/* ---- showing --------------------------------------------------------------------------------- */

static void trend_put(struct json *j, const char *name, int64_t value)
{
    if (value < 0)
        clave__json_string(j, name, NULL);
    else
        clave__json_int(j, name, value);
}

static void trend_object(struct json *j, const struct server_trend *f, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        assert(figures[i].name);
        trend_put(j, figures[i].name, trend_now(f, i));
    }
}

static void server_trend_json(struct json *j, const struct web *w, bool all)
{
    const struct server_trend *f = w->figures;
    clave__json_open(j, "gate", '{');
    clave__json_int(j, "uptime_ms", f->began ? w->now - f->began : 0);
    clave__json_bool(j, "current", clave__observe_is_current(w->observe));
    trend_put(j, "age_ms", clave__observe_age(w->observe));
    trend_object(j, f, WEB_FIGURES, GATE_FIGURES);
    clave__json_close(j, '}');
    if (!all || !trend_knows_server(f)) {
        clave__json_string(j, "server", NULL);
        return;
    }
    clave__json_open(j, "server", '{');
    trend_object(j, f, 0, WEB_FIGURES);
    clave__json_close(j, '}');
}

static void trend_series(struct json *j, const struct server_trend *f, size_t which)
{
    clave__json_open(j, figures[which].name, '[');
    for (size_t i = 0; i < f->n; i++)
        trend_put(j, NULL, f->samples[(f->next + SAMPLES - f->n + i) % SAMPLES][which]);
    clave__json_close(j, ']');
}

static void server_trend_samples_json(struct json *j, const struct web *w)
{
    static const struct {
        const char *name;
        size_t from, to;
    } owners[] = {{"gate", WEB_FIGURES, GATE_FIGURES}, {"server", 0, WEB_FIGURES}};
    const struct server_trend *f = w->figures;
    clave__json_open(j, "samples", '{');
    clave__json_int(j, "every_ms", SAMPLE_MS);
    clave__lock_time_json(j, "at", f->at);
    for (size_t o = 0; o < sizeof owners / sizeof *owners; o++) {
        clave__json_open(j, owners[o].name, '{');
        for (size_t i = owners[o].from; i < owners[o].to; i++)
            if (figures[i].sampled)
                trend_series(j, f, i);
        clave__json_close(j, '}');
    }
    clave__json_close(j, '}');
}

/* ---- life ------------------------------------------------------------------------------------ */

clave_err clave__server_trend_new(struct web *w)
{
    struct server_trend *f = w->figures = clave__mem_zalloc(&w->mem, sizeof *f);
    if (!f)
        return CLAVE_ENOMEM;
    f->web = w;
    f->at = -1;
    w->latency_ms = -1;
    clave__timer_init(&f->sample, trend_on_sample);
    clave__web_timer_set(w, &f->sample, 0);
    return CLAVE_OK;
}

void clave__server_trend_free(struct web *w)
{
    if (w->figures)
        clave__web_timer_clear(w, &w->figures->sample);
    clave__mem_free(&w->mem, w->figures);
    w->figures = NULL;
}

/* ==== /healthz, /readyz ======================================================================= */

static void health_answer(struct web_exchange *x, const char *status)
{
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "status", status);
    clave__web_answer_object(x, 200);
}

void clave__web_get_healthz(struct web_exchange *x)
{
    health_answer(x, "ok");
}

void clave__web_get_readyz(struct web_exchange *x)
{
    clave_async_client *c = x->web->own;
    const struct observe *o = x->web->observe;
    int64_t heard = clave__client_contact(c);
    /* While the feed runs, its probes are answered all the time, so silence means that the server
     * is gone. */
    bool silent = o->feed && heard != INT64_MIN && x->web->now - heard > OBSERVE_CURRENT_MS;
    if (clave_async_client_is_connected(c) && !silent)
        health_answer(x, "ready");
    else if (silent)
        clave__web_refuse(x, 503, CLAVE_EUNREACHABLE, NULL,
                          "no ZooKeeper server has answered for %lld ms",
                          (long long)(x->web->now - heard));
    else
        clave__web_refuse(x, 503, CLAVE_EUNREACHABLE, NULL,
                          "not connected to a ZooKeeper server: %s", clave_async_client_errmsg(c));
}

/* ==== /v1/server ============================================================================== */

void clave__web_get_server(struct web_exchange *x)
{
    const struct web *w = x->web;
    struct json *j = &x->json;
    clave_state state = clave_async_client_state(w->own);
    bool connected = clave_async_client_is_connected(w->own);
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "version", clave_version());
    clave__json_string(j, "servers", w->o.hosts);
    clave__json_string(j, "connect", w->o.connect);
    clave__json_bool(j, "connected", connected);
    clave__json_string(j, "state", clave_state_name(state));
    clave__json_string(j, "role",
                       !connected                       ? "none"
                       : state == CLAVE_STATE_READ_ONLY ? "read-only"
                                                        : "read-write");
    clave__json_int64(j, "session_id", clave_async_client_session_id(w->own));
    clave__json_int(j, "max_body", (int64_t)clave__web_max_body(w));
    bool all = clave__observe_may_see(x, NULL); /* the same right as for /metrics */
    server_trend_json(j, w, all);
    if (all && clave__web_query(x, "samples"))
        server_trend_samples_json(j, w);
    clave__web_answer_object(x, 200);
}

/* ==== /v1/whoami ============================================================================== */

void clave__web_get_whoami(struct web_exchange *x)
{
    struct json *j = &x->json;
    if (x->who.found != ACCESS_KNOWN && !clave__web_must(x, WEB_READ, NULL))
        return;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "name", x->who.name);
    clave__json_open(j, "grants", '[');
    for (size_t i = 0; i < x->who.ngrants; i++) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "role", clave__web_role_name(x->who.grants[i].role));
        clave__json_string(j, "prefix", x->who.grants[i].prefix);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
    clave__web_answer_object(x, 200);
}

/* ==== /v1/openapi.json, /ui/ ================================================================== */

/* Made from openapi.json by cmake/embed.cmake. */
extern const unsigned char clave__openapi_json[];
extern const size_t clave__openapi_json_len;

void clave__web_get_openapi(struct web_exchange *x)
{
    clave__web_answer_bytes(x, 200, "application/json", clave__openapi_json,
                            clave__openapi_json_len);
}

/* Redirects "/" and "/ui". The target is relative, so it is right behind a proxy that serves the
 * gate below another path, too. */
void clave__web_get_to_page(struct web_exchange *x)
{
    clave__web_set_header(x, "Location", "ui/");
    clave__web_answer_empty(x, 308);
}

static const struct web_asset *page_asset_find(const struct web *w, const char *path)
{
    for (size_t i = 0; i < w->o.nassets; i++)
        if (strcmp(w->o.assets[i].path, path) == 0)
            return &w->o.assets[i];
    return NULL;
}

/* A browser may cache the files, but asks each time whether they have changed. */
void clave__web_get_page(struct web_exchange *x)
{
    assert(x->params[0][0] == '/'); /* as every {path} */
    const char *path = x->params[0] + 1;
    const struct web_asset *a = page_asset_find(x->web, path[0] ? path : "index.html");
    if (!a) {
        clave__web_refuse(x, 404, CLAVE_EINVAL, NULL, "the page has no such file");
        return;
    }
    const char *known = clave__web_header(x, "If-None-Match");
    clave__web_set_header(x, "ETag", "%s", a->etag);
    clave__web_set_header(x, "Cache-Control", "no-cache");
    clave__web_set_header(x, "Content-Security-Policy",
                          "default-src 'self'; base-uri 'none'; form-action 'none'; "
                          "frame-ancestors 'none'");
    if (known && strstr(known, a->etag)) {
        clave__web_answer_empty(x, 304);
        return;
    }
    clave__web_set_header(x, "Content-Encoding", "gzip");
    clave__web_answer_bytes(x, 200, a->type, a->gzip, a->len);
}
