/* claims_api.c - see claims_api.h. Invariant: a claim's place is kept whatever happens to the
 * request that waits for it; only DELETE and the session's end give it back. */
#include "web/api/claims/claims_api.h"

#include <assert.h>
#include <string.h>

#include "web/api/claims/claim_json.h"
#include "web/api/claims/claim_request.h"
#include "web/api/session_request.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/forwarded.h"
#include "web/http/prefer.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"
#include "web/http/request_limits.h"
#include "web/session/claim_nodes.h"

/* ---- what is answered ------------------------------------------------------------------------ */

struct claim_cause {
    clave_err why;
};

static void claim_put_cause(struct json *j, const void *arg)
{
    const struct claim_cause *c = arg;
    clave__web_put_cause(j, c->why);
}

/* It was not granted, or is over. */
static void claim_answer_end(struct session_request *k)
{
    struct web_exchange *x = k->x;
    const struct claim *c = k->claim;
    assert(c->state == CLAIM_ENDED || c->state == CLAIM_LEAVING);
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
    bool given_back = c->why == CLAVE_OK || c->why == CLAVE_ECANCELED;
    if (c->granted_at == 0 && p.status == 410 && !given_back)
        p.err = c->why;
    clave__session_request_done(k);
    if (refused) {
        clave__web_problem_err(x, cause.why, "claim or release", p.path);
        return;
    }
    clave__web_problem(x, &p, "%s is not held: %s", p.path ? p.path : "it",
                       cause.why == CLAVE_OK ? "it was given back" : clave_strerror(cause.why));
}

static void claim_put_holder(struct json *j, const void *arg)
{
    const clave_participant *p = arg;
    clave__json_open(j, p->left_over ? "left_over" : "holder", '{');
    clave__json_string(j, "node", p->node);
    clave__json_int64(j, "token", p->stat.czxid);
    clave__json_int64(j, "session", p->stat.ephemeral_owner);
    clave__json_string(j, "host", p->identity.host);
    clave__json_string(j, "name", p->identity.name);
    clave__json_string(j, "command", p->identity.command);
    clave__json_string(j, "text", p->identity.text);
    clave__json_close(j, '}');
}

static void on_claim_news(struct claim_poll *p);

/* The claim that this node is of; NULL: none. */
static const char *claim_of_holder(struct session_request *k, const char *node)
{
    bool is_claim = strncmp(node, "_c_", 3) == 0 && strlen(node) > 3 + CLAVE_UUID_TEXT;
    return is_claim ? clave__web_strndup(k->x, node + 3, CLAVE_UUID_TEXT) : NULL;
}

/* The first of the queue is this session's: what another gate got after the try had ended, or what
 * was tried and is being deleted. */
static void claim_is_own(struct session_request *k, const char *id)
{
    struct problem p = {.status = 409, .err = CLAVE_EBUSY, .path = k->path, .retry_after_s = 1};
    bool left = !k->path || clave__claim_is_being_left(k->s, k->path, id);
    if (!left && k->poll.done == on_claim_news && clave__claim_request_begin_again(k))
        return;
    clave__session_request_done(k);
    clave__web_problem(k->x, &p, "%s was not granted to this request, and %s",
                       p.path ? p.path : "it",
                       left ? "its place is being given back" : "another of this session has it");
}

