/* http_state.c - the state of a connection and how long that may last. A client that trickles
 * bytes, or does not read, must not keep a place: every state but HTTP_WAITING ends. Invariant:
 * until its channel is closing, a connection is in the list of its state, ordered by `until`. */
#include "runtime/http/http_internal.h"

/* How long a client that is refused has to read that. */
enum { LINGERING_MS = 2000 };

/* A client that connects too often must not fill the log. */
void clave__http_connection_warn(struct http_connection *c, const char *what, const char *why)
{
    struct http *h = c->http;
    if (clave__log_may_tell(&h->turned_at, uv_now(h->o.loop)))
        clave__log(&h->o.log, CLAVE_LOG_WARN, "%s is %s: %s", c->peer.text, what, why);
}

static uint64_t http_state_limit(const struct http_connection *c, enum http_state state)
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

/* Behind those that are disconnected before it; most often that is the end. */
static void http_state_sort(struct http_connection *c)
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
    uint64_t ms = http_state_limit(c, to);
    h->nshaking += (size_t)(to == HTTP_SHAKING);
    h->nshaking -= (size_t)(c->state == HTTP_SHAKING);
    c->state = to;
    c->until = ms > 0 ? uv_now(h->o.loop) + ms : UINT64_MAX;
    list_remove(&c->link);
    http_state_sort(c);
    clave__http_arm(h, c->until);
}

static void http_state_give_up(struct http_connection *c)
{
    if (c->state == HTTP_SHAKING && c->channel.state == CHANNEL_SECURING)
        clave__http_connection_warn(c, "turned away",
                                    c->is_tls ? "its TLS handshake takes too long"
                                              : "a header of the PROXY protocol does not come");
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
            http_state_give_up(c);
        }
    while (h->o.total_ms > 0 && !list_empty(&h->all)) {
        struct http_connection *c = LIST_ENTRY(h->all.next, struct http_connection, by_age);
        if (c->born + h->o.total_ms > now)
            return c->born + h->o.total_ms < least ? c->born + h->o.total_ms : least;
        clave__channel_close(&c->channel, 0);
    }
    return least;
}
