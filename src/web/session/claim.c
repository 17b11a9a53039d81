/* claim.c - one claim: its states, those who wait for it, what is told to streams, and the rights
 * of its sender. Called by the endpoints of claims, by session_claims.c for all claims of a
 * session, and by its kind (claim_kinds.c) with what the recipe reports. Invariants: only
 * claim_enter changes the state, and every change wakes those who wait; each event is told once,
 * and the cause of an end is said before the tree shows the end. */
#include "web/session/claim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash/siphash.h"
#include "base/memory.h"
#include "client/client_for_gate.h"
#include "recipe/contender/contender_grant.h"
#include "web/http/authorization.h"
#include "web/http/exchange.h"
#include "web/observe/observe.h"

enum { EVENT_MAX = 64 << 10 };

/* ==== events ================================================================================== */

static enum claim_event claim_event_of(const struct claim *c)
{
    if (c->state == CLAIM_QUEUED)
        return c->ahead > 1 ? CLAIM_EVENT_QUEUED : CLAIM_EVENT_NEXT;
    if (c->state == CLAIM_HELD)
        return c->asked ? CLAIM_EVENT_ASKED : CLAIM_EVENT_HELD;
    return clave__claim_is_over(c) && c->why != CLAVE_OK ? CLAIM_EVENT_LOST : CLAIM_EVENT_NONE;
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
    if (clave__claim_waits(c))
        clave__json_int(&j, "position", (int64_t)c->ahead + 1);
    if (clave__claim_waits(c) && c->left_over)
        clave__json_string(&j, "left_over", c->left_over);
    if (c->part.token)
        clave__json_string(&j, "token", token);
    if (clave__claim_is_over(c))
        clave__web_put_cause(&j, &c->why);
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

static void claim_say_cause(struct claim *c)
{
    assert(clave__claim_is_over(c));
    enum lock_cause cause = claim_cause(c);
    struct observe *o = c->part.s->all->web->observe;
    if (c->told_token == 0 || cause == LOCK_UNKNOWN)
        return;
    clave__observe_cause(o, c->told_token, cause);
    for (size_t i = 0; c->kind->more_token && c->kind->more_token(c, i); i++)
        clave__observe_cause(o, c->kind->more_token(c, i), cause);
}

static void claim_publish(struct claim *c)
{
    static const char *const names[] = {
        [CLAIM_EVENT_QUEUED] = "queued", [CLAIM_EVENT_NEXT] = "next", [CLAIM_EVENT_HELD] = "held",
        [CLAIM_EVENT_ASKED] = "asked",   [CLAIM_EVENT_LOST] = "lost",
    };
    enum claim_event event = claim_event_of(c);
    bool left_over = clave__claim_waits(c) && c->left_over && !c->told_left_over;
    if (!c->part.s->all->web->observe || event == CLAIM_EVENT_NONE)
        return;
    if (event <= c->told && !left_over)
        return;
    c->told = event > c->told ? event : c->told;
    c->told_left_over |= left_over;
    claim_put_event(c, names[event]);
}

static void claim_publish_suspended(struct claim *c)
{
    if (c->part.s->all->web->observe && c->state < CLAIM_LEAVING)
        claim_put_event(c, "suspended");
}

/* ==== states ================================================================================== */

/* ---- those that wait ------------------------------------------------------------------------- */

void clave__claim_poll_cancel(struct claim_poll *p)
{
    list_remove(&p->link);
    clave__web_timer_clear(p->web, &p->limit);
}

static void claim_poll_tell(struct claim_poll *p)
{
    clave__claim_poll_cancel(p);
    p->done(p);
}

static void claim_poll_due(struct timer *t, int64_t now)
{
    (void)now;
    claim_poll_tell(LIST_ENTRY(t, struct claim_poll, limit));
}

/* It would wait for a grant, or for the place of one. */
static bool claim_is_polled(const struct claim *c, const struct claim_poll *p)
{
    return !p->wants_end && !c->trying;
}

bool clave__claim_is_fresh(const struct claim *c)
{
    const struct http_session *s = c->part.s;
    if (c->state == CLAIM_DOUBTED ||
        ((c->state == CLAIM_WANTED || c->state == CLAIM_DELAYED) && c->at))
        return false;
    if (!clave__claim_waits(c) || !clave__http_session_is_shared(s))
        return true;
    return s->attached && !c->leased &&
           c->place.listed_on == clave_async_client_connection(s->client);
}

static bool claim_is_news(const struct claim *c, const struct claim_poll *p)
{
    if (clave__claim_is_over(c))
        return true;
    bool placed = c->placed && clave__claim_is_fresh(c);
    return !p->wants_end && (c->state == CLAIM_HELD || (p->wants_position && placed));
}

/* A `done` may free the claim when it was the last to wait for its end, so the list is taken first.
 */
static void claim_tell_those(struct claim *c,
                             bool (*are)(const struct claim *, const struct claim_poll *))
{
    struct list round, *l;
    list_init(&round);
    for (l = c->polls.next; l != &c->polls;) {
        struct claim_poll *p = LIST_ENTRY(l, struct claim_poll, link);
        l = l->next;
        if (p->watches)
            p->done(p);
        if (p->watches || !are(c, p))
            continue;
        list_remove(&p->link);
        list_push_back(&round, &p->link);
    }
    while ((l = list_pop_front(&round)))
        claim_poll_tell(LIST_ENTRY(l, struct claim_poll, link));
}

static void claim_tell_session(struct http_session *s)
{
    struct list round, *l;
    list_init(&round);
    list_splice(&round, &s->polls);
    while ((l = list_pop_front(&round)))
        claim_poll_tell(LIST_ENTRY(l, struct claim_poll, link));
}

static void claim_tell(struct claim *c)
{
    struct http_session *s = c->part.s;
    bool is_news = c->state == CLAIM_HELD || clave__claim_is_over(c);
    claim_publish(c);
    claim_tell_those(c, claim_is_news);
    if (is_news)
        claim_tell_session(s);
}

static void claim_poll_begin(struct claim_poll *p, struct web *w)
{
    assert(p->done);
    p->web = w;
    list_init(&p->link);
    clave__timer_init(&p->limit, claim_poll_due);
}

void clave__claim_await(struct claim *c, struct claim_poll *p, int64_t until)
{
    claim_poll_begin(p, c->part.s->all->web);
    if (!p->watches && claim_is_news(c, p)) {
        p->done(p);
        return;
    }
    list_push_back(&c->polls, &p->link);
    if (until != CLAVE_NEVER)
        clave__web_timer_set(p->web, &p->limit, until);
}

void clave__claims_await(struct http_session *s, struct claim_poll *p, int64_t until)
{
    claim_poll_begin(p, s->all->web);
    list_push_back(&s->polls, &p->link);
    clave__web_timer_set(p->web, &p->limit, until);
}

uint64_t clave__claims_tag(const struct http_session *s)
{
    uint64_t tag = 0;
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        const struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        struct siphash_key k = {(uint64_t)s->id, c->state == CLAIM_HELD};
        if (c->state <= CLAIM_HELD)
            tag ^= clave__siphash(k, c->place.uuid, CLAVE_UUID_TEXT);
    }
    return tag;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void claim_drop(struct claim *c)
{
    clave_async_delay *delay = c->delay;
    c->delay = NULL;
    clave_async_delay_free(delay);
    c->kind->drop(c);
}

/* Another gate may be the session's next, and max_hold_ms goes on there: the node says that it is
 * granted, and when is the time of this write, by the servers' clock (session_claims.c). A write
 * to the node of a revocable claim is taken for a request, and another one's node says nothing. */
static void claim_say_granted(struct claim *c)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    static const char granted[] = CLAIM_GRANTED "=1\n";
    if (c->max_hold_ms == 0 || c->revocable || c->kind->plain || c->at || !c->part.s->client ||
        !clave__http_session_is_shared(c->part.s))
        return;
    char *data = clave__mem_alloc(mem, c->len + sizeof granted);
    if (!data)
        return; /* it begins anew at the next gate */
    memcpy(data, c->data, c->len);
    memcpy(data + c->len, granted, sizeof granted);
    (void)clave_async_set(c->part.s->client, c->node, data, c->len + sizeof granted - 1, -1, NULL,
                          NULL);
    clave__mem_free(mem, data);
}

