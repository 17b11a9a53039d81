/* claims_api.c - see claims_api.h. Invariant: a claim's place is kept whatever happens to the
 * request that waits for it; only DELETE and the session's end give it back. */
#include "web/api/claims_api.h"

#include <string.h>

#include "base/path.h"
#include "clave/async/leader.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "web/api/session_call.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/limits.h"
#include "web/http/problem.h"

enum { MOST_WAIT_MS = 300000, MOST_PATH = 8192 };

/* ---- what is answered ------------------------------------------------------------------------ */

struct claim_cause {
    clave_err why;
};

static void claim_put_cause(struct json *j, const void *arg)
{
    const struct claim_cause *c = arg;
    clave__json_string(j, "cause", clave__web_cause(c->why));
}

/* It was not granted, or is over. */
static void claim_answer_end(struct session_call *k)
{
    struct web_exchange *x = k->x;
    const struct claim *c = k->claim;
    struct claim_cause cause = {c->why};
    /* Nothing is over: the node may not be made, or deleted. */
    bool refused = c->why == CLAVE_ENOAUTH || (c->granted_at == 0 && !clave__web_is_cause(c->why));
    struct problem p = {.status = 410,
                        .err = CLAVE_ELOST,
                        .path = clave__web_sprintf(x, "%s", c->path),
                        .members = claim_put_cause,
                        .arg = &cause};
    if (c->why == CLAVE_EBUSY || c->why == CLAVE_EDEADLOCK) {
        p.status = 409;
        p.err = c->why;
    }
    if (c->granted_at == 0 && p.status == 410 && c->why != CLAVE_ECANCELED)
        p.err = c->why;
    clave__session_call_done(k);
    if (refused) {
        clave__web_problem_err(x, cause.why, "claim or release", p.path);
        return;
    }
    clave__web_problem(x, &p, "%s is not held: %s", p.path ? p.path : "it",
                       clave_strerror(cause.why));
}

static void claim_put_holder(struct json *j, const void *arg)
{
    const clave_participant *p = arg;
    clave__json_open(j, "holder", '{');
    clave__json_string(j, "node", p->node);
    clave__json_int64(j, "token", p->stat.czxid);
    clave__json_int64(j, "session", p->stat.ephemeral_owner);
    clave__json_string(j, "host", p->identity.host);
    clave__json_string(j, "name", p->identity.name);
    clave__json_string(j, "command", p->identity.command);
    clave__json_string(j, "text", p->identity.text);
    clave__json_close(j, '}');
}

static void on_claim_holder(clave_async_client *client, clave_err err,
                            const clave_participant *list, size_t n, void *arg)
{
    struct web_exchange *x = arg;
    (void)client;
    if (!clave__web_expected(x))
        return;
    struct session_call *k = x->pending;
    struct problem p = {.status = 409, .err = CLAVE_EBUSY, .path = k->path, .retry_after_s = 1};
    if (err == CLAVE_OK && n > 0) {
        p.members = claim_put_holder;
        p.arg = &list[0];
    }
    clave__session_call_done(k);
    if (err == CLAVE_OK && n == 0)
        clave__web_problem(x, &p,
                           "%s was not granted, and nobody holds it: it was released meanwhile, or "
                           "the server was restored from a backup and grants nothing yet",
                           p.path ? p.path : "it");
    else
        clave__web_problem(x, &p, "%s is held by another", p.path ? p.path : "it");
}

/* It was not to wait, and is not free: whose is it? */
static bool claim_ask_holder(struct session_call *k)
{
    const struct claim *c = k->claim;
    clave_async_client *client = k->s->client;
    clave_err err = CLAVE_ECLOSED;
    if (!client)
        return false;
    if (strcmp(c->kind->name, "semaphore") == 0)
        err = clave_async_semaphore_participants(client, c->path, on_claim_holder, k->x);
    else if (strcmp(c->kind->name, "election") == 0)
        err = clave_async_latch_leader(client, c->path, on_claim_holder, k->x);
    else if (strcmp(c->kind->name, "lock") == 0)
        err = clave_async_participants(client, c->path, on_claim_holder, k->x);
    else
        err = clave_async_rwlock_participants(client, c->path, CLAVE_RWLOCK_BOTH, on_claim_holder,
                                              k->x);
    if (err != CLAVE_OK)
        return false;
    k->path = clave__web_sprintf(k->x, "%s", c->path);
    k->claim = NULL; /* a repeated request makes another one, and this one is forgotten */
    clave__web_expect(k->x);
    clave__http_session_flush(k->s);
    return true;
}

void clave__web_answer_claim(struct session_call *k, unsigned held)
{
    struct web_exchange *x = k->x;
    const struct claim *c = k->claim;
    if (c->state == CLAIM_ENDED && c->why == CLAVE_EBUSY && claim_ask_holder(k))
        return;
    if (c->state == CLAIM_ENDED || c->state == CLAIM_LEAVING) {
        claim_answer_end(k);
        return;
    }
    unsigned status = c->state == CLAIM_HELD ? held : 202;
    if (held == 201)
        clave__web_set_header(x, "Location", "/v1/claims/%s", c->place.uuid);
    clave__web_put_claim(x, NULL, c);
    clave__session_call_done(k);
    clave__web_answer_json(x, status);
}

