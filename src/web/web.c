/* web.c - the engine: a request comes in, is checked, and its route's handler answers it; the
 * timers; the end. Called by the driver only. Invariant of web.h: each exchange is answered once,
 * and freed after _end and after the last callback that it expects. */
#include "web/web.h"

#include <assert.h>
#include <string.h>

#include "client/client_for_gate.h"
#include "web/api/api.h"
#include "web/http/exchange.h"
#include "web/http/sender.h"
#include "web/observe/observe.h"
#include "web/session/claim.h"
#include "web/session/http_session.h"
#include "web/web_internal.h"

/* ---- life ----------------------------------------------------------------------------------- */

clave_err clave__web_new(struct web **out, const struct web_options *o)
{
    assert(o->seed != 0 && o->env && o->hosts);
    struct clave_mem mem = clave__mem_or_default(o->mem);
    struct web *w = clave__mem_zalloc(&mem, sizeof *w);
    *out = NULL;
    if (!w)
        return CLAVE_ENOMEM;
    w->mem = mem;
    w->o = *o;
    w->routes = &clave__routes;
    list_init(&w->exchanges);
    list_init(&w->rest_sessions);
    list_init(&w->slot_places);
    clave__rand_seed(&w->rand, o->seed);
    w->o.hosts = clave__mem_strdup(&mem, o->hosts);
    w->o.connect = clave__mem_strdup(&mem, o->connect ? o->connect : o->hosts);
    clave_err err =
        w->o.hosts && w->o.connect ? clave__http_sessions_new(w, o->session_key) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        w->sessions->listed = clave__claims_listed;
    if (err == CLAVE_OK)
        err = clave__observe_new(w);
    if (err == CLAVE_OK)
        err = clave__http_metrics_new(w);
    if (err == CLAVE_OK)
        err = clave__senders_new(w);
    if (err == CLAVE_OK)
        err = clave__znode_polls_new(w);
    if (err == CLAVE_OK)
        err = clave__own_client_open(w);
    if (err == CLAVE_OK)
        err = clave__server_trend_new(w);
    if (err == CLAVE_OK && o->observe)
        clave__observe_feed_start(w->observe);
    if (err == CLAVE_OK)
        *out = w;
    else
        clave__web_free(w);
    return err;
}

void clave__web_set_wall(struct web *w, int64_t wall)
{
    clave__observe_set_wall(w->observe, wall);
}

void clave__web_take_replay(struct web *w, int64_t now, struct lock_replay *r)
{
    w->now = now > w->now ? now : w->now;
    clave__observe_take_replay(w->observe, r);
}

void clave__web_tell_cause(struct web *w, int64_t czxid, int cause)
{
    assert(cause >= 0 && cause < LOCK_CAUSES);
    clave__observe_suppose_cause(w->observe, czxid, (enum lock_cause)cause);
}

void clave__web_take_figures(struct web *w, int64_t now, const int64_t figures[WEB_FIGURES])
{
    w->now = now > w->now ? now : w->now;
    clave__server_trend_take(w->figures, figures);
}

void clave__web_free(struct web *w)
{
    if (!w)
        return;
    clave__rest_sessions_free(w);
    clave__http_sessions_free(w);
    clave__observe_feed_stop(w->observe);
    clave__own_client_free(w); /* this runs the callbacks that are still expected */
    assert(list_empty(&w->exchanges));
    assert(list_empty(&w->slot_places));
    clave__observe_free(w);
    clave__http_metrics_free(w);
    clave__znode_polls_free(w);
    clave__senders_free(w);
    clave__server_trend_free(w);
    struct clave_mem mem = w->mem;
    clave__mem_free(&mem, (char *)(uintptr_t)w->o.hosts);
    clave__mem_free(&mem, (char *)(uintptr_t)w->o.connect);
    clave__mem_free(&mem, w);
}

/* ---- a request ------------------------------------------------------------------------------ */

static void web_exchange_refuse_closing(struct web_exchange *x)
{
    assert(x->web->closing);
    clave__web_refuse(x, 503, CLAVE_EUNREACHABLE, NULL, "the gate is shutting down");
}

/* True if the request has asked the servers for a change, which may be made whatever is answered.
 */
static bool web_exchange_may_be_done(const struct web_exchange *x)
{
    bool asks = x->expected > 0 && !x->only_reads;
    return x->begun || (asks && !clave__web_reads(x));
}

/* Nobody waits for the answer any more, so the owner lets go of the exchange. */
static void web_exchange_cancel(struct web_exchange *x)
{
    if (x->owner && x->owner->hung_up)
        x->owner->hung_up(x);
    clave__web_leave(x);
}

/* Changes that `x`, freed by this perhaps, has asked for and that have not left must not take
 * effect after its answer. Their callbacks answer what still waits: nothing was done. */
static void web_withdraw(struct web *w, int64_t session, const struct web_exchange *x)
{
    struct http_session *s = session ? clave__http_session_by_id(w->sessions, session) : NULL;
    if (w->own)
        clave__client_withdraw(w->own, w->now, x);
    if (s && s->client)
        clave__client_withdraw(s->client, w->now, x);
}