static void claim_on_limit(struct timer *t, int64_t now)
{
    struct claim *c = LIST_ENTRY(t, struct claim, ends);
    (void)now;
    c->overheld = true;
    if (c->state < CLAIM_HELD)
        clave__claim_end(c, CLAVE_EMAXHOLD);
    else
        clave__claim_release(c);
}

void clave__claim_limit(struct claim *c, int64_t ends_at)
{
    c->ends_at = ends_at;
    clave__timer_init(&c->ends, claim_on_limit);
    if (ends_at != CLAVE_NEVER)
        clave__web_timer_set(c->part.s->all->web, &c->ends, ends_at);
}

static void claim_stop_proof(struct claim *c)
{
    clave__session_wait_cancel(&c->proof);
}

static void claim_on_held(struct claim *c)
{
    c->granted_at = c->part.s->all->web->now;
    c->told_token = c->grant.token;
    claim_say_granted(c);
}

static void claim_move(struct claim *c, enum claim_state to);

/* What the recipe has made, or may have made, is deleted; that may be done already. */
static void claim_on_sought(struct claim *c)
{
    clave__web_timer_clear(c->part.s->all->web, &c->gives_back);
    clave__web_timer_clear(c->part.s->all->web, &c->ends);
    claim_say_cause(c);
    claim_drop(c);
    if (c->state == CLAIM_SOUGHT && c->place.ncontenders == 0)
        claim_move(c, CLAIM_OVER);
}

