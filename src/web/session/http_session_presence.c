/* http_session_presence.c - is the client of a session still there? Called when its requests come
 * and go, and by the timer. Invariant: a LIVE session without a request has its timer set, by which
 * it ends; so no session outlives a silent client for long. */
#include "client/session_keeper.h"
#include "web/session/http_session.h"

enum { OPENING_MS = 10000, MOST_ENDED = 10000 };

/* So long a session is kept after its client was heard: its timeout, which is what the client was
 * promised at most, and a part of it more for a clock that is slower than ours. */
static int64_t silence_ms(const struct http_session *s)
{
    return (int64_t)s->ttl_ms + s->ttl_ms / SESSION_CLOCKS;
}

void clave__http_session_settle(struct http_session *s)
{
    struct web *w = s->all->web;
    if (s->client && s->state != HTTP_SESSION_CLOSING)
        clave__client_rest(s->client, s->present == 0 && s->state == HTTP_SESSION_LIVE);
    switch (s->state) {
    case HTTP_SESSION_OPENING:
        clave__web_timer_set(w, &s->timer, s->present > 0 ? s->made + OPENING_MS : w->now);
        break;
    case HTTP_SESSION_LIVE:
        if (s->present > 0)
            clave__web_timer_clear(w, &s->timer);
        else
            clave__web_timer_set(w, &s->timer, s->heard + silence_ms(s));
        break;
    case HTTP_SESSION_CLOSING:
        clave__web_timer_clear(w, &s->timer); /* its client has a limit of its own */
        break;
    case HTTP_SESSION_ENDED:
        if (s->present > 0)
            clave__web_timer_clear(w, &s->timer);
        else if (!s->known && !s->client) /* nobody can ask why */
            clave__web_timer_set(w, &s->timer, w->now);
        else
            clave__web_timer_set(w, &s->timer, s->heard + silence_ms(s));
        break;
    }
}

void clave__http_sessions_forget(struct http_sessions *ss)
{
    struct web *w = ss->web;
    struct http_session *s = LIST_ENTRY(ss->ended.next, struct http_session, in_ended);
    if (ss->nended > (w->o.max_sessions ? w->o.max_sessions : MOST_ENDED) && s->present == 0 &&
        !s->client)
        clave__web_timer_set(w, &s->timer, w->now);
}

void clave__http_session_enter(struct http_session *s)
{
    struct web *w = s->all->web;
    if (s->state != HTTP_SESSION_ENDED)
        s->heard = w->now;
    s->present++;
    clave__http_session_settle(s);
    if (!s->client)
        return;
    clave_async_client_tick(s->client, w->now); /* it may be over already */
    if (!s->attached)
        clave__http_session_flush(s); /* it may have rested */
}

void clave__http_session_leave(struct http_session *s)
{
    s->present--;
    if (s->state != HTTP_SESSION_ENDED)
        s->heard = s->all->web->now;
    clave__http_session_settle(s);
}

/* ---- a silent client ------------------------------------------------------------------------- */

static void on_farewell(clave_async_client *c, const clave_result *res, void *arg)
{
    struct http_session *s = arg;
    (void)c;
    (void)res;
    clave__http_session_let_go(s);
}

/* Its places are given back by deletes, which the servers refuse if the session lives on another
 * gate; then the connection is dropped, and the rest goes with the session's timeout. */
static void http_session_fall_silent(struct http_session *s)
{
    static const clave_op check = {.kind = CLAVE_OP_CHECK, .path = "/", .version = -1};
    bool attached = s->attached;
    clave__http_session_end(s, CLAVE_EREQUESTTIMEOUT, !attached);
    if (!s->client)
        return;
    if (clave_async_multi(s->client, &check, 1, on_farewell, s) != CLAVE_OK)
        clave__http_session_let_go(s);
    else
        clave__http_session_flush(s);
}

void clave__http_session_due(struct timer *t, int64_t now)
{
    struct http_session *s = LIST_ENTRY(t, struct http_session, timer);
    switch (s->state) {
    case HTTP_SESSION_OPENING:
        clave__http_session_end(s, CLAVE_EUNREACHABLE, true);
        break;
    case HTTP_SESSION_LIVE:
        http_session_fall_silent(s);
        break;
    case HTTP_SESSION_ENDED:
        if (s->client) { /* no server has answered its farewell */
            clave__http_session_let_go(s);
            s->heard = now;
            clave__http_session_settle(s);
        } else {
            clave__http_session_free(s);
        }
        break;
    case HTTP_SESSION_CLOSING:
        break;
    }
}