/* The servers have not answered in time, but may still carry out what they were asked for. */
static void web_on_exchange_late(struct timer *t, int64_t now)
{
    struct web_exchange *x = LIST_ENTRY(t, struct web_exchange, timer);
    (void)now;
    web_withdraw(x->web, x->deed.session, x);
    if (x->answered)
        return;
    if (x->owner && x->owner->late)
        x->owner->late(x);
    web_exchange_cancel(x);
    if (x->answered)
        return;
    clave__web_problem_err(x, x->only_reads ? CLAVE_EUNREACHABLE : CLAVE_EOPTIMEOUT,
                           "finish the request", NULL);
}

clave_err clave__web_begin(struct web *w, int64_t now, const struct web_request *q, void *transport,
                           struct web_exchange **out)
{
    w->now = now > w->now ? now : w->now;
    struct web_exchange *x = *out = clave__exchange_new(w, q, transport, web_on_exchange_late);
    if (!x)
        return CLAVE_ENOMEM;
    if (w->closing)
        web_exchange_refuse_closing(x);
    else
        clave__web_admit(x);
    return CLAVE_OK;
}

bool clave__web_take_body(struct web_exchange *x, int64_t now, const void *p, size_t n)
{
    assert(!x->ended);
    x->web->now = now > x->web->now ? now : x->web->now;
    return !x->answered && clave__web_receive(x, p, n);
}

void clave__web_body_done(struct web_exchange *x, int64_t now)
{
    assert(!x->ended);
    x->web->now = now > x->web->now ? now : x->web->now;
    if (x->answered)
        return;
    assert(x->route); /* without one it was answered */
    x->route->handle(x);
    if (!x->answered)
        clave__shares_count_waiting(x);
}

bool clave__web_is_known(const struct web_exchange *x)
{
    const char *secret = clave__web_header(x, "Clave-Session");
    struct sealed_session sealed;
    return x->who.is_known || (x->who.found == ACCESS_KNOWN && secret &&
                               clave__unseal(&x->web->sessions->key, secret, &sealed));
}

struct sender *clave__web_keep(struct web_exchange *x)
{
    size_t most;
    if (!clave__web_is_known(x) || clave__shares_may(x, SENDER_CONNECTIONS, 1, &most) != SENDER_MAY)
        return NULL;
    clave__sender_add(x->web, x->sender, SENDER_CONNECTIONS, 1);
    return clave__sender_ref(x->sender);
}

void clave__web_keep_no_more(struct web *w, struct sender *s)
{
    clave__sender_give(w, s, SENDER_CONNECTIONS, 1);
    clave__sender_unref(w, s);
}

struct web_answer *clave__web_exchange_answer(struct web_exchange *x)
{
    assert(x->answered && !x->ended);
    return &x->answer;
}

void clave__web_end(struct web_exchange *x, int64_t now)
{
    if (!x)
        return;
    assert(!x->ended);
    x->web->now = now > x->web->now ? now : x->web->now;
    web_exchange_cancel(x);
    if (x->answer.end)
        x->answer.end(x->more_arg ? x->more_arg : x->answer.arg);
    struct web *w = x->web;
    int64_t session = x->deed.session;
    bool is_asking = x->expected > 0;
    clave__exchange_drop(x);
    if (is_asking) /* else it is freed */
        web_withdraw(w, session, x);
}

/* ---- who may -------------------------------------------------------------------------------- */

/* Ends a stream whose sender has lost the right to it. */
static clave_err web_revoked_more(void *arg, struct buf *out, bool *done)
{
    (void)arg;
    (void)out;
    (void)done;
    return CLAVE_ENOAUTH;
}

/* A sender that has lost the right to start a request also loses the requests in progress. */
static void web_exchange_check_again(struct web_exchange *x)
{
    bool goes_on = !x->answered || x->answer.more;
    if (x->ended || !goes_on || clave__web_admit_again(x) || web_exchange_may_be_done(x))
        return;
    web_exchange_cancel(x);
    if (!x->answered)
        clave__web_refuse_now(x);
    else if (x->answer.more)
        x->answer.more = web_revoked_more;
    clave__web_wake(x);
}

void clave__web_set_access(struct web *w, const struct web_access *access)
{
    w->o.access = access;
    for (struct list *e = w->exchanges.next, *next; e != &w->exchanges; e = next) {
        next = e->next;
        web_exchange_check_again(LIST_ENTRY(e, struct web_exchange, link));
    }
    clave__claims_judge(w->sessions);
    clave__slot_places_judge(w);
}

void clave__web_set_max_waiting(struct web *w, size_t most)
{
    w->o.max_waiting = most;
}

void clave__web_set_max_connections(struct web *w, size_t most)
{
    w->o.max_connections = most;
}

void clave__web_set_max_sender_sessions(struct web *w, size_t most)
{
    w->o.max_sender_sessions = most;
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

/* Answers a request that still waits when the gate stops, according to what it has begun. */
static void web_exchange_stop(struct web_exchange *x)
{
    bool waits = !x->answered && !x->ended;
    if (waits && x->owner && x->owner->stop)
        x->owner->stop(x);
    web_exchange_cancel(x);
    if (!waits || x->answered)
        return;
    if (web_exchange_may_be_done(x))
        clave__web_problem_err(x, CLAVE_EOPTIMEOUT, "finish the request", NULL);
    else
        web_exchange_refuse_closing(x);
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
        web_exchange_stop(x);
    }
    clave__http_sessions_close(w->sessions);
    clave__own_client_close(w, now);
}

bool clave__web_is_closed(const struct web *w)
{
    return w->closing && clave__http_sessions_are_closed(w->sessions) &&
           clave__own_client_is_closed(w);
}
