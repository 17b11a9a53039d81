/* claim_rights.c - see claim_rights.h. Called by the endpoints of claims and sessions, and by web.c
 * when roles have changed. */
#include "web/session/claim_rights.h"

#include <assert.h>
#include <string.h>

#include "web/http/authorization.h"
#include "web/session/claim.h"

struct claim_sender {
    struct web_peer peer;
    const char *authorization;
    char text[];
};

/* ---- senders --------------------------------------------------------------------------------- */

static bool claim_text_is(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool claim_sender_is(const struct claim_sender *s, const struct web_peer *peer,
                            const char *authorization)
{
    return s && s->peer.is_unix == peer->is_unix && s->peer.is_loopback == peer->is_loopback &&
           s->peer.uid == peer->uid && claim_text_is(s->peer.tls_subject, peer->tls_subject) &&
           claim_text_is(s->authorization, authorization);
}

/* NULL: out of memory. */
static struct claim_sender *claim_sender_new(struct web *w, const struct web_peer *peer,
                                             const char *authorization)
{
    size_t subject = peer->tls_subject ? strlen(peer->tls_subject) + 1 : 0;
    size_t proof = authorization ? strlen(authorization) + 1 : 0;
    struct claim_sender *s = clave__mem_zalloc(&w->mem, sizeof *s + subject + proof);
    if (!s)
        return NULL;
    s->peer = *peer;
    s->peer.address = NULL; /* it says nothing about who it is */
    if (subject)
        s->peer.tls_subject = memcpy(s->text, peer->tls_subject, subject);
    if (proof)
        s->authorization = memcpy(s->text + subject, authorization, proof);
    return s;
}

static bool claim_sender_may(const struct web *w, const struct claim *c)
{
    const struct web_user *u;
    const struct claim_sender *s = c->sender;
    return clave__access_find(w->o.access, &s->peer, s->authorization, &u) == ACCESS_KNOWN &&
           clave__access_covers(u->grants, u->ngrants, WEB_LOCK, c->path);
}

/* ---- what is told ---------------------------------------------------------------------------- */

int64_t clave__claim_tell_valid(struct claim *c, int64_t arrived)
{
    int64_t ms = clave__claim_valid_ms(c, arrived);
    if (c->forbidden && ms > c->told_until - arrived)
        ms = c->told_until > arrived ? c->told_until - arrived : 0;
    if (ms > 0 && arrived + ms > c->told_until)
        c->told_until = arrived + ms;
    return ms;
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void claim_allow(struct claim *c)
{
    c->forbidden = false;
    clave__web_timer_clear(c->part.s->all->web, &c->gives_back);
}

static void claim_rights_due(struct timer *t, int64_t now)
{
    struct claim *c = LIST_ENTRY(t, struct claim, gives_back);
    assert(c->forbidden);
    (void)now;
    if (c->state < CLAIM_HELD)
        c->place.spares = SPARES_FOUND; /* the gate that made it judges it */
    clave__claim_release(c);
}

/* Its client may be at work until the last valid_ms that it was told is over, at another gate
 * perhaps, where a claim that waits here may be held, by a clock that is slower than ours. */
static void claim_forbid(struct claim *c)
{
    const struct http_session *s = c->part.s;
    struct web *w = s->all->web;
    int64_t until = clave__http_session_is_shared(s) ? w->now + s->ttl_ms : c->told_until;
    if (c->forbidden)
        return;
    c->forbidden = true;
    clave__timer_init(&c->gives_back, claim_rights_due);
    clave__web_timer_set(w, &c->gives_back, until + s->ttl_ms / SESSION_CLOCKS);
}

/* The session was not here all the time. */
static bool claim_may_be_elsewhere(const struct claim *c)
{
    const struct http_session *s = c->part.s;
    return clave__http_session_is_shared(s) && (c->place.search || c->at || !s->attached);
}

static void claim_judge(struct claim *c)
{
    if (!c->sender || c->state >= CLAIM_LEAVING)
        return;
    if (claim_sender_may(c->part.s->all->web, c))
        claim_allow(c);
    else if (c->state == CLAIM_HELD || claim_may_be_elsewhere(c))
        claim_forbid(c);
    else
        clave__claim_failed(c, CLAVE_ENOAUTH);
}

clave_err clave__claim_admit(struct claim *c, const struct web_peer *peer,
                             const char *authorization)
{
    struct web *w = c->part.s->all->web;
    if (!claim_sender_is(c->sender, peer, authorization)) {
        struct claim_sender *s = claim_sender_new(w, peer, authorization);
        if (!s)
            return CLAVE_ENOMEM;
        clave__mem_free(&w->mem, c->sender);
        c->sender = s;
    }
    claim_allow(c);
    return CLAVE_OK;
}

/* A claim may be freed as soon as it has ended. */
static void claims_judge_session(struct http_session *s)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->parts);
    while ((l = list_pop_front(&round))) {
        list_push_back(&s->parts, l);
        claim_judge(clave__claim_of(LIST_ENTRY(l, struct session_part, link)));
    }
    clave__http_session_flush(s);
}

void clave__claims_judge(struct http_sessions *ss)
{
    for (struct list *l = ss->all.next; l != &ss->all; l = l->next)
        claims_judge_session(LIST_ENTRY(l, struct http_session, link));
}