static void on_claim_holder(clave_async_client *client, clave_err err,
                            const clave_participant *list, size_t n, void *arg)
{
    struct web_exchange *x = arg;
    (void)client;
    if (!clave__web_expected(x))
        return;
    struct session_request *k = x->pending;
    struct problem p = {.status = 409, .err = CLAVE_EBUSY, .path = k->path, .retry_after_s = 1};
    if (err == CLAVE_EEXPIRED || !clave__http_session_is_live(k->s)) {
        clave__session_request_gone(k, k->s->why ? k->s->why : err);
        return;
    }
    bool own = err == CLAVE_OK && n > 0 && list[0].stat.ephemeral_owner == k->s->id;
    const char *id = own ? claim_of_holder(k, list[0].node) : NULL;
    if (own && (!id || !k->tried || clave__claim_is_same_owner(id, k->tried))) {
        claim_is_own(k, id);
        return;
    }
    if (err == CLAVE_OK && n > 0) {
        p.members = claim_put_holder;
        p.arg = &list[0];
    }
    clave__session_request_done(k);
    if (err == CLAVE_ESASLREQUIRED)
        clave__web_problem_err(x, err, "claim", p.path);
    else if (err == CLAVE_OK && n == 0)
        clave__web_problem(x, &p,
                           "%s was not granted, and nobody holds it: it was released meanwhile, or "
                           "the first candidate is left over, or the server was restored from a "
                           "backup and grants nothing yet",
                           p.path ? p.path : "it");
    else if (err == CLAVE_OK && list[0].left_over)
        clave__web_problem(x, &p,
                           "%s was not granted: no session owns %s, the first of its queue, which "
                           "is left over and never ends by itself",
                           p.path ? p.path : "it", list[0].node);
    else if (err == CLAVE_OK)
        clave__web_problem(x, &p, "%s is held by another", p.path ? p.path : "it");
    else { /* perhaps nobody does: no server has answered, and "held by another" may be untrue */
        p.status = 503;
        p.err = CLAVE_EUNREACHABLE;
        clave__web_problem(x, &p, "%s was not granted, and who holds it could not be read: %s",
                           p.path ? p.path : "it", clave_strerror(err));
    }
}

/* It was not to wait, and is not free: whose is it? Its place is perhaps not yet deleted, so a
 * request that is not answered is not one of which nothing was done. */
static bool claim_ask_holder(struct session_request *k)
{
    const struct claim *c = k->claim;
    clave_async_client *client = k->s->client;
    if (!client)
        return false;
    if (c->kind->holders(client, c->path, on_claim_holder, k->x) != CLAVE_OK)
        return false;
    k->path = clave__web_sprintf(k->x, "%s", c->path);
    k->tried = clave__web_sprintf(k->x, "%s", c->place.uuid);
    k->claim = NULL; /* a repeated request makes another one, and this one is forgotten */
    clave__web_expect(k->x);
    clave__http_session_flush(k->s);
    return true;
}

void clave__web_answer_claim(struct session_request *k, unsigned held)
{
    assert(k->claim && (held == 200 || held == 201));
    struct web_exchange *x = k->x;
    struct claim *c = k->claim;
    bool tried = c->state == CLAIM_ENDED && c->why == CLAVE_EBUSY;
    if (tried && !clave__http_session_is_live(k->s)) {
        clave__session_request_gone(k, k->s->why ? k->s->why : CLAVE_ECLOSED);
        return;
    }
    if (tried && claim_ask_holder(k))
        return;
    if (c->state == CLAIM_ENDED || c->state == CLAIM_LEAVING) {
        claim_answer_end(k);
        return;
    }
    unsigned status = c->state == CLAIM_HELD ? held : 202;
    if (held == 201)
        clave__web_set_header(x, "Location", "%s/v1/claims/%s", clave__web_prefix(x),
                              c->place.uuid);
    clave__web_put_claim(x, c, true);
    clave__session_request_done(k);
    clave__web_answer_json(x, status);
}

/* ---- POST /v1/claims ------------------------------------------------------------------------- */

static void on_claim_news(struct claim_poll *p)
{
    struct session_request *k = LIST_ENTRY(p, struct session_request, poll);
    if (!clave__claim_request_is_excluded(k))
        clave__web_answer_claim(k, 201);
}

static void on_claim_polled(struct claim_poll *p)
{
    clave__web_answer_claim(LIST_ENTRY(p, struct session_request, poll), 200);
}

/* false: it has answered that too many wait. That is asked after the session was found: a poll that
 * is refused is a sign of life, so that its place is kept. */
static bool claim_may_wait(struct session_request *k)
{
    bool may = clave__web_prefer_wait(k->x) <= 0 || clave__web_may_wait(k->x);
    if (!may)
        clave__session_request_done(k);
    return may;
}

