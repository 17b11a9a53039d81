/* web.c - the engine: a request comes in, is checked, and its route's handler answers it; the
 * timers; the end. Called by the driver only. Invariant of web.h: each exchange is answered once,
 * and freed after _end and after the last callback that it expects. */
#include "web/web.h"

#include <assert.h>
#include <string.h>

#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/http/routes.h"
#include "web/own_client.h"

enum { MAX_BODY = 2 << 20, MAX_HEADER_BYTES = 16384 };

/* ---- life ----------------------------------------------------------------------------------- */

clave_err clave__web_new(struct web **out, const struct web_options *o)
{
    struct clave_mem mem = clave__mem_or_default(o->mem);
    struct web *w = clave__mem_zalloc(&mem, sizeof *w);
    *out = NULL;
    if (!w)
        return CLAVE_ENOMEM;
    w->mem = mem;
    w->o = *o;
    list_init(&w->exchanges);
    clave__rand_seed(&w->rand, o->seed);
    w->o.hosts = clave__mem_strdup(&mem, o->hosts);
    clave_err err = w->o.hosts ? clave__own_client_open(w) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        *out = w;
    else
        clave__web_free(w);
    return err;
}

void clave__web_set_access(struct web *w, const struct web_access *access)
{
    w->o.access = access;
}

void clave__web_free(struct web *w)
{
    if (!w)
        return;
    clave__own_client_free(w); /* which ends what still expects a callback */
    assert(list_empty(&w->exchanges));
    struct clave_mem mem = w->mem;
    clave__mem_free(&mem, (char *)(uintptr_t)w->o.hosts);
    clave__mem_free(&mem, w);
}

/* ---- a request ------------------------------------------------------------------------------ */

static void exchange_refuse(struct web_exchange *x, unsigned status, clave_err err,
                            const char *text)
{
    clave__web_problem(x, &(struct problem){.status = status, .err = err}, "%s", text);
}

/* The status of a request that is too large, and what of it is; or 0. */
static unsigned request_size_fault(const struct web *w, const struct web_request *q,
                                   const char **what)
{
    size_t headers = 0;
    for (size_t i = 0; i < q->nheaders; i++)
        headers += strlen(q->headers[i].name) + strlen(q->headers[i].value);
    *what = "the path and query are too long";
    if (strlen(q->target) > TARGET_MAX)
        return 414;
    *what = "the headers are too large";
    if (headers > MAX_HEADER_BYTES)
        return 431;
    *what = "the body is too large";
    return q->len > (w->o.max_body ? w->o.max_body : MAX_BODY) ? 413 : 0;
}

static bool exchange_read_target(struct web_exchange *x)
{
    char *text = clave__web_strndup(x, x->q->target, strlen(x->q->target));
    const char *fault = text ? clave__target_parse(&x->target, text) : NULL;
    if (!text)
        exchange_refuse(x, 503, CLAVE_ENOMEM, "out of memory");
    else if (fault)
        exchange_refuse(x, 400, CLAVE_EINVAL, fault);
    return text && !fault;
}

static bool exchange_find_route(struct web_exchange *x)
{
    char allow[ROUTE_ALLOW_CAP];
    switch (clave__route_find(x, allow)) {
    case ROUTE_OK:
        return true;
    case ROUTE_NONE:
        exchange_refuse(x, 404, CLAVE_EINVAL,
                        "there is nothing at this path: see /v1/openapi.json");
        return false;
    case ROUTE_OTHER_METHOD:
        clave__web_set_header(x, "Allow", "%s", allow);
        clave__web_problem(x, &(struct problem){.status = 405, .err = CLAVE_EINVAL},
                           "there is no %.16s of this path, but %s", x->q->method, allow);
        return false;
    case ROUTE_BAD_PATH:
        exchange_refuse(x, 400, CLAVE_EINVAL, "the path has a malformed percent escape");
        return false;
    case ROUTE_NO_MEMORY:
        exchange_refuse(x, 503, CLAVE_ENOMEM, "out of memory");
        return false;
    }
    return false;
}

static void exchange_run(struct web_exchange *x)
{
    struct web *w = x->web;
    const char *what;
    unsigned status = request_size_fault(w, x->q, &what);
    if (status)
        exchange_refuse(x, status, CLAVE_ETOOBIG, what);
    else if (w->closing)
        exchange_refuse(x, 503, CLAVE_ECLOSED, "the gate is shutting down");
    else if (exchange_read_target(x) && exchange_find_route(x))
        x->route->handle(x);
}

clave_err clave__web_begin(struct web *w, int64_t now, const struct web_request *q, void *transport,
                           struct web_exchange **out)
{
    w->now = now > w->now ? now : w->now;
    struct web_exchange *x = *out = clave__exchange_new(w, q, transport);
    if (!x)
        return CLAVE_ENOMEM;
    exchange_run(x);
    return CLAVE_OK;
}

struct web_answer *clave__web_exchange_answer(struct web_exchange *x)
{
    return &x->answer;
}

/* The handler that waits to answer forgets the exchange. */
static void exchange_cancel(struct web_exchange *x)
{
    void (*cancel)(struct web_exchange *) = x->cancel;
    x->cancel = NULL;
    if (cancel)
        cancel(x);
}

void clave__web_end(struct web_exchange *x, int64_t now)
{
    if (!x)
        return;
    x->web->now = now > x->web->now ? now : x->web->now;
    exchange_cancel(x);
    if (x->answer.end)
        x->answer.end(x->answer.arg);
    clave__exchange_drop(x);
}

/* ---- time ----------------------------------------------------------------------------------- */

int64_t clave__web_deadline(const struct web *w)
{
    return clave__timers_next(&w->timers);
}

void clave__web_tick(struct web *w, int64_t now)
{
    w->now = now > w->now ? now : w->now;
    for (struct timer *t; (t = clave__timers_pop(&w->timers, w->now));)
        t->fire(t, w->now);
}

void clave__web_close(struct web *w, int64_t now)
{
    w->now = now > w->now ? now : w->now;
    if (w->closing)
        return;
    w->closing = true;
    for (struct list *e = w->exchanges.next, *next; e != &w->exchanges; e = next) {
        struct web_exchange *x = LIST_ENTRY(e, struct web_exchange, link);
        next = e->next;
        exchange_cancel(x);
        if (!x->answered && !x->ended)
            exchange_refuse(x, 503, CLAVE_ECLOSED, "the gate is shutting down");
    }
    clave__own_client_close(w, now);
}

bool clave__web_is_closed(const struct web *w)
{
    return w->closing && clave__own_client_is_closed(w);
}
