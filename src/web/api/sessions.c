/* sessions.c - /v1/sessions: making, renewing, reading and ending a session. Invariant: the secret
 * is told once, in the answer to the request that made the session; `id` is public. */
#include "web/api/api.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ==== /v1/sessions ============================================================================ */

enum { DEFAULT_TTL_MS = 10000, MOST_NAME = 1024, MOST_AUTHS = 16, MOST_SESSIONS_LISTED = 1000 };
#define NO_SESSION_TAG "\"none\"" /* the tag of no session, so that "*" matches every one */

/* ---- POST /v1/sessions ----------------------------------------------------------------------- */

static void session_answer_made(struct session_request *k)
{
    struct web_exchange *x = k->x;
    char secret[SEAL_TEXT + 1];
    clave__http_session_secret(k->s, secret);
    clave__web_set_header(x, "Location", "%s/v1/sessions/%lld", clave__web_prefix(x),
                          (long long)k->s->id);
    clave__json_open(&x->json, NULL, '{');
    clave__json_int64(&x->json, "id", k->s->id);
    clave__json_string(&x->json, "secret", secret);
    clave__json_int(&x->json, "ttl_ms", k->s->ttl_ms);
    clave__web_answer_object(x, 201);
}

/* The request that makes the session has hung up, so nobody knows its secret: it is ended. */
static void session_on_maker_gone(struct web_exchange *x)
{
    struct session_request *k = x->owned;
    clave__session_wait_cancel(&k->wait); /* otherwise the end of the session would call it */
    clave__http_session_end(k->s, CLAVE_ECANCELED, true);
}

static const struct exchange_owner session_maker = {.leave = clave__session_request_leave,
                                                    .hung_up = session_on_maker_gone};

/* The identities of "auth"; false: it has answered. */
static bool session_read_auths(struct web_exchange *x, const json_t *list, const char **auths,
                               size_t *n)
{
    const struct jansson *lib = x->web->o.jansson;
    *n = list ? lib->json_array_size(list) : 0;
    if (*n > MOST_AUTHS)
        return clave__web_bad_request(x, "\"auth\" has more than %d entries", MOST_AUTHS);
    for (size_t i = 0; i < *n; i++) {
        auths[i] = lib->json_string_value(lib->json_array_get(list, i));
        if (auths[i])
            continue;
        clave__web_bad_request(x, "\"auth\" is a list of texts like \"digest:user:password\"");
        return false;
    }
    return true;
}

void clave__web_post_session(struct web_exchange *x)
{
    const char *auths[MOST_AUTHS];
    struct session_terms t = {.auths = auths};
    int64_t ttl = DEFAULT_TTL_MS;
    struct http_session *s;
    const json_t *list = NULL;
    const struct body_member members[] = {{"ttl_ms", .number = &ttl, .least = 1, .most = INT32_MAX},
                                          {"name", .text = &t.name},
                                          {"auth", .array = &list}};
    if (!clave__web_read_body(x, BODY_MEMBERS(members)) ||
        !session_read_auths(x, list, auths, &t.nauths))
        return;
    if (t.name && strlen(t.name) > MOST_NAME) {
        clave__web_refuse(x, 400, CLAVE_ETOOBIG, NULL, "\"name\" has more than %d bytes",
                          MOST_NAME);
        return;
    }
    if (!clave__web_may_make_session(x))
        return;
    t.ttl_ms = (int32_t)ttl;
    t.sender = clave__web_sender(x);
    clave_err err = clave__http_session_open(x->web->sessions, &t, &s);
    if (err == CLAVE_ETOOBIG) {
        clave__web_refuse(x, 400, err, NULL,
                          "\"auth\" has more than %d bytes, with one more for each identity",
                          SEAL_AUTHS);
        return;
    }
    if (err == CLAVE_EINVAL) {
        clave__web_refuse(x, 400, err, NULL,
                          "\"auth\" is a list of texts like \"digest:user:password\"");
        return;
    }
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "make a session", NULL);
        return;
    }
    struct session_request *k = clave__session_request_new(x, s, &session_maker);
    if (!k)
        return;
    clave__http_session_flush(s);
    clave__session_request_when_live(k, session_answer_made);
}

/* ---- renew ----------------------------------------------------------------------------------- */