static void on_claim_proven(struct session_wait *w, clave_err err)
{
    struct session_request *k = clave__session_request_of(w);
    if (err != CLAVE_OK) {
        clave__session_request_gone(k, err);
        return;
    }
    clave__claim_poll_cancel(&k->poll);
    k->poll.wants_end = false;
    clave__claim_await(k->claim, &k->poll, k->x->web->now);
}

/* Another gate may have given back what was held when the request arrived. If so, that is news. */
static void claim_prove(struct session_request *k)
{
    k->poll.wants_end = true;
    clave__claim_await(k->claim, &k->poll, CLAVE_NEVER);
    clave__session_request_await(k, on_claim_proven);
    clave__http_session_prove(k->s, &k->wait);
}

/* Without "Prefer: wait" the answer to a new claim comes as soon as the place in the queue is
 * known, and whoever looks at one is told what is known: such a request is not counted, so it must
 * not wait. */
static void claim_wait(struct session_request *k, void (*done)(struct claim_poll *p))
{
    int64_t wait = clave__web_prefer_wait(k->x), now = k->x->web->now;
    bool looks = done == on_claim_polled;
    k->polls = true;
    k->poll.done = done;
    k->poll.wants_position = wait < 0;
    wait = wait < 0 && looks ? 0 : wait < 0 || wait > LONGEST_POLL_MS ? LONGEST_POLL_MS : wait;
    if (k->claim->trying && !looks)
        wait = LONGEST_POLL_MS; /* it does not wait for long by itself */
    if (k->claim->state == CLAIM_HELD && clave__http_session_is_shared(k->s))
        claim_prove(k);
    else
        clave__claim_await(k->claim, &k->poll, now + wait);
}

void clave__web_refuse_claim(struct session_request *k, clave_err err, const char *path)
{
    assert(err != CLAVE_OK);
    struct web_exchange *x = k->x;
    clave__session_request_done(k);
    if (err == CLAVE_EINUSE)
        clave__web_problem(
            x, &(struct problem){.status = 503, .err = err, .path = path, .retry_after_s = 1},
            "what this session had there before is still being given back");
    else if (err == CLAVE_EQUOTA)
        clave__web_problem(x, &(struct problem){.status = 507, .err = err, .path = path},
                           "a session has at most %d claims: end some, or use another session",
                           SESSION_CLAIMS);
    else
        clave__web_problem_err(x, err, "claim", path);
}

/* The session that the body names, if it names one. */
static bool claim_is_of(const struct http_session *s, const struct claim_terms *t)
{
    int64_t id;
    return !t->session || (clave__web_parse_int(t->session, &id) && id == s->id);
}

/* The gate stops, and the place is kept: with the key another gate goes on with it. That it is held
 * was not proved. Without the key nobody can go on, and the place stands until the session expires.
 */
static void claim_stop(struct web_exchange *x)
{
    struct session_request *k = x->pending;
    struct claim *c = k->claim;
    bool kept = c && !c->trying && c->state < CLAIM_LEAVING &&
                (c->placed || c->state > CLAIM_WAITING) && clave__http_session_is_shared(k->s);
    if (!kept) {
        clave__session_request_done(k);
        clave__web_problem_err(x, CLAVE_EOPTIMEOUT, "claim", x->deed.path);
        return;
    }
    clave__web_set_header(x, "Location", "%s/v1/claims/%s", clave__web_prefix(x), c->place.uuid);
    clave__web_put_claim(x, c, false);
    clave__session_request_done(k);
    clave__web_answer_json(x, 202);
}

/* Nothing is in its way. */
static void claim_begin(struct session_request *k)
{
    const struct claim_request *o = k->arg;
    bool repeated = k->claim != NULL;
    clave_err err = repeated ? CLAVE_OK : clave__claim_new(k->s, &o->terms, &k->claim);
    if (err == CLAVE_OK)
        err = clave__web_admit_claim(k->x, k->claim);
    if (err == CLAVE_OK) {
        k->x->stop = claim_stop;
        claim_wait(k, on_claim_news);
        return;
    }
    if (k->claim && !repeated)
        clave__claim_release(k->claim);
    clave__web_refuse_claim(k, err, o->terms.path);
}

