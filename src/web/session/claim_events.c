/* claim_events.c - see claim_events.h. Called by claim.c and http_session.c. Invariant: each event
 * of a claim is told once, and a hold that the gate ends itself has its cause said before the tree
 * shows the end. */
#include "web/session/claim_events.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "web/http/problem.h"
#include "web/observe/observe.h"
#include "web/session/claim.h"

enum { EVENT_MAX = 64 << 10 };

static enum claim_event claim_event_of(const struct claim *c)
{
    if (c->state == CLAIM_WAITING && c->placed)
        return c->ahead > 1 ? CLAIM_EVENT_QUEUED : CLAIM_EVENT_NEXT;
    if (c->state == CLAIM_HELD)
        return c->asked ? CLAIM_EVENT_ASKED : CLAIM_EVENT_HELD;
    return c->state == CLAIM_ENDED && c->why != CLAVE_OK ? CLAIM_EVENT_LOST : CLAIM_EVENT_NONE;
}

/* `text` is its data, which is complete. */
static void claim_send_event(struct web *w, struct event_text *e, struct json *j, struct buf *text)
{
    clave__json_close(j, '}');
    if (j->err == CLAVE_OK && clave__buf_append(text, "", 1) == CLAVE_OK) {
        e->data = (char *)text->data + text->head;
        clave__observe_event(w->observe, e);
    }
    clave__buf_fini(text);
}

static void claim_put_event(const struct claim *c, const char *name)
{
    struct web *w = c->part.s->all->web;
    char session[24], token[24];
    struct buf text;
    clave__buf_init(&text, &w->mem, EVENT_MAX);
    struct json j = clave__json_to(&text);
    snprintf(session, sizeof session, "%" PRId64, c->part.s->id);
    snprintf(token, sizeof token, "%" PRId64, c->part.token);
    clave__json_open(&j, NULL, '{');
    clave__json_string(&j, "claim", c->place.uuid);
    clave__json_string(&j, "session", session);
    clave__json_string(&j, "path", c->path);
    clave__json_string(&j, "kind", c->kind->name);
    if (c->state == CLAIM_WAITING)
        clave__json_int(&j, "position", (int64_t)c->ahead + 1);
    if (c->state == CLAIM_WAITING && c->left_over)
        clave__json_string(&j, "left_over", c->left_over);
    if (c->part.token)
        clave__json_string(&j, "token", token);
    if (c->state == CLAIM_ENDED)
        clave__web_put_cause(&j, c->why);
    claim_send_event(w, &(struct event_text){.name = name, .path = c->path, .session = session}, &j,
                     &text);
}

static enum lock_cause claim_cause(const struct claim *c)
{
    /* A silent client's session is this gate's to end while it is attached here. */
    bool silent = c->why == CLAVE_EREQUESTTIMEOUT && c->part.s->attached;
    return c->why == CLAVE_OK                   ? LOCK_RELEASED
           : c->why == CLAVE_EMAXHOLD           ? LOCK_RELEASED
           : c->why == CLAVE_EEXPIRED || silent ? LOCK_EXPIRED
           : c->why == CLAVE_ECLOSED            ? LOCK_CLOSED
           : c->why == CLAVE_EAUTHFAILED        ? LOCK_BROKEN
                                                : LOCK_UNKNOWN;
}

void clave__claim_say_cause(struct claim *c)
{
    assert(c->state == CLAIM_ENDED);
    enum lock_cause cause = claim_cause(c);
    struct observe *o = c->part.s->all->web->observe;
    if (c->told_token == 0 || cause == LOCK_UNKNOWN)
        return;
    clave__observe_cause(o, c->told_token, cause);
    for (size_t i = 0; c->kind->more_token && c->kind->more_token(c, i); i++)
        clave__observe_cause(o, c->kind->more_token(c, i), cause);
}

void clave__claim_publish(struct claim *c)
{
    static const char *const names[] = {
        [CLAIM_EVENT_QUEUED] = "queued", [CLAIM_EVENT_NEXT] = "next", [CLAIM_EVENT_HELD] = "held",
        [CLAIM_EVENT_ASKED] = "asked",   [CLAIM_EVENT_LOST] = "lost",
    };
    enum claim_event event = claim_event_of(c);
    bool left_over = c->state == CLAIM_WAITING && c->left_over && !c->told_left_over;
    if (!c->part.s->all->web->observe || event == CLAIM_EVENT_NONE)
        return;
    if (event <= c->told && !left_over)
        return;
    c->told = event > c->told ? event : c->told;
    c->told_left_over |= left_over;
    claim_put_event(c, names[event]);
}

void clave__claim_publish_suspended(struct claim *c)
{
    if (c->part.s->all->web->observe && c->state < CLAIM_LEAVING)
        claim_put_event(c, "suspended");
}

void clave__http_session_publish_end(struct http_session *s, clave_err why)
{
    assert(s->state == HTTP_SESSION_ENDED);
    struct web *w = s->all->web;
    char id[24];
    struct buf text;
    if (!w->observe || s->id == 0)
        return;
    clave__buf_init(&text, &w->mem, EVENT_MAX);
    struct json j = clave__json_to(&text);
    snprintf(id, sizeof id, "%" PRId64, s->id);
    clave__json_open(&j, NULL, '{');
    clave__json_string(&j, "session", id);
    clave__json_string(&j, "state", "ended");
    clave__web_put_cause(&j, why ? why : CLAVE_ECLOSED);
    claim_send_event(w, &(struct event_text){.name = "session"}, &j, &text);
}