/* A renewal keeps only those claims alive that its sender may lock. */
static void session_admit_claims(const struct web_exchange *x, struct http_session *s)
{
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        if (clave__web_may(x, WEB_LOCK, c->path))
            (void)clave__web_admit_claim(
                x, c); /* if there is no memory, the claim keeps its previous sender */
    }
}

/* Writes each id once: a claim that is over is left out if it was made anew with the same key,
 * because a caller that looks up its claim by the id may take the first one. */
static void session_put_claims(struct web_exchange *x, struct http_session *s, bool proven)
{
    clave__json_open(&x->json, "claims", '[');
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        struct claim *newest = clave__claim_is_over(c) ? clave__claim_find(s, c->place.uuid) : NULL;
        if (!newest || newest == c)
            clave__web_put_claim(x, c, proven);
    }
    clave__json_close(&x->json, ']');
}

static int64_t session_valid_ms(const struct web_exchange *x, const struct http_session *s)
{
    struct validity v = {.arrived = x->arrived,
                         .granted = INT64_MIN,
                         .hold_deadline = clave_async_client_hold_deadline(s->client),
                         .ttl_ms = s->ttl_ms,
                         .now = x->web->now};
    return clave__validity_ms(&v);
}

static void session_answer_renewed(struct session_request *k)
{
    struct web_exchange *x = k->x;
    clave__json_open(&x->json, NULL, '{');
    clave__json_int64(&x->json, "id", k->s->id);
    clave__json_int(&x->json, "ttl_ms", k->s->ttl_ms);
    clave__json_int(&x->json, "valid_ms", session_valid_ms(x, k->s));
    session_put_claims(x, k->s, true);
    clave__web_answer_object(x, 200);
}

static void session_settle_renewed(struct session_request *k)
{
    clave__session_request_settle(k, REPORT_SETTLES, session_answer_renewed);
}

static void session_renew(struct session_request *k)
{
    session_admit_claims(k->x, k->s);
    clave__session_request_prove(k, session_settle_renewed);
}

void clave__web_renew_session(struct web_exchange *x)
{
    clave__session_request(x, x->params[0], session_renew);
}

/* ---- GET ------------------------------------------------------------------------------------- */

static const char *session_state_name(const struct http_session *s)
{
    switch (s->state) {
    case HTTP_SESSION_OPENING:
        return "opening";
    case HTTP_SESSION_LIVE:
        return "live";
    case HTTP_SESSION_CLOSING:
        return "closing";
    case HTTP_SESSION_ENDED:
        break;
    }
    return "ended";
}

static void session_put(struct web_exchange *x, struct http_session *s, bool proven)
{
    int64_t now = x->web->now;
    clave__json_open(&x->json, NULL, '{');
    clave__json_int64(&x->json, "id", s->id);
    clave__json_string(&x->json, "name", s->name);
    clave__json_int(&x->json, "ttl_ms", s->ttl_ms);
    clave__json_int(&x->json, "idle_ms", s->present > 0 || s->heard > now ? 0 : now - s->heard);
    clave__json_int(&x->json, "age_ms", now > s->made ? now - s->made : 0);
    clave__json_string(&x->json, "state", session_state_name(s));
    session_put_claims(x, s, proven);
    clave__json_close(&x->json, '}');
}

enum { SESSION_TAG = 19 };

static void session_tag(const struct http_session *s, char out[SESSION_TAG])
{
    snprintf(out, SESSION_TAG, "\"%016" PRIx64 "\"", clave__claims_tag(s));
}

static void session_answer(struct session_request *k, bool proven)
{
    struct web_exchange *x = k->x;
    char tag[SESSION_TAG];
    session_tag(k->s, tag);
    bool is_known = proven && clave__condition_knows(x, tag, NO_SESSION_TAG);
    clave__web_set_header(x, "ETag", "%s", tag);
    if (!is_known)
        session_put(x, k->s, proven);
    if (is_known)
        clave__web_answer_empty(x, 304);
    else
        clave__web_answer_json(x, 200);
}

static void session_get(struct session_request *k);

/* If another gate may have the session by now, listing the claims would take the session away
 * from it. So the request is answered with what is known, and its client asks again at the gate of
 * its choice. */