static void claim_post(struct session_request *k)
{
    struct web_exchange *x = k->x;
    const char *key = clave__web_header(x, "Idempotency-Key");
    struct claim_request *o = claim_may_wait(k) ? clave__claim_request_read(x) : NULL;
    if (!o) {
        clave__session_request_done(k);
        return;
    }
    if (o->ttl_ms != 0 || !claim_is_of(k->s, &o->terms)) {
        clave__session_request_done(k);
        clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL},
                           "\"session\" is another than that of Clave-Session, or \"ttl_ms\" is "
                           "given, which is the session's: see POST /v1/sessions");
        return;
    }
    if (key) {
        clave__claim_id_of_key(k->s, key, o->own);
        o->keyed = true;
        o->terms.id = o->own;
    }
    o->terms.trying = clave__web_prefer_wait(x) == 0;
    if (!o->terms.name)
        o->terms.name = k->s->name;
    k->arg = o;
    clave__claim_request_look(k, claim_begin);
}

void clave__web_post_claim(struct web_exchange *x)
{
    clave__session_request_informed(x, NULL, claim_post);
}

/* ---- GET -------------------------------------------------------------------------- */

static void claim_tell_deed(struct session_request *k, const struct claim *c)
{
    if (!c)
        return;
    k->x->deed.path = clave__web_sprintf(k->x, "%s", c->path);
    k->x->deed.what = c->kind->name;
}

/* NULL: it has answered. */
static struct claim *claim_named(struct session_request *k)
{
    static const struct problem unknown = {.status = 404, .err = CLAVE_ENOTHELD};
    static const struct claim_cause released = {CLAVE_OK};
    const struct problem over = {
        .status = 410, .err = CLAVE_ELOST, .members = claim_put_cause, .arg = &released};
    struct web_exchange *x = k->x;
    bool marked = clave__claim_is_marked(k->s, x->params[0]), blind = k->s->blind;
    k->claim = clave__claim_find(k->s, x->params[0]);
    claim_tell_deed(k, k->claim);
    if (k->claim)
        return k->claim;
    clave__session_request_done(k);
    if (marked)
        clave__web_problem(x, &over, "the claim was given back");
    else
        clave__web_problem(x, &unknown, "the session has no such claim%s",
                           blind ? " that this gate knows. If another gate made it, or this one "
                                   "before a restart, POST it again with its id as Idempotency-Key"
                                 : "");
    return NULL;
}

/* Who may not lock there any more does not wait there either. */
static void claim_get(struct session_request *k)
{
    struct claim *c = claim_may_wait(k) ? claim_named(k) : NULL;
    if (!c)
        return;
    struct web_exchange *x = k->x;
    x->acts_on = c->path;
    if (clave__web_may(x, WEB_LOCK, c->path)) {
        (void)clave__web_admit_claim(x, c); /* without memory it is judged as before */
        claim_wait(k, on_claim_polled);
    } else {
        clave__session_request_done(k);
        clave__web_must(x, WEB_LOCK, x->acts_on);
    }
}

void clave__web_get_claim(struct web_exchange *x)
{
    clave__session_request_informed(x, NULL, claim_get);
}

/* ---- PATCH ----------------------------------------------------------------------------------- */

struct claim_change {
    size_t pending; /* nodes */
    clave_err err;
    const char *id;
};

static void claim_leave_session(struct web_exchange *x)
{
    clave__session_request_done(x->pending);
}

static void on_claim_described(void *arg, clave_err err)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    struct session_request *k = x->pending;
    struct claim_change *change = k->arg;
    assert(change->pending > 0);
    change->err = change->err != CLAVE_OK ? change->err : err;
    if (--change->pending > 0)
        return;
    clave__web_timer_clear(x->web, &x->timer);
    k->claim = clave__claim_find(k->s, change->id);
    bool lost = change->err == CLAVE_ELOST || change->err == CLAVE_ENONODE;
    x->begun = true;
    if (k->claim && (change->err == CLAVE_OK || lost))
        claim_wait(k, on_claim_polled); /* what it is now */
    else
        clave__web_problem_err(x, change->err != CLAVE_OK ? change->err : CLAVE_ELOST,
                               "change what is said of", x->deed.path);
}