/* ---- POST /v1/claims ------------------------------------------------------------------------- */

static bool claim_may(struct web_exchange *x, const char *path)
{
    static const struct problem refused = {.status = 403, .err = CLAVE_ENOAUTH};
    size_t n = strlen(path);
    const char *fault =
        n > MOST_PATH ? "it is longer than 8192 bytes" : clave__path_fault(path, n, false);
    if (!fault && clave__web_may(x, WEB_LOCK, path)) {
        x->acts_on = path;
        return true;
    }
    if (fault && n > MOST_PATH)
        path = NULL;
    if (fault)
        clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EPATH, .path = path},
                           "\"path\" is not valid: %s", fault);
    else
        clave__web_problem(x, &refused, "the role \"lock\" is needed on %s: see /v1/whoami", path);
    return false;
}

bool clave__web_read_claim(struct web_exchange *x, struct claim_terms *t, int64_t *ttl_ms)
{
    static const char *const keys[] = {"session",       "path",   "kind",    "limit",
                                       "lock_delay_ms", "name",   "command", "host",
                                       "revocable",     "ttl_ms", NULL};
    static const struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    static const int64_t limits[2] = {1, INT32_MAX}, delays[2] = {0, INT32_MAX};
    int64_t limit = 0;
    json_t *body = clave__web_body(x);
    *t = (struct claim_terms){.kind = "lock"};
    if (!body || !clave__body_only(x, body, keys) || !clave__body_text(x, body, "path", &t->path) ||
        !clave__body_text(x, body, "kind", &t->kind) ||
        !clave__body_int(x, body, "limit", limits, &limit) ||
        !clave__body_int(x, body, "lock_delay_ms", delays, &t->lock_delay_ms) ||
        !clave__body_text(x, body, "name", &t->name) ||
        !clave__body_text(x, body, "command", &t->command) ||
        !clave__body_text(x, body, "host", &t->host) ||
        !clave__body_flag(x, body, "revocable", &t->revocable) ||
        !clave__body_text(x, body, "session", &t->session) ||
        !clave__body_int(x, body, "ttl_ms", limits, ttl_ms))
        return false;
    t->limit = (uint32_t)limit;
    t->traceparent = clave__web_header(x, "traceparent");
    if (!t->host)
        t->host = x->q->peer.address;
    if (!t->path)
        clave__web_problem(x, &bad, "\"path\" is missing: that of the lock, as \"/jobs/nightly\"");
    else if (!clave__claim_kind(t->kind))
        clave__web_problem(x, &bad,
                           "\"kind\" is none of lock, read, write, semaphore, election: \"%.64s\"",
                           t->kind);
    return t->path && clave__claim_kind(t->kind) && claim_may(x, t->path);
}

static void on_claim_news(struct claim_poll *p)
{
    clave__web_answer_claim(LIST_ENTRY(p, struct session_call, poll), 201);
}

static void on_claim_polled(struct claim_poll *p)
{
    clave__web_answer_claim(LIST_ENTRY(p, struct session_call, poll), 200);
}

/* false: it has answered that too many wait. That is asked after the session was found: a poll that
 * is refused is a sign of life, so that its place is kept. */
static bool claim_may_wait(struct session_call *k)
{
    bool may = clave__web_prefer_wait(k->x) <= 0 || clave__web_may_wait(k->x);
    if (!may)
        clave__session_call_done(k);
    return may;
}

/* Without "Prefer: wait" the answer comes as soon as the place in the queue is known. */
static void claim_wait(struct session_call *k, void (*done)(struct claim_poll *p))
{
    int64_t wait = clave__web_prefer_wait(k->x), now = k->x->web->now;
    k->polls = true;
    k->poll.done = done;
    k->poll.wants_position = wait < 0;
    wait = wait < 0 || wait > MOST_WAIT_MS ? MOST_WAIT_MS : wait;
    if (k->claim->trying)
        wait = MOST_WAIT_MS; /* it does not wait for long by itself */
    clave__claim_await(k->claim, &k->poll, now + wait);
}

void clave__web_refuse_claim(struct session_call *k, clave_err err, const char *path)
{
    struct web_exchange *x = k->x;
    clave__session_call_done(k);
    if (err == CLAVE_EINUSE)
        clave__web_problem(
            x, &(struct problem){.status = 503, .err = err, .path = path, .retry_after_s = 1},
            "what an earlier request with this Idempotency-Key had is still being given back");
    else if (err == CLAVE_EINVAL)
        clave__web_problem(
            x, &(struct problem){.status = 400, .err = err, .path = path},
            "\"limit\" is for a semaphore, and needed there; \"lock_delay_ms\" is for "
            "lock, write and election");
    else if (err == CLAVE_EQUOTA)
        clave__web_problem(x, &(struct problem){.status = 507, .err = err, .path = path},
                           "a session has at most %d claims: end some, or use another session",
                           SESSION_CLAIMS);
    else
        clave__web_problem_err(x, err, "claim", path);
}