#define CLAIM_TO(state) (1u << (state))

/* The moves: to which states a state leads; whether the session's proofs check its node there; and
 * what is done on the way in and out. Only what is HELD is given back; the rest is given up. */
static const struct claim_rule {
    unsigned to;
    bool is_checked;
    void (*enter)(struct claim *c), (*leave)(struct claim *c);
} claim_rules[CLAIM_STATES] = {
    [CLAIM_WANTED] = {.to = CLAIM_TO(CLAIM_QUEUED) | CLAIM_TO(CLAIM_DELAYED) |
                            CLAIM_TO(CLAIM_DOUBTED) | CLAIM_TO(CLAIM_HELD) |
                            CLAIM_TO(CLAIM_SOUGHT)},
    [CLAIM_QUEUED] = {.to = CLAIM_TO(CLAIM_DELAYED) | CLAIM_TO(CLAIM_DOUBTED) |
                            CLAIM_TO(CLAIM_HELD) | CLAIM_TO(CLAIM_SOUGHT)},
    [CLAIM_DELAYED] = {.to =
                           CLAIM_TO(CLAIM_DOUBTED) | CLAIM_TO(CLAIM_HELD) | CLAIM_TO(CLAIM_SOUGHT)},
    [CLAIM_DOUBTED] = {.to = CLAIM_TO(CLAIM_HELD) | CLAIM_TO(CLAIM_SOUGHT),
                       .is_checked = true,
                       .leave = claim_stop_proof},
    [CLAIM_HELD] = {.to = CLAIM_TO(CLAIM_LEAVING) | CLAIM_TO(CLAIM_SOUGHT),
                    .is_checked = true,
                    .enter = claim_on_held},
    [CLAIM_LEAVING] = {.to = CLAIM_TO(CLAIM_SOUGHT)},
    [CLAIM_SOUGHT] = {.to = CLAIM_TO(CLAIM_OVER), .enter = claim_on_sought},
    [CLAIM_OVER] = {.to = 0},
};

static void claim_move(struct claim *c, enum claim_state to)
{
    const struct claim_rule *from = &claim_rules[c->state], *rule = &claim_rules[to];
    assert(from->to & CLAIM_TO(to));
    if (from->leave)
        from->leave(c);
    c->state = to;
    c->part.token = rule->is_checked ? c->grant.token : 0;
    c->part.node = rule->is_checked ? c->node : NULL;
    if (rule->enter)
        rule->enter(c);
    if (to != CLAIM_OVER) /* its end was told */
        claim_tell(c);
}

void clave__claim_end(struct claim *c, clave_err why)
{
    if (clave__claim_is_over(c))
        return;
    c->why = why;
    claim_move(c, CLAIM_SOUGHT);
}

int64_t clave__claim_valid_ms(const struct claim *c, int64_t arrived)
{
    const struct http_session *s = c->part.s;
    struct grant_facts g;
    if (c->state != CLAIM_HELD || !c->kind->grant(c, &g))
        return 0;
    struct validity v = {.arrived = arrived,
                         .granted = c->granted_at,
                         .hold_deadline = g.deadline < c->ends_at ? g.deadline : c->ends_at,
                         .ttl_ms = s->ttl_ms,
                         .now = s->all->web->now};
    return clave__validity_ms(&v);
}