static void session_on_news(struct session_request *k)
{
    k->waited = true;
    if (!clave__http_session_is_live(k->s))
        clave__session_request_gone(k, k->s->why ? k->s->why : CLAVE_ECLOSED);
    else if (clave__http_session_is_shared(k->s) && !k->s->attached)
        session_answer(k, false);
    else
        session_get(k);
}

static bool session_waits(const struct http_session *s)
{
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));)
        if (c->state < CLAIM_HELD)
            return true;
    return false;
}

/* All claims are known. With `Prefer: wait` the answer comes when the claims that wait or are
 * held differ from those that If-None-Match names, so one request can wait for all claims of a
 * session. */
static void session_show(struct session_request *k)
{
    struct web_exchange *x = k->x;
    int64_t wait = clave__web_prefer_wait(x);
    char tag[SESSION_TAG];
    session_tag(k->s, tag);
    if (k->waited || wait <= 0 || !session_waits(k->s) ||
        !clave__condition_knows(x, tag, NO_SESSION_TAG)) {
        session_answer(k, true);
        return;
    }
    if (!clave__web_may_wait(x))
        return;
    clave__claims_await(k->s, clave__session_request_poll(k, session_on_news),
                        x->web->now + (wait > LONGEST_POLL_MS ? LONGEST_POLL_MS : wait));
}

static void session_settle_shown(struct session_request *k)
{
    clave__session_request_settle(k, REPORT_SETTLES, session_show);
}

static void session_get(struct session_request *k)
{
    if (!clave__http_session_is_shared(k->s) && !clave__http_session_must_list(k->s)) {
        session_show(k);
        return;
    }
    clave__session_request_prove(k, session_settle_shown);
}

void clave__web_get_session(struct web_exchange *x)
{
    clave__session_request(x, x->params[0], session_get);
}

/* Lists the sessions of this gate in the order in which they came; `after` is the id of the last
 * one on the previous page. Requires the role admin everywhere, since the list shows what is held
 * on every path. It takes no session away from another gate, so a claim that may be in use there is
 * not reported as held. */
void clave__web_list_sessions(struct web_exchange *x)
{
    struct http_sessions *ss = x->web->sessions;
    int64_t limit = 100, last = 0, n = 0;
    struct list *l = ss->all.next;
    if (!clave__web_must(x, WEB_ADMIN, "/") ||
        !clave__query_int(x, "limit", 1, MOST_SESSIONS_LISTED, &limit) ||
        !clave__query_int(x, "after", INT64_MIN, INT64_MAX, &last))
        return;
    if (clave__web_query(x, "after")) {
        struct http_session *s = clave__http_session_by_id(ss, last);
        if (!s) {
            clave__web_refuse(x, 410, CLAVE_ELOST, NULL,
                              "the session that `after` names is not there any more: begin with "
                              "the first page again");
            return;
        }
        l = s->link.next;
    }
    last = 0;
    clave__json_open(&x->json, NULL, '{');
    clave__json_open(&x->json, "sessions", '[');
    for (; l != &ss->all && n < limit; l = l->next) {
        struct http_session *s = LIST_ENTRY(l, struct http_session, link);
        if (s->id == 0)
            continue;
        session_put(x, s, !clave__http_session_is_shared(s));
        last = s->id;
        n++;
    }
    clave__json_close(&x->json, ']');
    if (l != &ss->all)
        clave__json_int64(&x->json, "next", last);
    else
        clave__json_string(&x->json, "next", NULL);
    clave__web_answer_object(x, 200);
}

/* ---- DELETE ---------------------------------------------------------------------------------- */

static void session_on_closed(struct session_wait *w, clave_err err)
{
    struct session_request *k = LIST_ENTRY(w, struct session_request, wait);
    if (err == CLAVE_OK)
        clave__web_answer_empty(k->x, 204);
    else if (err == CLAVE_ETIMEDOUT)
        clave__web_refuse(k->x, 504, CLAVE_EOPTIMEOUT, NULL,
                          "the end of the session is not confirmed: no server has answered");
    else
        clave__session_request_gone(k, err);
}

static void session_close(struct session_request *k)
{
    struct session_wait *w = clave__session_request_await(k, NULL);
    w->done = session_on_closed;
    k->x->begun = true;
    clave__http_session_close(k->s, w);
}

void clave__web_delete_session(struct web_exchange *x)
{
    clave__session_request(x, x->params[0], session_close);
}
