/* http_schedule.c - when a connection of an HTTP server continues, and when it ends. It continues
 * in a later turn of the loop, which all connections share with the loop's other work. It ends when
 * its state has lasted too long, because a client that trickles bytes or does not read must not
 * keep its place; every state except HTTP_WAITING has a limit.
 *
 * What must stay true: until its channel is closing, a connection is in the list of its state,
 * ordered by `until`. */
#include <assert.h>
#include <stdlib.h>

#include "base/log_line.h"
#include "runtime/http/http_internal.h"
#include "runtime/listen.h"
#include "runtime/tls/tls_context.h"

enum { RESUMED_A_TURN = 128 };
/* After this time no further request is begun in a turn of the loop, and no further piece made. It
 * counts from the first of them, so every turn does at least one. */
enum { TURN_NS = 2000000 };

/* Connections that are not done in this turn continue in the next one. */
static void http_turn_on_idle(uv_idle_t *turn)
{
    struct http *h = turn->data;
    struct list now;
    struct list *e;
    list_init(&now);
    list_splice(&now, &h->ready);
    for (int left = RESUMED_A_TURN; left > 0 && (e = list_pop_front(&now)); left--)
        h->go_on(LIST_ENTRY(e, struct http_connection, in_ready));
    list_splice(&now, &h->ready);
    list_splice(&h->ready, &now);
    if (list_empty(&h->ready))
        uv_idle_stop(turn);
}

static void http_turn_want(struct http *h)
{
    if (!h->is_stopped)
        uv_idle_start(&h->turn, http_turn_on_idle);
}

void clave__http_ready(struct http_connection *c)
{
    if (list_empty(&c->in_ready))
        list_push_back(&c->http->ready, &c->in_ready);
    http_turn_want(c->http);
}

bool clave__http_turn_is_over(struct http *h)
{
    uint64_t now = uv_hrtime();
    if (h->turn_ends == 0)
        h->turn_ends = now + TURN_NS;
    return now >= h->turn_ends;
}

static void http_turn_on_check(uv_check_t *check)
{
    struct http *h = check->data;
    h->has_made_piece = false;
    h->turn_ends = 0;
}

static void http_turn_arm(struct http *h, uint64_t until);

static void http_turn_on_timer(uv_timer_t *t)
{
    struct http *h = t->data;
    h->armed = UINT64_MAX;
    http_turn_arm(h, h->expire(h));
}

/* Makes sure that the timer runs by then. If it runs too early it finds out when to run next, which
 * costs less than moving it each time. */
static void http_turn_arm(struct http *h, uint64_t until)
{
    uint64_t now = uv_now(h->o.loop);
    if (h->is_stopped || until >= h->armed)
        return;
    h->armed = until;
    uv_timer_start(&h->timer, http_turn_on_timer, until > now ? until - now : 0, 0);
}

void clave__http_gone(struct http *h)
{
    if (!h->accept_pending || h->is_quiet)
        return;
    h->accept_pending = false;
    for (struct list *e = h->listeners.next; e != &h->listeners; e = e->next)
        clave__listener_watch(LIST_ENTRY(e, struct listener, link), true);
}

/* ---- the states of a connection ------------------------------------------------------------- */

/* How long a refused client has to read the refusal. */
enum { LINGERING_MS = 2000 };

/* A client that connects too often must not fill the log. */
void clave__http_connection_warn(struct http_connection *c, const char *what, const char *why)
{
    struct http *h = c->http;
    if (clave__log_may_tell(&h->turned_at, uv_now(h->o.loop)))
        clave__log_about(&h->o.log, CLAVE_LOG_WARN, &(struct log_about){.connection = c->peer.text},
                         "%s is %s: %s", c->peer.text, what, why);
}