/* ---- what the recipe reports ----------------------------------------------------------------- */

static void claim_take_time(struct claim *c)
{
    struct http_session *s = c->part.s;
    int64_t now = s->client ? clave__client_now(s->client) : 0;
    if (now > s->all->web->now)
        s->all->web->now = now;
}

/* Without memory nothing is said of a node that is left over. */
void clave__claim_moved(struct claim *c, size_t ahead, const char *left_over)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    claim_take_time(c);
    c->placed = true;
    c->ahead = ahead;
    clave__mem_free(mem, c->left_over);
    c->left_over = left_over ? clave__mem_strdup(mem, left_over) : NULL;
    c->waited |= ahead > 0;
    if (c->state == CLAIM_WANTED)
        claim_move(c, CLAIM_QUEUED);
    else if (c->state == CLAIM_QUEUED)
        claim_tell(c);
}

void clave__claim_on_proven(struct session_wait *w, clave_err err)
{
    struct claim *c = LIST_ENTRY(w, struct claim, proof);
    assert(c->state == CLAIM_DOUBTED);
    claim_take_time(c);
    if (err == CLAVE_OK)
        claim_move(c, CLAIM_HELD);
    else if (err == CLAVE_EOPTIMEOUT)
        clave__http_session_prove(c->part.s, w);
    else
        clave__claim_end(c, err);
}

/* The listing after its create shows that it was granted. What is granted later, by the end of
 * others, may have been given back at another gate meanwhile. */
static void claim_hold(struct claim *c)
{
    bool proves = c->waited && clave__http_session_is_shared(c->part.s);
    claim_move(c, proves ? CLAIM_DOUBTED : CLAIM_HELD);
    if (proves)
        clave__http_session_prove(c->part.s, &c->proof);
}

static void claim_on_delayed(clave_async_delay *d, clave_err err, void *arg)
{
    struct claim *c = arg;
    (void)d;
    if (c->state != CLAIM_DELAYED)
        return;
    claim_take_time(c);
    c->waited = true;
    if (err == CLAVE_OK)
        claim_hold(c);
    else
        clave__claim_end(c, err);
}

/* The mark's node is the one of `clave lock --lock-delay`. */
static clave_err claim_begin_delay(struct claim *c)
{
    assert(!c->delay);
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    size_t cap = strlen(c->path) + sizeof "-held";
    char *mark = clave__mem_alloc(mem, cap);
    if (!mark)
        return CLAVE_ENOMEM;
    snprintf(mark, cap, "%s-held", c->path);
    clave_delay_options o = {.size = sizeof o, .path = mark, .delay_ms = c->lock_delay_ms};
    clave_async_grant *grant;
    clave_err err = clave__grant_new(&grant, &c->grant);
    if (err == CLAVE_OK)
        err = clave_async_delay_begin(&c->delay, grant, &o, claim_on_delayed, c);
    clave_async_grant_free(grant);
    clave__mem_free(mem, mark);
    return err;
}

void clave__claim_granted(struct claim *c)
{
    const struct clave_mem *mem = &c->part.s->all->web->mem;
    if (!clave__claim_waits(c))
        return;
    claim_take_time(c);
    if (!c->kind->grant(c, &c->grant))
        return; /* it was lost already, and that is told next */
    assert(!c->node);
    c->node = clave__mem_strdup(mem, c->grant.node);
    clave_err err = c->node ? CLAVE_OK : CLAVE_ENOMEM;
    c->grant.node = c->node;
    if (err == CLAVE_OK && c->lock_delay_ms > 0)
        err = claim_begin_delay(c);
    if (err != CLAVE_OK)
        clave__claim_end(c, err);
    else if (c->delay)
        claim_move(c, CLAIM_DELAYED);
    else
        claim_hold(c);
}

/* A try whose connection went ends as one that was not first: before it is answered, the holder is
 * asked for, which needs a connection. Where another gate may have the session, a node of this id
 * that is found afterwards may be what it was granted there: that stays, and the outcome is not
 * known. */
void clave__claim_failed(struct claim *c, clave_err err)
{
    assert(err != CLAVE_OK);
    bool cut = c->trying && err == CLAVE_EUNREACHABLE;
    claim_take_time(c);
    if (err == CLAVE_ENODEEXISTS && c->marked)
        err = CLAVE_ECANCELED; /* it was given back: by another gate */
    if (cut && clave__http_session_is_shared(c->part.s)) {
        c->place.spares = SPARES_ALL;
        err = CLAVE_ECONNLOSS;
    } else if (cut) {
        err = CLAVE_EBUSY;
    }
    clave__claim_end(c, err);
}