static bool claim_read_said(struct web_exchange *x, clave_identity *said)
{
    static const struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    static const char *const keys[] = {"name", "command", "host", NULL};
    enum { MOST_SAID = 4096 };
    json_t *body = clave__web_body(x);
    *said = (clave_identity){.host = NULL};
    if (!body || !clave__body_only(x, body, keys) ||
        !clave__body_text(x, body, "name", &said->name) ||
        !clave__body_text(x, body, "command", &said->command) ||
        !clave__body_text(x, body, "host", &said->host))
        return false;
    size_t n = (said->name ? strlen(said->name) : 0) + (said->host ? strlen(said->host) : 0) +
               (said->command ? strlen(said->command) : 0);
    said->text = said->name;
    if (n > 0 && n <= MOST_SAID)
        return true;
    clave__web_problem(x, &bad,
                       "one of \"name\", \"command\" and \"host\" is needed, and together they "
                       "have at most %d bytes",
                       (int)MOST_SAID);
    return false;
}

static void claim_patch(struct session_request *k)
{
    struct web_exchange *x = k->x;
    struct problem early = {.status = 409, .err = CLAVE_ENOTHELD, .retry_after_s = 1};
    struct claim_change *change = clave__web_alloc(x, sizeof *change);
    clave_identity said;
    x->answering = claim_leave_session;
    struct claim *c = claim_named(k);
    if (c && !x->deed.path)
        clave__web_problem_err(x, CLAVE_ENOMEM, "change what is said of", x->params[0]);
    if (x->answered || !clave__web_must(x, WEB_LOCK, x->deed.path) || !claim_read_said(x, &said))
        return;
    if (c->state == CLAIM_ENDED || c->state == CLAIM_LEAVING) {
        claim_answer_end(k);
        return;
    }
    early.path = x->deed.path;
    clave_err err = CLAVE_ENOMEM;
    if (change) {
        *change = (struct claim_change){.id = x->params[0]};
        k->arg = change;
        err = c->kind->describe(c, &said, on_claim_described, x, &change->pending);
        for (size_t i = 0; i < change->pending; i++)
            clave__web_expect(x);
        change->err = err;
    }
    if (change && change->pending > 0)
        clave__http_session_flush(k->s);
    else if (err == CLAVE_OK)
        clave__web_problem(x, &early,
                           "%s has no node yet that could say something else: ask again when it is "
                           "held",
                           early.path ? early.path : "it");
    else
        clave__web_problem_err(x, err, "change what is said of", early.path);
}

void clave__web_patch_claim(struct web_exchange *x)
{
    clave__session_request_informed(x, NULL, claim_patch);
}

/* ---- DELETE ---------------------------------------------------------------------------------- */

/* A claim is given back, whichever gate has made it. Its mark (session/claim_elsewhere.c) is sent
 * before the delete of its node, and both are answered before it is said to be over: no request of
 * before makes it anew then, at any gate. When the answer to the mark is lost, the mark is made
 * again, and what was made of the claim meanwhile is given back, too. */
struct claim_leaving {
    const char *id;
    bool was_marked, known; /* it was given back before; there is such a claim here */
    bool marking, ending;   /* answers that are to come: of the mark; of the claim's end */
    bool again;             /* that of the mark was lost */
    bool ended;
    clave_err why;
};

static void claim_leave(struct session_request *k);

static void on_claim_leave_looked(struct session_wait *w, clave_err err)
{
    struct session_request *k = clave__session_request_of(w);
    if (err == CLAVE_OK)
        claim_leave(k);
    else
        clave__session_request_gone(k, err);
}

