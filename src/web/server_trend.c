/* server_trend.c - see server_trend.h. web.c makes it, api/server_api.c shows it. Invariant:
 * the newest `n` samples end with the one before `next`, and are SAMPLE_MS apart but for the time
 * that the process was stopped. */
#include "web/server_trend.h"

#include <assert.h>

#include "observe/lock_json.h"
#include "web/http/http_metrics.h"
#include "web/http/sender_limits.h"
#include "web/observe/observe.h"
#include "web/own_client.h"
#include "web/session/http_session.h"

enum { SAMPLE_MS = 10000, SAMPLES = 360 };
/* The server tells more often: nothing for so long, and it tells no more. */
enum { TELLS_WITHIN_MS = 30000 };

/* Of the gate itself, behind those of the server. */
enum { GATE_LATENCY_MS = WEB_FIGURES, GATE_SESSIONS, GATE_WAITING, GATE_REQUESTS, GATE_FIGURES };

/* The names in JSON. The sampled ones are drawn. */
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
    int64_t began; /* with the first sample */
    int64_t told;  /* when the server's were; 0: never */
    int64_t server[WEB_FIGURES];
    int64_t at; /* of the newest sample; wall clock */
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

/* The latency in a sample was measured after the one before it. */
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

void clave__server_trend_json(struct json *j, const struct web *w, bool all)
{
    const struct server_trend *f = w->figures;
    clave__json_open(j, "gate", '{');
    clave__json_int(j, "uptime_ms", f->began ? w->now - f->began : 0);
    clave__json_bool(j, "current", clave__observe_is_current(w->observe));
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

void clave__server_trend_samples_json(struct json *j, const struct web *w)
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