void clave__claim_lost(struct claim *c, clave_err why)
{
    claim_take_time(c);
    /* closeSession was asked for: the end of the session says so. */
    if (c->part.s->state != HTTP_SESSION_CLOSING)
        clave__claim_end(c, why == CLAVE_OK ? CLAVE_ELOST : why);
}

void clave__claim_asked(struct claim *c)
{
    c->asked = true;
    claim_tell(c);
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* The delete is repeated until the node is gone, or the servers refuse it: then it stays until the
 * session ends. */
void clave__claim_left(struct claim *c, clave_err err)
{
    assert(c->state == CLAIM_LEAVING);
    claim_take_time(c);
    if (err != CLAVE_ENOAUTH && c->forbidden)
        err = CLAVE_EAUTHFAILED;
    else if (err != CLAVE_ENOAUTH)
        err = c->overheld ? CLAVE_EMAXHOLD : CLAVE_OK;
    clave__claim_end(c, err);
}

void clave__claim_release(struct claim *c)
{
    if (c->state >= CLAIM_LEAVING)
        return;
    if (c->state != CLAIM_HELD) {
        clave__claim_end(c, CLAVE_ECANCELED);
        clave__http_session_flush(c->part.s);
        return;
    }
    if (c->delay)
        (void)clave_async_delay_end(c->delay, NULL,
                                    NULL); /* else the mark remains, which is safe */
    clave_err err = c->kind->release(c);
    if (err != CLAVE_OK)
        clave__claim_end(c, err);
    else
        claim_move(c, CLAIM_LEAVING);
    clave__http_session_flush(c->part.s);
}

void clave__claim_went_elsewhere(struct claim *c)
{
    bool has_place = c->state > CLAIM_WANTED && c->state < CLAIM_HELD;
    c->place.search = true;
    c->waited = true;
    claim_publish_suspended(c);
    if (!has_place || !clave__http_session_is_shared(c->part.s))
        return;
    c->place.final = true;
    struct http_session *s = c->part.s;
    claim_tell_those(c, claim_is_polled);
    claim_tell_session(s);
}

/* ==== roles =================================================================================== */

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
    if (s->left_behind)
        s->looked_on = 0; /* its sender may have the role again */
    s->left_behind = false;
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

/* ==== memory ===================================================================================
 */

void clave__claim_free(struct session_part *p)
{
    struct claim *c = clave__claim_of(p);
    assert(list_empty(&c->polls));
    const struct clave_mem *mem = &p->s->all->web->mem;
    list_remove(&p->link);
    clave__session_wait_cancel(&c->proof);
    clave__web_timer_clear(p->s->all->web, &c->gives_back);
    clave__web_timer_clear(p->s->all->web, &c->ends);
    claim_drop(c);
    c->forgotten = true;
    c->state = CLAIM_OVER; /* nobody is told */
    if (c->owed > 0 || c->place.ncontenders > 0)
        return;
    clave__mem_free(mem, c->path);
    clave__mem_free(mem, c->at);
    clave__mem_free(mem, c->left_over);
    clave__mem_free(mem, c->node);
    clave__mem_free(mem, c->data);
    clave__mem_free(mem, c->sender);
    clave__mem_free(mem, c);
}

clave_err clave__claim_owe(struct claim *c, clave_err err)
{
    c->owed += err == CLAVE_OK;
    return err;
}

bool clave__claim_repaid(struct claim *c)
{
    assert(c->owed > 0);
    c->owed--;
    if (!c->forgotten)
        return true;
    clave__claim_free(&c->part);
    return false;
}

void clave__claim_place_unused(struct queue_place *p)
{
    struct claim *c = LIST_ENTRY(p, struct claim, place);
    bool stays = p->spared || c->left_there;
    /* The listing took the node for one that this claim would delete. What may not be locked here
     * any more is left to the gate that made it, until roles change again. */
    if (stays && c->forbidden)
        c->part.s->left_behind = true;
    else if (stays)
        c->part.s->looked_on = 0;
    if (c->forgotten)
        clave__claim_free(&c->part);
    else if (c->state == CLAIM_SOUGHT)
        claim_move(c, CLAIM_OVER);
}