/* The claim of an earlier request with this key must be of the same thing. */
static bool claim_is_same(const struct claim *c, const struct claim_terms *t)
{
    return strcmp(c->path, t->path) == 0 && strcmp(c->kind->name, t->kind) == 0 &&
           c->limit == t->limit;
}

/* The session that the body names, if it names one. */
static bool claim_is_of(const struct http_session *s, const struct claim_terms *t)
{
    int64_t id;
    return !t->session || (clave__web_parse_int(t->session, &id) && id == s->id);
}

static void claim_post(struct session_call *k)
{
    static const struct problem reused = {.status = 409, .err = CLAVE_ENODEEXISTS};
    struct web_exchange *x = k->x;
    const char *key = clave__web_header(x, "Idempotency-Key");
    struct claim_terms t;
    char id[CLAVE_UUID_TEXT + 1];
    int64_t ttl = 0;
    if (!claim_may_wait(k))
        return;
    if (!clave__web_read_claim(x, &t, &ttl)) {
        clave__session_call_done(k);
        return;
    }
    if (ttl != 0 || !claim_is_of(k->s, &t)) {
        clave__session_call_done(k);
        clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL},
                           "\"session\" is another than that of Clave-Session, or \"ttl_ms\" is "
                           "given, which is the session's: see POST /v1/sessions");
        return;
    }
    if (key) {
        clave__claim_id_of_key(k->s, key, id);
        t.id = id;
        k->claim = clave__claim_find(k->s, id);
    }
    if (k->claim && !claim_is_same(k->claim, &t)) {
        clave__session_call_done(k);
        clave__web_problem(x, &reused, "this Idempotency-Key was used for another claim");
        return;
    }
    t.trying = clave__web_prefer_wait(x) == 0;
    if (!t.name)
        t.name = k->s->name;
    clave_err err = k->claim ? CLAVE_OK : clave__claim_new(k->s, &t, &k->claim);
    if (err != CLAVE_OK)
        clave__web_refuse_claim(k, err, t.path);
    else
        claim_wait(k, on_claim_news);
}

void clave__web_post_claim(struct web_exchange *x)
{
    clave__session_call(x, NULL, claim_post);
}

/* ---- GET and DELETE -------------------------------------------------------------------------- */

/* NULL: it has answered. */
static struct claim *claim_named(struct session_call *k)
{
    static const struct problem unknown = {.status = 404, .err = CLAVE_ENOTHELD};
    struct web_exchange *x = k->x;
    k->claim = clave__claim_find(k->s, x->params[0]);
    if (k->claim)
        return k->claim;
    clave__session_call_done(k);
    clave__web_problem(
        x, &unknown,
        "this gate knows no such claim of the session. If it was made by another gate, or before a "
        "restart, POST it again with its id as Idempotency-Key: its place is found");
    return NULL;
}

/* Who may not lock there any more does not wait there either. */
static void claim_get(struct session_call *k)
{
    const struct claim *c = claim_may_wait(k) ? claim_named(k) : NULL;
    if (!c)
        return;
    struct web_exchange *x = k->x;
    x->acts_on = c->path;
    if (clave__web_may(x, WEB_LOCK, c->path)) {
        claim_wait(k, on_claim_polled);
    } else {
        clave__session_call_done(k);
        clave__web_must(x, WEB_LOCK, x->acts_on);
    }
}

void clave__web_get_claim(struct web_exchange *x)
{
    clave__session_call(x, NULL, claim_get);
}

static void on_claim_gone(struct claim_poll *p)
{
    struct session_call *k = LIST_ENTRY(p, struct session_call, poll);
    struct web_exchange *x = k->x;
    struct claim *c = k->claim;
    clave_err why = c->why;
    if (c->state == CLAIM_ENDED && (why == CLAVE_OK || why == CLAVE_ECANCELED)) {
        clave__session_call_done(k);
        clave__web_answer_empty(x, 204);
    } else if (c->state == CLAIM_ENDED) {
        claim_answer_end(k);
    } else { /* the node's delete goes on */
        static const struct problem unknown = {.status = 504, .err = CLAVE_EOPTIMEOUT};
        clave__session_call_done(k);
        clave__web_problem(x, &unknown, "the release is not confirmed yet");
    }
}

static void claim_delete(struct session_call *k)
{
    if (!claim_named(k))
        return;
    struct claim *c = k->claim;
    clave__claim_release(c);
    k->polls = true;
    k->poll.done = on_claim_gone;
    k->poll.wants_end = true;
    clave__claim_await(c, &k->poll, k->x->web->now + k->s->ttl_ms);
}

void clave__web_delete_claim(struct web_exchange *x)
{
    clave__session_call(x, NULL, claim_delete);
}