static void claim_answer_left(struct session_request *k)
{
    static const struct problem unknown = {.status = 504, .err = CLAVE_EOPTIMEOUT};
    static const struct problem none = {.status = 404, .err = CLAVE_ENOTHELD};
    const struct claim_leaving *l = k->arg;
    struct web_exchange *x = k->x;
    bool released = l->ended && (l->why == CLAVE_OK || l->why == CLAVE_ECANCELED);
    if (l->ended && !released && (k->claim = clave__claim_find(k->s, l->id)) != NULL) {
        claim_answer_end(k);
        return;
    }
    clave__session_request_done(k);
    if (released || (!l->known && l->was_marked))
        clave__web_answer_empty(x, 204);
    else if (!l->known || l->ended)
        clave__web_problem(x, &none, "the session has no such claim");
    else /* the node's delete goes on */
        clave__web_problem(x, &unknown, "the release is not confirmed yet");
}

static void claim_leave_step(struct session_request *k)
{
    struct claim_leaving *l = k->arg;
    if (l->marking || l->ending)
        return;
    if (!l->again) {
        claim_answer_left(k);
        return;
    }
    l->again = false;
    k->s->looked_on = 0;
    clave__session_request_await(k, on_claim_leave_looked);
    clave__http_session_prove(k->s, &k->wait);
}

static void on_claim_marked(clave_async_client *client, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)client;
    if (!clave__web_expected(x))
        return;
    struct session_request *k = x->pending;
    struct claim_leaving *l = k->arg;
    clave_err_class class_ = clave_err_classify(res->err);
    l->marking = false;
    l->again = class_ == CLAVE_CLASS_UNKNOWN || class_ == CLAVE_CLASS_RETRY;
    claim_leave_step(k);
}

static void on_claim_gone(struct claim_poll *p)
{
    struct session_request *k = LIST_ENTRY(p, struct session_request, poll);
    struct claim_leaving *l = k->arg;
    l->ending = false;
    l->ended = k->claim->state == CLAIM_ENDED;
    l->why = k->claim->why;
    claim_leave_step(k);
}

static void claim_leave(struct session_request *k)
{
    struct claim_leaving *l = k->arg;
    struct http_session *s = k->s;
    struct web_exchange *x = k->x;
    struct claim *c = clave__claim_find(s, l->id);
    x->begun = true;
    if (!l->was_marked && clave__http_session_is_shared(s) &&
        clave__claim_mark_send(s, l->id, on_claim_marked, x) == CLAVE_OK) {
        clave__web_expect(x);
        l->marking = true;
    }
    (void)clave__claim_mark_note(s, l->id); /* without memory the servers know it */
    clave__claim_marks_trim(s);
    k->claim = c;
    if (c) {
        l->known = l->ending = true;
        clave__claim_release(c);
        k->polls = true;
        k->poll = (struct claim_poll){.done = on_claim_gone, .wants_end = true};
        clave__claim_await(c, &k->poll, x->web->now + s->ttl_ms);
    } else {
        clave__http_session_flush(s);
        claim_leave_step(k);
    }
}

static void claim_delete_known(struct session_request *k)
{
    struct web_exchange *x = k->x;
    struct claim_leaving *l = clave__web_alloc(x, sizeof *l);
    bool is_id = clave__claim_is_id(x->params[0]);
    if (l && is_id) {
        *l = (struct claim_leaving){.id = x->params[0],
                                    .was_marked = clave__claim_is_marked(k->s, x->params[0])};
        k->arg = l;
        claim_tell_deed(k, clave__claim_find(k->s, l->id));
        claim_leave(k);
        return;
    }
    if (!is_id) {
        claim_named(k);
        return;
    }
    clave__session_request_done(k);
    clave__web_problem_err(x, CLAVE_ENOMEM, "release", x->params[0]);
}

enum { SETTLING = 2 };

/* What is held at another gate is released as such: with the mark of its lock delay. */
static void claim_delete(struct session_request *k)
{
    const struct claim *c = clave__claim_find(k->s, k->x->params[0]);
    if (c && c->at && c->lock_delay_ms > 0)
        clave__session_request_settle(k, SETTLING, claim_delete_known);
    else
        claim_delete_known(k);
}

void clave__web_delete_claim(struct web_exchange *x)
{
    clave__session_request_informed(x, NULL, claim_delete);
}
