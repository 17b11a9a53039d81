/* http_metrics.c - see exchange.h. Called by answer.c and api/locks.c. Invariant: every
 * answer is counted once, under its route's pattern, so that there are never more samples than
 * routes and statuses. */
#include "web/http/exchange.h"

#include <assert.h>
#include <stdio.h>

#include "base/histogram.h"

/* Milliseconds. */
static const struct histogram_bounds durations = {
    11, {1, 2, 5, 10, 25, 50, 100, 500, 1000, 10000, 60000}};

/* Why a request is refused before its handler has a look at it, or by a limit. */
static const struct {
    unsigned status;
    const char *reason;
} refusals[] = {
    {401, "unauthorized"},
    {403, "forbidden"},
    {413, "body_too_large"},
    {414, "path_too_long"},
    {415, "media_type"},
    {421, "foreign_host"},
    {429, "limit"},
    {431, "headers_too_large"},
    {503, "unavailable"},
    {HTTP_REFUSED_WAITING, "waiting"},
    {HTTP_REFUSED_MEMORY, "memory"},
    {HTTP_REFUSED_SESSIONS, "sessions"},
};

enum { REFUSALS = sizeof refusals / sizeof *refusals };

struct http_count {
    struct http_count *next;
    const struct route *route; /* NULL: there is none at this path */
    unsigned status;
    uint64_t n;
};

struct http_metrics {
    struct http_count *counts; /* as many as there were pairs of route and status */
    struct histogram seconds;
    uint64_t refused[REFUSALS];
};

clave_err clave__http_metrics_new(struct web *w)
{
    w->http_metrics = clave__mem_zalloc(&w->mem, sizeof *w->http_metrics);
    if (!w->http_metrics)
        return CLAVE_ENOMEM;
    clave__histogram_init(&w->http_metrics->seconds, &durations);
    return CLAVE_OK;
}

void clave__http_metrics_free(struct web *w)
{
    struct http_metrics *m = w->http_metrics;
    for (struct http_count *c = m ? m->counts : NULL, *next; c; c = next) {
        next = c->next;
        clave__mem_free(&w->mem, c);
    }
    clave__mem_free(&w->mem, m);
    w->http_metrics = NULL;
}

/* The pair that was counted last is moved to the front of the list. */
static struct http_count *http_count_of(struct http_metrics *m, const struct web_exchange *x,
                                        unsigned status)
{
    struct http_count **link = &m->counts, *c;
    for (; (c = *link); link = &c->next)
        if (c->route == x->route && c->status == status)
            break;
    if (c)
        *link = c->next;
    else
        c = clave__mem_zalloc(&x->web->mem, sizeof *c);
    if (!c)
        return NULL;
    c->route = x->route;
    c->status = status;
    c->next = m->counts;
    m->counts = c;
    return c;
}

void clave__http_metrics_note(const struct web_exchange *x, unsigned status)
{
    assert(x->answered);
    struct http_metrics *m = x->web->http_metrics;
    struct http_count *c = http_count_of(m, x, status);
    if (c)
        c->n++;
    clave__histogram_note(&m->seconds, x->web->now - x->arrived);
    for (size_t i = 0; i < REFUSALS; i++)
        m->refused[i] += refusals[i].status == (x->refused ? x->refused : status);
}

uint64_t clave__http_metrics_answered(const struct web *w)
{
    return clave__histogram_count(&w->http_metrics->seconds);
}

/* ---- the page -------------------------------------------------------------------------------- */

/* Writes how many requests have no answer yet, and how many read a stream. */
static void http_put_waiting(const struct web *w, struct prometheus *p)
{
    static const struct prometheus_family family = {
        "clave_http_waiting", PROMETHEUS_GAUGE, 0,
        "Requests that wait for their answer, and answers that go on."};
    int64_t answers = 0, streams = 0;
    for (struct list *at = w->exchanges.next; at != &w->exchanges; at = at->next) {
        const struct web_exchange *x = LIST_ENTRY(at, struct web_exchange, link);
        answers += !x->answered && !x->ended;
        streams += x->answered && !x->ended && x->answer.more;
    }
    clave__prometheus_family(p, &family);
    clave__prometheus_put(p, (struct prometheus_label[]){{"how", "answer"}, {0}}, answers);
    clave__prometheus_put(p, (struct prometheus_label[]){{"how", "stream"}, {0}}, streams);
}

void clave__http_metrics_put(const struct web *w, struct prometheus *p)
{
    static const struct prometheus_family requests = {"clave_http_requests", PROMETHEUS_COUNTER, 0,
                                                      "Requests that were answered, by status."};
    static const struct prometheus_family seconds = {
        "clave_http_request_seconds", PROMETHEUS_HISTOGRAM, 3, "From a request to its answer."};
    static const struct prometheus_family refused = {"clave_http_refused", PROMETHEUS_COUNTER, 0,
                                                     "Requests that were refused."};
    const struct http_metrics *m = w->http_metrics;
    clave__prometheus_family(p, &requests);
    for (const struct http_count *c = m->counts; c; c = c->next) {
        char code[12];
        snprintf(code, sizeof code, "%u", c->status);
        struct prometheus_label labels[] = {{"route", c->route ? c->route->pattern : "none"},
                                            {"method", c->route ? c->route->method : "any"},
                                            {"code", code},
                                            {0}};
        clave__prometheus_put(p, labels, (int64_t)c->n);
    }
    clave__prometheus_family(p, &seconds);
    clave__prometheus_histogram(p, NULL, &m->seconds);
    http_put_waiting(w, p);
    clave__prometheus_family(p, &refused);
    for (size_t i = 0; i < REFUSALS; i++)
        clave__prometheus_put(p, (struct prometheus_label[]){{"reason", refusals[i].reason}, {0}},
                              (int64_t)m->refused[i]);
}