static uint64_t http_turn_limit(const struct http_connection *c, enum http_state state)
{
    const struct http_options *o = &c->http->o;
    const struct web_answer *a = c->exchange ? c->exchange->answer : NULL;
    if (state == HTTP_LINGERING)
        return LINGERING_MS;
    if (state == HTTP_SENDING && a && a->sending_ms > 0)
        return (uint64_t)a->sending_ms;
    if (o->silent_s > 0 && state != HTTP_WAITING)
        return (uint64_t)o->silent_s * 1000;
    return o->ms[state];
}

/* Inserts the connection behind those that are disconnected before it, which usually means at the
 * end. */
static void http_turn_sort(struct http_connection *c)
{
    struct list *all = &c->http->in_state[c->state], *at = all->prev;
    while (at != all && LIST_ENTRY(at, struct http_connection, link)->until > c->until)
        at = at->prev;
    list_remove(&c->link);
    list_push_front(at, &c->link);
}

void clave__http_connection_enter(struct http_connection *c, enum http_state to)
{
    struct http *h = c->http;
    assert(c->state != HTTP_SHAKING || to == HTTP_SHAKING || h->nshaking > 0);
    uint64_t ms = http_turn_limit(c, to);
    h->nshaking += (size_t)(to == HTTP_SHAKING);
    h->nshaking -= (size_t)(c->state == HTTP_SHAKING);
    c->state = to;
    c->until = ms > 0 ? uv_now(h->o.loop) + ms : UINT64_MAX;
    list_remove(&c->link);
    http_turn_sort(c);
    http_turn_arm(h, c->until);
}

static void http_turn_give_up(struct http_connection *c)
{
    if (c->state == HTTP_SHAKING && c->channel.state == CHANNEL_SECURING)
        clave__http_connection_warn(c, "turned away",
                                    c->is_tls ? "its TLS handshake takes too long"
                                              : "no header of the PROXY protocol arrives");
    clave__channel_close(&c->channel, 0);
}

uint64_t clave__http_connections_expire(struct http *h)
{
    uint64_t now = uv_now(h->o.loop), least = UINT64_MAX;
    for (int state = 0; state < HTTP_STATES; state++)
        while (!list_empty(&h->in_state[state])) {
            struct http_connection *c =
                LIST_ENTRY(h->in_state[state].next, struct http_connection, link);
            if (c->until > now) {
                least = c->until < least ? c->until : least;
                break;
            }
            http_turn_give_up(c);
        }
    while (h->o.total_ms > 0 && !list_empty(&h->all)) {
        struct http_connection *c = LIST_ENTRY(h->all.next, struct http_connection, by_age);
        if (c->born + h->o.total_ms > now)
            return c->born + h->o.total_ms < least ? c->born + h->o.total_ms : least;
        clave__channel_close(&c->channel, 0);
    }
    return least;
}

/* ---- starting and stopping ------------------------------------------------------------------- */

void clave__http_release(struct http *h)
{
    assert(h->handles > 0);
    if (--h->handles > 0)
        return;
    clave__http_shares_fini(&h->shares);
    clave_tls_free(h->o.tls);
    free(h);
}

void clave__http_turns_begin(struct http *h)
{
    assert(h->handles == 0);
    uv_timer_init(h->o.loop, &h->timer);
    uv_idle_init(h->o.loop, &h->turn);
    uv_check_init(h->o.loop, &h->new_turn);
    h->timer.data = h->turn.data = h->new_turn.data = h;
    h->handles = 3;
    h->armed = UINT64_MAX;
    uv_check_start(&h->new_turn, http_turn_on_check);
    uv_unref((uv_handle_t *)&h->new_turn);
}

static void http_turn_on_closed(uv_handle_t *handle)
{
    clave__http_release(handle->data);
}

void clave__http_turns_end(struct http *h)
{
    h->is_stopped = true;
    uv_close((uv_handle_t *)&h->timer, http_turn_on_closed);
    uv_close((uv_handle_t *)&h->turn, http_turn_on_closed);
    uv_close((uv_handle_t *)&h->new_turn, http_turn_on_closed);
}
