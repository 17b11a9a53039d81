/* http_session_end.c - the end of an HTTP session, and its memory after that: how it ended is kept
 * for its client to ask. Stands on nothing of http_session.c, which calls it. Invariant: an ENDED
 * session without a request has its timer set, by which it is freed. */
#include <assert.h>
#include <stdio.h>

#include "client/client_for_gate.h"
#include "web/http/sender_limits.h"
#include "web/session/claim_events.h"
#include "web/session/claim_nodes.h"
#include "web/session/http_session.h"

enum { MOST_ENDED = 10000 };

static void http_session_leave_map(struct http_session *s)
{
    if (s->in_map)
        clave__map_remove(&s->all->by_id, &s->by_id);
    s->in_map = false;
}

void clave__http_session_free(struct http_session *s)
{
    struct list *l;
    struct web *w = s->all->web;
    assert(!s->client && list_empty(&s->waits));
    assert(list_empty(&s->proving) && list_empty(&s->unproven) && list_empty(&s->knowing));
    assert(s->taking == 0);
    clave__claim_marks_free(s);
    while ((l = list_pop_front(&s->parts))) {
        struct session_part *p = LIST_ENTRY(l, struct session_part, link);
        p->free(p);
    }
    http_session_leave_map(s);
    list_remove(&s->link);
    s->all->nended -= !list_empty(&s->in_ended);
    list_remove(&s->in_ended);
    clave__web_timer_clear(w, &s->timer);
    clave__sender_unref(w, s->sender);
    clave__mem_free(&w->mem, s->name);
    clave__mem_free(&w->mem, s->auths);
    clave__mem_free(&w->mem, s);
}

/* ---- it ends --------------------------------------------------------------------------------- */

void clave__session_wait_cancel(struct session_wait *w)
{
    list_remove(&w->link);
}

void clave__http_session_tell(struct http_session *s, clave_err err)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->waits);
    list_splice(&round, &s->proving);
    list_splice(&round, &s->unproven);
    list_splice(&round, &s->knowing);
    while ((l = list_pop_front(&round))) {
        struct session_wait *w = LIST_ENTRY(l, struct session_wait, link);
        /* Its end as its client asked for it is no proof that it lives. */
        bool over = err == CLAVE_OK && s->state == HTTP_SESSION_ENDED && !w->ends;
        w->done(w, over ? CLAVE_ECLOSED : err);
    }
}

void clave__http_session_let_go(struct http_session *s)
{
    struct web *w = s->all->web;
    clave_async_client *c = s->client;
    s->client = NULL;
    s->attached = false;
    if (!c)
        return;
    clave__sender_give(w, s->sender, SENDER_SESSIONS, 1);
    clave_async_client_abandon(c, w->now); /* before it begins another session */
    w->o.env->client_free(w->o.env->arg, c);
}

/* The ZooKeeper session may live on, at another gate perhaps: who asks for it again is not told
 * that it is over, but attached to it if the servers know it. */
static bool http_session_may_live(const struct http_session *s, clave_err why)
{
    return why == CLAVE_EUNREACHABLE || why == CLAVE_ETIMEDOUT || why == CLAVE_ENOMEM ||
           why == CLAVE_ECONNLOSS || (why == CLAVE_EREQUESTTIMEOUT && !s->attached);
}

/* A part may be freed as soon as it has ended. */
static void http_session_end_parts(struct http_session *s, clave_err why)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->parts);
    while ((l = list_pop_front(&round))) {
        struct session_part *p = LIST_ENTRY(l, struct session_part, link);
        list_push_back(&s->parts, l);
        p->ended(p, why);
    }
}

/* ---- it is kept ------------------------------------------------------------------------------ */

int64_t clave__http_session_silent_at(const struct http_session *s)
{
    return s->heard + s->ttl_ms + s->ttl_ms / SESSION_CLOCKS;
}

void clave__http_session_keep_ended(struct http_session *s)
{
    assert(s->state == HTTP_SESSION_ENDED);
    struct web *w = s->all->web;
    if (s->client)
        clave__client_rest(s->client, false);
    if (s->present > 0)
        clave__web_timer_clear(w, &s->timer);
    else if (!s->known && !s->client) /* nobody can ask why */
        clave__web_timer_set(w, &s->timer, w->now);
    else
        clave__web_timer_set(w, &s->timer, clave__http_session_silent_at(s));
}

void clave__http_session_forget(struct http_session *s, int64_t now)
{
    assert(s->present == 0);
    if (!s->client) {
        clave__http_session_free(s);
        return;
    }
    clave__http_session_let_go(s); /* no server has answered its farewell */
    s->heard = now;
    clave__http_session_keep_ended(s);
}

/* One has ended: the oldest of too many is due. */
static void http_sessions_forget_oldest(struct http_sessions *ss)
{
    struct web *w = ss->web;
    struct http_session *s = LIST_ENTRY(ss->ended.next, struct http_session, in_ended);
    if (ss->nended > (w->o.max_sessions ? w->o.max_sessions : MOST_ENDED) && s->present == 0 &&
        !s->client)
        clave__web_timer_set(w, &s->timer, w->now);
}

/* ---- the move to ENDED ----------------------------------------------------------------------- */

void clave__http_session_end(struct http_session *s, clave_err why, bool client_too)
{
    if (s->state == HTTP_SESSION_ENDED)
        return;
    bool over = !http_session_may_live(s, why) && !s->all->web->closing;
    s->state = HTTP_SESSION_ENDED;
    s->why = why;
    if (http_session_may_live(s, why))
        http_session_leave_map(s);
    if (s->client)
        snprintf(s->fault, sizeof s->fault, "%s", clave_async_client_errmsg(s->client));
    s->present++; /* what follows may be the end of the last request */
    http_session_end_parts(s, why);
    if (over)
        clave__http_session_publish_end(s, why);
    if (client_too)
        clave__http_session_let_go(s);
    clave__http_session_tell(s, why);
    s->present--;
    s->heard = s->all->web->now;
    list_push_back(&s->all->ended, &s->in_ended);
    s->all->nended++;
    clave__http_session_keep_ended(s);
    http_sessions_forget_oldest(s->all);
}
