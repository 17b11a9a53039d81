/* claims.c - /v1/claims: locks, leases and leaderships are asked for, waited for, given back.
 *
 * The usual path of POST /v1/claims, each step with the function that it is in. A request waits in
 * one way: it sets k->next, the step that follows, and session_request.c calls that when what the
 * request waits for has come.
 *
 *   clave__web_post_claim   the handler; a claim of kind "slot" goes on in slots.c
 *   session_request.c       finds the session of Clave-Session, waits until it is live, and lists
 *                           its claims if another gate may have made or released some
 *   post_claim              reads the body and Idempotency-Key, and checks the sender's role
 *   post_find               finds the claim of an earlier request for the same; if there is none,
 *                           asks the servers for missing parents and the limit of a semaphore
 *                           (clave__claim_request_check); then post_find_again finds a claim that
 *                           came meanwhile
 *   post_make               makes the claim, or goes on with the earlier one: session_claims.c has
 *                           the claim, claim_kinds.c starts the recipe of its kind, and claim.c
 *                           moves the claim from state to state as the recipe reports, and calls
 *                           those who wait for it
 *   answer_wait             waits for news of the claim, as long as "Prefer: wait" says
 *   post_answer             answers (clave__claim_answer): 201 held, 202 waiting; http/answer.c
 *                           writes the answer, and runtime/gate passes it to the connection
 *
 * What may go wrong:
 *
 *   - the session has a different claim on this path: that is proved first (claim_request_prove),
 *     since another gate may have released it; then 409 (claim_request_refuse)
 *   - the session's earlier claim there is still being released: 503
 *   - the claim of this Idempotency-Key was released before: 410
 *   - a create finds a place that the session got at another gate (post_is_excluded): the request
 *     goes on with that claim, or 409
 *   - the lock is taken and the request may not wait: asks who holds it (try_ask_holder), then 409
 *   - another gate may have had the session since the request arrived: the state is proved before
 *     it is reported (answer_checks)
 *   - the connection to the servers is lost: 202 "suspended", and the client asks again
 *   - the session ends: 410 (clave__session_request_gone)
 *   - the client hangs up (clave__session_request_leave), or the gate stops (post_stop)
 *
 * Invariants: a claim's place is kept whatever happens to the request that waits for it, and only
 * DELETE and the end of the session release it. An answer that tells what is at the servers rests
 * on a listing made after the request arrived, on the session's own connection. */
#include "web/api/api.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/path.h"
#include "clave/async/semaphore.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_kind.h"

/* ==== what is asked for ======================================================================= */

enum { MOST_PATH = 8192, MOST_PERMITS = 1000 };

/* ---- the body -------------------------------------------------------------------------------- */

static bool claim_request_may(struct web_exchange *x, const char *path)
{
    size_t n = strlen(path);
    const char *fault =
        n > MOST_PATH ? "it is longer than 8192 bytes" : clave__path_fault(path, n, false);
    if (!fault && clave__web_may(x, WEB_LOCK, path)) {
        x->acts_on = path;
        return true;
    }
    if (fault)
        return clave__web_refuse(x, 400, CLAVE_EPATH, n > MOST_PATH ? NULL : path,
                                 "\"path\" is not valid: %s", fault);
    return clave__web_refuse(x, 403, CLAVE_ENOAUTH, NULL,
                             "the role \"lock\" is needed on %s: see /v1/whoami", path);
}

/* A lock delay needs a mark in a node beside that of the lock, and the sender needs the role on
 * that node, too. */
static bool claim_request_may_mark(struct web_exchange *x, const struct claim_terms *t)
{
    char *mark = t->lock_delay_ms > 0 ? clave__web_sprintf(x, "%s-held", t->path) : NULL;
    if (t->lock_delay_ms == 0)
        return true;
    if (mark && clave__web_may(x, WEB_LOCK, mark))
        return clave__web_must(x, WEB_LOCK, mark);
    if (mark)
        clave__web_refuse(x, 403, CLAVE_ENOAUTH, mark,
                          "\"lock_delay_ms\" marks the holder in a node beside the lock's: the "
                          "role \"lock\" is needed on %s, too",
                          mark);
    else
        clave__web_problem_err(x, CLAVE_ENOMEM, "claim", t->path);
    return false;
}

static bool claim_request_read_terms(struct web_exchange *x, struct claim_request *o,
                                     const char **kind)
{
    struct claim_terms *t = &o->terms;
    int64_t limit = 0, permits = 0;
    const struct body_member members[] = {
        {"session", .text = &t->session},
        {"path", .text = &t->path},
        {"kind", .text = kind},
        {"limit", .number = &limit, .least = 1, .most = INT32_MAX},
        {"permits", .number = &permits, .least = 1, .most = MOST_PERMITS},
        {"lock_delay_ms", .number = &t->lock_delay_ms, .least = 0, .most = INT32_MAX},
        {"max_hold_ms", .number = &t->max_hold_ms, .least = 1, .most = INT32_MAX},
        {"depend_ms", .number = &t->depend_ms, .least = 1, .most = INT32_MAX},
        {"ttl_ms", .number = &o->ttl_ms, .least = 1, .most = INT32_MAX},
        {"name", .text = &t->name},
        {"command", .text = &t->command},
        {"host", .text = &t->host},
        {"revocable", .flag = &t->revocable},
    };
    bool fine = clave__web_read_body(x, BODY_MEMBERS(members));
    t->limit = (uint32_t)limit;
    t->permits = (uint32_t)permits;
    return fine;
}

struct claim_request *clave__claim_request_read(struct web_exchange *x)
{
    struct claim_request *o = clave__web_must_alloc(x, sizeof *o);
    const char *name = "lock", *misfit = NULL;
    if (!o || !claim_request_read_terms(x, o, &name))
        return NULL;
    struct claim_terms *t = &o->terms;
    const struct claim_kind *const *kind = clave__claim_kinds;
    while (*kind && strcmp((*kind)->name, name) != 0)
        kind++;
    t->kind = *kind;
    t->traceparent = clave__web_header(x, "traceparent");
    if (!t->host)
        t->host = x->peer.address;
    if (!t->path)
        clave__web_bad_request(x, "\"path\" is missing: that of the lock, as \"/jobs/nightly\"");
    else if (!t->kind && strcmp(name, "slot") == 0)
        clave__web_bad_request(x,
                               "\"kind\" is \"slot\", which belongs to an id and not to a session: "
                               "send the header Clave-Owner in place of Clave-Session");
    else if (!t->kind)
        clave__web_bad_request(x, "\"kind\" is none of " CLAIM_KIND_NAMES ": \"%.64s\"", name);
    else if ((misfit = t->kind->misfit(t)) != NULL)
        clave__web_bad_request(x, "%s", misfit);
    bool fine = t->path && t->kind && !misfit;
    x->deed.path = t->path;
    x->deed.what = name;
    if (fine && t->limit)
        x->deed.what = clave__web_sprintf(x, "%s limit=%" PRIu32 " permits=%" PRIu32, name,
                                          t->limit, t->permits ? t->permits : 1);
    return fine && claim_request_may(x, t->path) && claim_request_may_mark(x, t) ? o : NULL;
}

/* ---- the session's own claim ----------------------------------------------------------------- */

static void claim_request_put_claim(struct json *j, const void *id)
{
    clave__json_string(j, "claim", id);
}

/* The claim that this request repeats was made on other terms, as `how` says. */
static void claim_request_refuse_terms(struct session_request *k, const struct claim *c,
                                       const struct claim_difference *how)
{
    const struct claim_request *o = k->arg;
    const struct problem p = {.status = 409,
                              .err = CLAVE_ENODEEXISTS,
                              .path = o->terms.path,
                              .members = claim_request_put_claim,
                              .arg = c->place.uuid};
    clave__web_problem(k->x, &p,
                       "the claim %s of this %s was made %s, and is asked for %s: repeat the "
                       "request unchanged, or end that claim",
                       c->place.uuid, o->keyed ? "Idempotency-Key" : "session", how->made,
                       how->asked);
}

/* A session can have one place for each path and owner, and this session has one that differs from
 * what is asked for. */
static void claim_request_refuse(struct session_request *k, const char *path, const char *id)
{
    const struct problem p = {.status = 409,
                              .err = CLAVE_ENODEEXISTS,
                              .path = path,
                              .members = claim_request_put_claim,
                              .arg = id};
    clave__web_problem(
        k->x, &p,
        "this session has the claim %s on %s, of another kind or Idempotency-Key, and a session "
        "has one place a path and owner: end that claim, or use another session, or a key with "
        "another owner",
        id, path);
}

void clave__claim_request_refuse(struct session_request *k, clave_err err, const char *path)
{
    assert(err != CLAVE_OK);
    struct web_exchange *x = k->x;
    if (err == CLAVE_EINUSE)
        clave__web_refuse(x, 503, err, path,
                          "what this session had on %s is still being given back", path);
    else if (err == CLAVE_EQUOTA)
        clave__web_refuse(x, 507, err, path,
                          "a session has at most %d claims: end some, or use another session",
                          SESSION_CLAIMS);
    else
        clave__web_problem_err(x, err, "claim", path);
}

static void claim_answer_released(struct session_request *k, const char *path, const char *text)
{
    static const clave_err released = CLAVE_OK;
    const struct problem p = {.status = 410,
                              .err = CLAVE_ELOST,
                              .path = path,
                              .members = clave__web_put_cause,
                              .arg = &released};
    clave__web_problem(k->x, &p, "%s", text);
}

static void post_find(struct session_request *k);

/* The claim that is in the way may have been released at another gate, so this is proved first. */
static void claim_request_prove(struct session_request *k)
{
    struct claim_request *o = k->arg;
    o->proved = true;
    clave__session_request_prove(k, post_find);
}

/* Sets k->claim to the claim of an earlier request for the same, if there is one. Returns false if
 * it has answered, or if the request begins again later. */
static bool claim_request_find_own(struct session_request *k)
{
    const struct claim_request *o = k->arg;
    const struct claim_terms *t = &o->terms;
    struct claim *keyed = o->keyed ? clave__claim_find(k->s, o->own) : NULL;
    if (keyed && clave__claim_is_over(keyed) && keyed->why == CLAVE_ENOAUTH &&
        keyed->granted_at == 0)
        keyed = NULL; /* the earlier request was refused, so this one is judged anew */
    struct claim *c = keyed ? keyed : clave__claim_on_path(k->s, t->path, t->id);
    struct claim_difference how;
    bool differs = c && clave__claim_differs(c, t, &how);
    bool leaving =
        c ? !keyed && c->state > CLAIM_HELD : clave__claim_is_being_left(k->s, t->path, t->id);
    bool marked = !keyed && o->keyed && clave__http_session_has_mark(k->s, o->own);
    if (marked && !o->proved && !clave__http_session_mark_is_certain(k->s, o->own)) {
        k->s->listed_on = 0; /* the proof deletes what is left of it */
        claim_request_prove(k);
    } else if (marked) {
        claim_answer_released(k, t->path, "the claim of this Idempotency-Key was given back");
    } else if (keyed && differs) {
        claim_request_refuse_terms(k, keyed, &how);
    } else if (leaving) {
        clave__claim_request_refuse(k, CLAVE_EINUSE, t->path);
    } else if (!keyed && c && (o->keyed || differs)) {
        if (!o->proved && clave__http_session_is_shared(k->s))
            claim_request_prove(k);
        else if (o->keyed)
            claim_request_refuse(k, t->path, c->place.uuid);
        else
            claim_request_refuse_terms(k, c, &how);
    } else {
        k->claim = c;
        return true;
    }
    return false;
}

/* ---- asking the servers --------------------------------------------------------------------- */

/* Nothing at the servers is in the way. */
static void claim_request_checked(struct session_request *k)
{
    clave__web_timer_clear(k->x->web,
                           &k->x->timer); /* the timer was for the callbacks, which have all come */
    k->x->only_reads = false;
    k->next(k);
}

/* Returns false if the servers' answer is of no use; then the request has been answered. */
static bool claim_request_has_answer(struct session_request *k, clave_err err)
{
    const struct claim_request *o = k->arg;
    bool refused = err == CLAVE_ENONODE || err == CLAVE_ENOAUTH;
    if (err == CLAVE_OK || refused)
        return true;
    if (!clave__http_session_is_live(k->s))
        clave__session_request_gone(k, k->s->why ? k->s->why : CLAVE_ECLOSED);
    else
        clave__web_problem_as(k->x, 503, err, "look at", o->at);
    return false;
}

static void claim_request_submitted(struct session_request *k, clave_err err)
{
    const struct claim_request *o = k->arg;
    k->x->only_reads = true;
    if (err == CLAVE_OK) {
        clave__web_expect(k->x);
        clave__http_session_flush(k->s);
    } else if (claim_request_has_answer(k, err)) {
        clave__web_problem_err(k->x, err, "look at", o->at);
    }
}

/* ---- the limit of a semaphore, as a lease says it ---- */

static void claim_request_put_limit(struct json *j, const void *limit)
{
    clave__json_int(j, "limit", *(const uint32_t *)limit);
}

static void on_claim_request_lease(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    clave_identity id = {.limit = 0};
    (void)c;
    if (!clave__web_expected(x))
        return;
    struct session_request *k = x->owned;
    const struct claim_request *o = k->arg;
    if (!claim_request_has_answer(k, res->err))
        return;
    char *text =
        res->err == CLAVE_OK ? clave__web_strndup(x, res->data ? res->data : "", res->len) : NULL;
    if (text)
        clave__identity_parse(text, res->len, &id);
    if (id.limit == 0 || id.limit == o->terms.limit) {
        claim_request_checked(k);
        return;
    }
    const struct problem p = {.status = 409,
                              .err = CLAVE_EINVAL,
                              .path = o->terms.path,
                              .members = claim_request_put_limit,
                              .arg = &id.limit};
    clave__web_problem(x, &p,
                       "the semaphore %s has the limit %" PRIu32 ", as those who hold it say, and "
                       "%" PRIu32 " was asked for: all must give the same",
                       o->terms.path, id.limit, o->terms.limit);
}

static void on_claim_request_leases(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    struct session_request *k = x->owned;
    struct claim_request *o = k->arg;
    if (!claim_request_has_answer(k, res->err))
        return;
    if (res->err != CLAVE_OK || res->nnames == 0) {
        claim_request_checked(k);
        return;
    }
    o->at = clave__web_child(x, o->at, res->names[0]);
    claim_request_submitted(k, o->at ? clave_async_get(c, o->at, NULL, on_claim_request_lease, x)
                                     : CLAVE_ENOMEM);
}

static void claim_request_check_limit(struct web_exchange *x, clave_async_client *c)
{
    struct session_request *k = x->owned;
    struct claim_request *o = k->arg;
    if (o->terms.kind->queue != QUEUE_LEASE) {
        claim_request_checked(k);
        return;
    }
    o->at = clave__web_child(x, o->terms.path, "leases");
    claim_request_submitted(
        k, o->at ? clave_async_children(c, o->at, NULL, on_claim_request_leases, x) : CLAVE_ENOMEM);
}

void clave__claim_request_check(struct session_request *k, session_step *next)
{
    const struct claim_request *o = k->arg;
    k->next = next;
    clave__web_check_parents(k->x, k->s->client, o->terms.path, claim_request_check_limit);
    if (k->s)
        clave__http_session_flush(k->s);
}

/* ==== a claim as JSON ========================================================================= */

static const char *claim_json_state_name(const struct claim *c, bool proven)
{
    if (clave__claim_is_half_left(c))
        return "suspended";
    switch (c->state) {
    case CLAIM_WANTED:
    case CLAIM_QUEUED:
    case CLAIM_DELAYED:
    case CLAIM_DOUBTED:
        proven |= !clave__http_session_is_shared(c->part.s);
        return proven && clave__claim_is_fresh(c) ? "waiting" : "suspended";
    case CLAIM_HELD:
        return proven ? "held" : "suspended";
    case CLAIM_LEAVING:
        return c->overheld ? "lost" : "released";
    case CLAIM_SPENT:
    case CLAIM_SOUGHT:
    case CLAIM_OVER:
    case CLAIM_STATES:
        break;
    }
    return clave__claim_was_released(c) ? "released" : "lost";
}

clave_err clave__web_admit_claim(const struct web_exchange *x, struct claim *c)
{
    return clave__claim_admit(c, &x->peer, clave__web_header(x, "Authorization"));
}

void clave__web_put_claim(struct web_exchange *x, struct claim *c, bool proven)
{
    struct json *j = &x->json;
    /* A claim that another gate has made has no sender here yet. Until a sender who may lock there
     * asks for the claim, each request is judged by its own roles. */
    proven = proven && (c->sender || clave__web_may(x, WEB_LOCK, c->path));
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "id", c->place.uuid);
    clave__json_string(j, "path", c->path);
    clave__json_string(j, "kind", c->kind->name);
    clave__json_string(j, "state", claim_json_state_name(c, proven));
    if (c->state == CLAIM_HELD) {
        clave__json_int64(j, "token", c->grant.token);
        if (proven)
            clave__json_int(j, "valid_ms", clave__claim_report_valid_ms(c, x->arrived));
        clave__json_string(j, "node", c->node);
        if (c->forbidden)
            clave__web_put_cause(j, &(const clave_err){CLAVE_EAUTHFAILED});
    } else if (c->state == CLAIM_QUEUED && c->part.s->attached &&
               clave__claim_is_fresh(c)) { /* otherwise the position is not known */
        clave__json_int(j, "position", (int64_t)c->ahead + 1);
        if (c->left_over)
            clave__json_string(j, "left_over", c->left_over);
    } else if (clave__claim_has_ended(c) && !clave__claim_is_half_left(c)) {
        clave__web_put_cause(j, &c->why);
    }
    clave__json_close(j, '}');
}

/* ==== claims of a session ===================================================================== */

/* ---- what is answered ------------------------------------------------------------------------ */

/* Answers for a claim that was not granted, or has ended. */
static void answer_claim_end(struct session_request *k)
{
    struct web_exchange *x = k->x;
    const struct claim *c = k->claim;
    assert(c->state > CLAIM_HELD);
    clave_err why = c->why; /* the claim may be freed with the answer */
    /* No hold has ended: the node could not be created, or could not be deleted. */
    bool refused = c->why == CLAVE_ENOAUTH || (c->granted_at == 0 && !clave__web_is_cause(c->why));
    struct problem p = {.status = 410,
                        .err = CLAVE_ELOST,
                        .path = x->deed.path,
                        .members = clave__web_put_cause,
                        .arg = &why};
    if (c->why == CLAVE_EBUSY || c->why == CLAVE_EDEADLOCK) {
        p.status = 409;
        p.err = c->why;
    }
    bool given_back = c->why == CLAVE_OK || c->why == CLAVE_ECANCELED;
    if ((c->granted_at == 0 && p.status == 410 && !given_back) || why == CLAVE_ESILENT)
        p.err = why;
    if (refused) {
        clave__web_problem_err(x, why, "claim or release", p.path);
        return;
    }
    clave__web_problem(x, &p, "%s is not held: %s", p.path ? p.path : "it",
                       why == CLAVE_OK ? "it was given back" : clave_strerror(why));
}

static void try_put_holder(struct json *j, const void *arg)
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

static void post_claim(struct session_request *k);
static void post_find_again(struct session_request *k);

/* The first place in the queue is this session's own: either another gate was granted it after the
 * try had ended, or it is the place of the try, which is being deleted. */
static void try_found_own(struct session_request *k, const char *id)
{
    struct problem p = {
        .status = 409, .err = CLAVE_EBUSY, .path = k->x->deed.path, .retry_after_s = 1};
    bool left = !p.path || clave__claim_is_being_left(k->s, p.path, id);
    struct claim_request *o = k->handle == post_claim ? k->arg : NULL;
    if (!left && o && !o->again) {
        o->again = true;
        k->next = post_find_again;
        claim_request_checked(k);
        return;
    }
    clave__web_problem(k->x, &p, "%s was not granted to this request, and %s",
                       p.path ? p.path : "it",
                       left ? "its place is being given back" : "another of this session has it");
}

static void try_on_holder(clave_async_client *client, clave_err err, const clave_participant *list,
                          size_t n, void *arg)
{
    struct web_exchange *x = arg;
    (void)client;
    if (!clave__web_expected(x))
        return;
    struct session_request *k = x->owned;
    struct problem p = {
        .status = 409, .err = CLAVE_EBUSY, .path = k->x->deed.path, .retry_after_s = 1};
    const char *path = p.path ? p.path : "it";
    if (err == CLAVE_EEXPIRED || !clave__http_session_is_live(k->s)) {
        clave__session_request_gone(k, k->s->why ? k->s->why : err);
        return;
    }
    bool own = err == CLAVE_OK && n > 0 && list[0].stat.ephemeral_owner == k->s->id;
    bool is_claim =
        own && strncmp(list[0].node, "_c_", 3) == 0 && strlen(list[0].node) > 3 + CLAVE_UUID_TEXT;
    const char *id = is_claim ? clave__web_strndup(x, list[0].node + 3, CLAVE_UUID_TEXT) : NULL;
    if (own && (!id || !k->tried || clave__claim_is_same_owner(id, k->tried))) {
        try_found_own(k, id);
        return;
    }
    if (clave__http_session_is_shared(k->s) && clave_async_client_connection(client) != k->tried_on)
        err = CLAVE_ECONNLOSS; /* the delete of the try's place may be lost, and the place granted
                                * at another gate */
    if (err == CLAVE_OK && n > 0) {
        p.members = try_put_holder;
        p.arg = &list[0];
    }
    if (err == CLAVE_ESASLREQUIRED)
        clave__web_problem_err(x, err, "claim", p.path);
    else if (err == CLAVE_OK && n == 0)
        clave__web_problem(x, &p,
                           "%s was not granted, and nobody holds it: it was released meanwhile, or "
                           "the first candidate is left over, or the server was restored from a "
                           "backup and grants nothing yet",
                           path);
    else if (err == CLAVE_OK && list[0].left_over)
        clave__web_problem(x, &p,
                           "%s was not granted: no session owns %s, the first of its queue, which "
                           "is left over and never ends by itself",
                           path, list[0].node);
    else if (err == CLAVE_OK)
        clave__web_problem(x, &p, "%s is held by another", path);
    else { /* no server has answered: perhaps nobody holds the lock, and the place of this try is
            * still there */
        p.status = 504;
        p.err = CLAVE_EOPTIMEOUT;
        clave__web_problem(x, &p,
                           "%s was not granted yet, and it is not known whether the place of this "
                           "request is deleted: %s",
                           path, clave_strerror(err));
    }
}

/* A try has found the lock taken: asks who holds it. The try's own place may not be deleted yet, so
 * an answer that is lost leaves the outcome unknown. */
static bool try_ask_holder(struct session_request *k)
{
    const struct claim *c = k->claim;
    clave_async_client *client = k->s->client;
    if (!client)
        return false;
    if (c->kind->holders(client, c->path, try_on_holder, k->x) != CLAVE_OK)
        return false;
    k->tried = clave__web_sprintf(k->x, "%s", c->place.uuid);
    k->tried_on = k->s->attached ? clave_async_client_connection(client) : 0;
    k->claim = NULL; /* a repeated request makes a new claim, and this one is forgotten */
    clave__web_expect(k->x);
    clave__http_session_flush(k->s);
    return true;
}

/* ---- proofs ---------------------------------------------------------------------------------- */

/* It is known that the claim was waiting after the request arrived. */
static bool answer_is_proven(const struct session_request *k)
{
    const struct http_session *s = k->s;
    bool made = k->made_on && s->client && k->made_on == clave_async_client_connection(s->client);
    return made || clave__http_session_is_proven(s, k->since);
}

/* Another gate may have released a claim that is held here, or may hold a claim that waits here. A
 * release at another gate is news, and so is the grant of a waiting claim. The loss of its
 * connection is news, too: then the client asks again, at the gate of its choice, and this gate
 * does not reattach to the session just to report that the claim is waiting. */
static void answer_prove(struct session_request *k)
{
    bool holds = k->claim->state == CLAIM_HELD;
    struct claim_poll *p = clave__session_request_poll(k, k->next);
    k->checked = ANSWER_PROVED;
    p->wants_end = holds;
    clave__claim_await(k->claim, p, CLAVE_NEVER);
    clave__http_session_prove_since(k->s, clave__session_request_await(k, k->next),
                                    holds ? k->s->asked : k->since);
}

/* Returns true if the state must be checked first; the answer follows then. That a claim waits is
 * proved only when it is about to be reported, so a grant costs nothing extra; any proof begun
 * since the request arrived will do. Then a listing on the present connection must have shown its
 * position, for which the request waits a part of the ttl. */
static bool answer_checks(struct session_request *k)
{
    const struct claim *c = k->claim;
    if (k->checked == ANSWER_LISTED || c->state >= CLAIM_HELD || !k->s->attached ||
        !clave__http_session_is_shared(k->s))
        return false;
    if (k->checked == ANSWER_UNCHECKED && !answer_is_proven(k)) {
        answer_prove(k);
        return true;
    }
    if (k->checked == ANSWER_UNCHECKED && clave__claim_is_fresh(c))
        return false;
    struct claim_poll *p = clave__session_request_poll(k, k->next);
    k->checked = ANSWER_LISTED;
    p->wants_position = true;
    clave__claim_await(k->claim, p, k->x->web->now + k->s->ttl_ms / REPORT_SETTLES);
    return true;
}

/* ---------------------------------------------------------------------------------------------- */

void clave__claim_answer(struct session_request *k, unsigned held)
{
    assert(k->claim && (held == 200 || held == 201));
    struct web_exchange *x = k->x;
    struct claim *c = k->claim;
    if (answer_checks(k))
        return;
    bool tried = clave__claim_is_over(c) && c->why == CLAVE_EBUSY;
    if (tried && !clave__http_session_is_live(k->s)) {
        clave__session_request_gone(k, k->s->why ? k->s->why : CLAVE_ECLOSED);
        return;
    }
    if (tried && try_ask_holder(k))
        return;
    if (clave__claim_is_half_left(c)) {
        clave__web_refuse(x, 504, CLAVE_EOPTIMEOUT, NULL, "its release is not confirmed yet");
        return;
    }
    if (c->state > CLAIM_HELD) {
        answer_claim_end(k);
        return;
    }
    unsigned status = c->state == CLAIM_HELD ? held : 202;
    if (held == 201)
        clave__web_set_header(x, "Location", "%s/v1/claims/%s", clave__web_prefix(x),
                              c->place.uuid);
    clave__web_put_claim(x, c, c->state == CLAIM_HELD || answer_is_proven(k));
    clave__web_answer_json(x, status);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void get_answer(struct session_request *k)
{
    clave__claim_answer(k, 200);
}

/* Returns false if too many requests wait, and has answered so. This is checked after the session
 * was found, because even a refused poll counts as a sign of life, so that the claim keeps its
 * place. */
static bool answer_may_wait(struct session_request *k)
{
    return clave__web_prefer_wait(k->x) <= 0 || clave__web_may_wait(k->x);
}

/* Without "Prefer: wait", a new claim is answered as soon as its place in the queue is known, and a
 * GET is answered with what is known already: such a request does not count as waiting, so it must
 * not wait. */
static void answer_wait(struct session_request *k, session_step *answer)
{
    int64_t wait = clave__web_prefer_wait(k->x), now = k->x->web->now;
    bool gets = answer == get_answer;
    struct claim_poll *p = clave__session_request_poll(k, answer);
    p->wants_position = wait < 0;
    if (wait < 0 && gets)
        wait = 0;
    if (wait < 0 || wait > LONGEST_POLL_MS)
        wait = LONGEST_POLL_MS;
    if (k->claim->trying && !gets)
        wait = LONGEST_POLL_MS; /* a try ends soon by itself */
    if (k->claim->state == CLAIM_HELD && clave__http_session_is_shared(k->s))
        answer_prove(k);
    else
        clave__claim_await(k->claim, p, now + wait);
}

/* ---- POST /v1/claims ------------------------------------------------------------------------- */

/* The gate stops. With a shared key another gate can go on with the place, which is kept and
 * reported without a proof that it is held. Without one nobody can, and the place stands until the
 * session expires. */
static void post_stop(struct web_exchange *x)
{
    struct session_request *k = x->owned;
    struct claim *c = k->claim;
    bool kept = c && !c->trying && c->state <= CLAIM_HELD && c->state > CLAIM_WANTED &&
                clave__http_session_is_shared(k->s);
    if (!kept) {
        clave__web_problem_err(x, CLAVE_EOPTIMEOUT, "claim", x->deed.path);
        return;
    }
    clave__web_set_header(x, "Location", "%s/v1/claims/%s", clave__web_prefix(x), c->place.uuid);
    clave__web_put_claim(x, c, false);
    clave__web_answer_json(x, 202);
}

static const struct exchange_owner post_owner = {.leave = clave__session_request_leave,
                                                 .stop = post_stop};

static void post_answer(struct session_request *k);

/* Nothing is in the way of the claim: makes it, or goes on with that of an earlier request. */
static void post_make(struct session_request *k)
{
    const struct claim_request *o = k->arg;
    bool repeated = k->claim != NULL;
    clave_err err = repeated ? CLAVE_OK : clave__claim_new(k->s, &o->terms, &k->claim);
    if (err == CLAVE_OK && !repeated && k->s->attached)
        k->made_on = clave_async_client_connection(k->s->client);
    if (err == CLAVE_OK)
        err = clave__web_admit_claim(k->x, k->claim);
    if (err == CLAVE_OK) {
        clave__web_own_as(k->x, &post_owner);
        answer_wait(k, post_answer);
        return;
    }
    if (k->claim && !repeated)
        clave__claim_release(k->claim);
    clave__claim_request_refuse(k, err, o->terms.path);
}

/* If the session has got a place on this path at another gate, that place is the claim that this
 * request asks for, unless its key names a different one. */
static bool post_is_excluded(struct session_request *k)
{
    assert(k->arg && k->claim);
    struct claim_request *o = k->arg;
    const struct claim *c = k->claim;
    if (!clave__claim_is_over(c) || c->why != CLAVE_ENODEEXISTS)
        return false;
    memcpy(o->own, c->other.uuid, sizeof o->own);
    k->claim = NULL;
    if (clave__claim_is_being_left(k->s, o->terms.path, o->own)) {
        clave__claim_request_refuse(k, CLAVE_EINUSE, o->terms.path);
    } else if (o->keyed || !c->other.fits) {
        claim_request_refuse(k, o->terms.path, o->own);
    } else {
        o->terms.id = o->own;
        if (claim_request_find_own(k))
            post_make(k);
    }
    return true;
}

static void post_answer(struct session_request *k)
{
    if (!post_is_excluded(k))
        clave__claim_answer(k, 201);
}

/* If the servers were asked, the session may have got the claim meanwhile. */
static void post_find_again(struct session_request *k)
{
    if (claim_request_find_own(k))
        post_make(k);
}

static void post_find(struct session_request *k)
{
    if (!claim_request_find_own(k))
        return;
    if (k->claim)
        post_make(k);
    else
        clave__claim_request_check(k, post_find_again);
}

static void post_claim(struct session_request *k)
{
    struct web_exchange *x = k->x;
    const char *key = clave__web_header(x, "Idempotency-Key");
    struct claim_request *o = answer_may_wait(k) ? clave__claim_request_read(x) : NULL;
    if (!o)
        return;
    int64_t id = k->s->id;
    bool fits = !o->terms.session || clave__web_parse_int(o->terms.session, &id);
    if (o->ttl_ms != 0 || !fits || id != k->s->id) {
        clave__web_bad_request(
            x, "\"session\" is another than that of Clave-Session, or \"ttl_ms\" is "
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
    post_find(k);
}

/* ---- GET -------------------------------------------------------------------------- */

static void get_note_deed(struct session_request *k, const struct claim *c)
{
    if (!c)
        return;
    k->x->deed.path = clave__web_sprintf(k->x, "%s", c->path);
    k->x->deed.what = c->kind->name;
}

/* The claim that the path of the request names. NULL: it has answered, or the request is handled
 * once more when the servers have been asked. */
static struct claim *get_named(struct session_request *k)
{
    struct web_exchange *x = k->x;
    bool marked = clave__http_session_has_mark(k->s, x->params[0]), blind = k->s->blind;
    k->claim = clave__claim_find(k->s, x->params[0]);
    get_note_deed(k, k->claim);
    if (k->claim)
        return k->claim;
    bool certain = clave__http_session_mark_is_certain(k->s, x->params[0]);
    if (marked && !certain && clave__session_request_lists_once(k))
        return NULL; /* the proof deletes what is left of the claim */
    if (marked)
        claim_answer_released(k, NULL, "the claim was given back");
    else if (clave__claim_is_sought(k->s, x->params[0]) || clave__http_session_must_list(k->s))
        clave__web_refuse(x, 503, CLAVE_EINUSE, NULL, "the outcome of this claim is not known yet");
    else if (!clave__session_request_lists_once(k))
        clave__web_refuse(x, 404, CLAVE_ENOTHELD, NULL, "the session has no such claim%s",
                          blind ? " that this gate knows. If another gate made it, or this one "
                                  "before a restart, POST it again with its id as Idempotency-Key"
                                : "");
    return NULL;
}

/* A sender that has lost the role on the path may not wait there either. */
static void get_claim(struct session_request *k)
{
    struct claim *c = answer_may_wait(k) ? get_named(k) : NULL;
    if (!c)
        return;
    struct web_exchange *x = k->x;
    x->acts_on = c->path;
    if (clave__web_may(x, WEB_LOCK, c->path)) {
        (void)clave__web_admit_claim(
            x, c); /* if there is no memory, the claim keeps its previous sender */
        answer_wait(k, get_answer);
    } else {
        clave__web_must(x, WEB_LOCK, x->acts_on);
    }
}

/* ---- PATCH ----------------------------------------------------------------------------------- */

struct claim_change {
    size_t pending; /* nodes */
    clave_err err;
    const char *id;
};

static void patch_on_described(void *arg, clave_err err)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    struct session_request *k = x->owned;
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
        answer_wait(k, get_answer); /* answers with what the claim is now */
    else
        clave__web_problem_err(x, change->err != CLAVE_OK ? change->err : CLAVE_ELOST,
                               "change what is said of", x->deed.path);
}

/* The claim that the request changes: as get_named, and the sender has the role on its path. */
static struct claim *get_changed(struct session_request *k, const char *what)
{
    struct web_exchange *x = k->x;
    struct claim *c = get_named(k);
    if (c && !x->deed.path)
        clave__web_problem_err(x, CLAVE_ENOMEM, what, x->params[0]);
    return c && !x->answered && clave__web_must(x, WEB_LOCK, x->deed.path) ? c : NULL;
}

static bool patch_read_said(struct web_exchange *x, clave_identity *said)
{
    enum { MOST_SAID = 4096 };
    const struct body_member members[] = {{"name", .text = &said->name},
                                          {"command", .text = &said->command},
                                          {"host", .text = &said->host}};
    *said = (clave_identity){.host = NULL};
    if (!clave__web_read_body(x, BODY_MEMBERS(members)))
        return false;
    size_t n = (said->name ? strlen(said->name) : 0) + (said->host ? strlen(said->host) : 0) +
               (said->command ? strlen(said->command) : 0);
    said->text = said->name;
    if (n > 0 && n <= MOST_SAID)
        return true;
    return clave__web_bad_request(
        x,
        "one of \"name\", \"command\" and \"host\" is needed, and together they "
        "have at most %d bytes",
        (int)MOST_SAID);
}

static void patch_claim(struct session_request *k)
{
    struct web_exchange *x = k->x;
    struct problem early = {.status = 409, .err = CLAVE_EBUSY, .retry_after_s = 1};
    struct claim_change *change;
    clave_identity said;
    struct claim *c = get_changed(k, "change what is said of");
    if (!c || !patch_read_said(x, &said))
        return;
    if (c->state > CLAIM_HELD) {
        answer_claim_end(k);
        return;
    }
    early.path = x->deed.path;
    change = clave__web_alloc(x, sizeof *change);
    clave_err err = CLAVE_ENOMEM;
    if (change) {
        *change = (struct claim_change){.id = x->params[0]};
        k->arg = change;
        err = c->kind->describe(c, &said, patch_on_described, x, &change->pending);
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
                           early.path);
    else
        clave__web_problem_err(x, err, "change what is said of", early.path);
}

/* ---- alive ----------------------------------------------------------------------------------- */

/* A sign of life from the work under a claim that has depend_ms. Nothing else counts as one: a
 * renewal or a GET only shows that the client is there, which may renew from a timer while its work
 * hangs. */

static void alive_answer(struct session_request *k)
{
    struct web_exchange *x = k->x;
    clave_err err = clave__claim_alive_answer(k->claim, &k->poll);
    if (k->claim->state > CLAIM_HELD || err == CLAVE_OK)
        clave__claim_answer(k, 200);
    else
        clave__web_problem_err(x, err, "note a sign of life of", x->deed.path);
}

static void alive_give_sign(struct session_request *k)
{
    struct web_exchange *x = k->x;
    struct problem early = {.status = 409, .err = CLAVE_EBUSY, .retry_after_s = 1};
    struct claim *c = get_changed(k, "note a sign of life of");
    if (!c)
        return;
    early.path = x->deed.path;
    if (c->depend_ms == 0) {
        clave__web_bad_request(x,
                               "%s was claimed without \"depend_ms\", so that it does not "
                               "depend on signs of life: say there how often they come",
                               x->deed.path);
    } else if (c->state > CLAIM_HELD) {
        clave__claim_answer(k, 200);
    } else if (c->state < CLAIM_HELD && clave__claim_is_fresh(c)) {
        clave__web_problem(x, &early,
                           "%s is not held yet: its work gives signs of life from then on",
                           x->deed.path);
    } else {
        (void)clave__web_admit_claim(x, c); /* if there is no memory, the claim keeps its previous
                                             * sender */
        struct claim_poll *p = clave__session_request_poll(k, alive_answer);
        p->wants_end = true;
        x->begun = true;
        if (!clave__claim_alive(c, p, x->arrived))
            clave__web_refuse(x, 503, CLAVE_EUNREACHABLE, x->deed.path,
                              "it is not known yet whether %s is held here: ask again",
                              x->deed.path);
    }
}

static void alive_settle(struct session_request *k)
{
    clave__session_request_settle(k, DEED_SETTLES, alive_give_sign);
}

/* Takes a sign of life only on a connection, because the sign could otherwise be noted long after
 * it was given. */
static void alive_claim(struct session_request *k)
{
    if (k->s->attached)
        alive_settle(k);
    else
        clave__session_request_prove(k, alive_settle);
}

/* ---- DELETE ---------------------------------------------------------------------------------- */

/* Releases a claim, whichever gate has made it. Its mark (session/claim.h) is sent before its node
 * is deleted, and the release is reported only when both were answered: from then on the next one
 * in the queue can have its turn, and no earlier request can make the claim anew, at any gate. That
 * the claim is given up here is not enough: a gate that has just taken it up does not know whether
 * another one was granted it. If the answer to the mark is lost, the mark is made again, and
 * whatever has become of the claim in the meantime is released as well. */
struct claim_leaving {
    const char *id;
    bool was_marked, known; /* the claim was released before; it is known here */
    bool sought;          /* the claim may exist: the outcome of a try with this id is being looked
                           * for */
    bool marking, ending; /* answers still to come: to the mark, and that the claim has ended */
    bool again; /* the answer to the mark was lost, or a node had been left to another gate */
    bool ended; /* the claim; and if it was released, its node is gone */
    bool released;
};

static void leave_send(struct session_request *k);

static void leave_answer(struct session_request *k)
{
    const struct claim_leaving *l = k->arg;
    struct web_exchange *x = k->x;
    if (l->ended && !l->released && (k->claim = clave__claim_find(k->s, l->id)) != NULL) {
        answer_claim_end(k);
        return;
    }
    bool unknown = !l->known && !l->sought && !clave__http_session_must_list(k->s);
    /* The delete may never have been sent, and another gate may go on with the session. */
    bool cut =
        !clave__http_session_is_live(k->s) && k->s->why != CLAVE_OK && k->s->why != CLAVE_EEXPIRED;
    if ((l->released && !cut) || (unknown && l->was_marked))
        clave__web_answer_empty(x, 204);
    else if (unknown || (l->ended && !l->released))
        clave__web_refuse(x, 404, CLAVE_ENOTHELD, NULL, "the session has no such claim");
    else /* the delete of the node goes on */
        clave__web_refuse(x, 504, CLAVE_EOPTIMEOUT, NULL, "the release is not confirmed yet");
}

static void leave_step(struct session_request *k)
{
    struct claim_leaving *l = k->arg;
    if (l->marking || l->ending)
        return;
    if (!l->again) {
        leave_answer(k);
        return;
    }
    l->again = false;
    k->s->listed_on = 0;
    clave__session_request_prove(k, leave_send);
}

static void leave_on_marked(clave_async_client *client, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)client;
    if (!clave__web_expected(x))
        return;
    struct session_request *k = x->owned;
    struct claim_leaving *l = k->arg;
    clave_err_class class_ = clave_err_classify(res->err);
    l->marking = false;
    if (res->err == CLAVE_OK || res->err == CLAVE_ENODEEXISTS)
        clave__http_session_mark_stands(k->s, l->id);
    bool homeless = clave__http_session_note_is_homeless(k->s, res->err);
    l->again |= homeless || class_ == CLAVE_CLASS_UNKNOWN || class_ == CLAVE_CLASS_RETRY;
    leave_step(k);
}

static void leave_on_gone(struct session_request *k)
{
    struct claim_leaving *l = k->arg;
    struct claim *c = k->claim;
    bool released = clave__claim_was_released(c);
    l->ending = false;
    if (c->place.spared) { /* its node was left to the gate that made it while it was looked for */
        c->place.spared = false;
        l->again = true;
    }
    l->ended = clave__claim_is_over(c) && (c->state == CLAIM_OVER || !released);
    l->released = l->ended && released;
    leave_step(k);
}

static void leave_send(struct session_request *k)
{
    struct claim_leaving *l = k->arg;
    struct http_session *s = k->s;
    struct web_exchange *x = k->x;
    struct claim *c = clave__claim_find(s, l->id);
    x->begun = true;
    /* Sent even if the claim is marked here, because the mark of an earlier DELETE may have been
     * lost on its way. */
    if (clave__http_session_is_shared(s) &&
        clave__http_session_send_mark(s, l->id, leave_on_marked, x) == CLAVE_OK) {
        clave__web_expect(x);
        l->marking = true;
    }
    (void)clave__http_session_mark(
        s, l->id); /* if there is no memory, the servers still know the mark */
    clave__http_session_trim_marks(s);
    k->claim = c;
    if (c &&
        c->place.spared) { /* its node had been left to the gate that made it, and is deleted now */
        c->place.spared = false;
        l->again = true;
    }
    l->sought = clave__claim_is_sought(s, l->id);
    if (c) {
        l->known = l->ending = true;
        clave__claim_release(c);
        clave__http_session_flush(s); /* nothing else sends the mark if it was released before */
        struct claim_poll *p = clave__session_request_poll(k, leave_on_gone);
        p->wants_gone = true;
        clave__claim_await(c, p, x->web->now + s->ttl_ms);
    } else {
        clave__http_session_flush(s);
        leave_step(k);
    }
}

static void leave_settled(struct session_request *k)
{
    struct web_exchange *x = k->x;
    if (!clave__claim_is_id(x->params[0])) {
        get_named(k);
        return;
    }
    struct claim_leaving *l = k->arg = clave__web_must_alloc(x, sizeof *l);
    if (!l)
        return;
    l->id = x->params[0];
    l->was_marked = clave__http_session_has_mark(k->s, l->id);
    get_note_deed(k, clave__claim_find(k->s, l->id));
    leave_send(k);
}

enum { LEAVING_SETTLES = 2 };

/* A claim that was granted at another gate is settled first if it has a lock delay, so that it is
 * released as a hold, with the mark of the delay. */
static void leave_claim(struct session_request *k)
{
    const struct claim *c = clave__claim_find(k->s, k->x->params[0]);
    if (c && c->at && c->lock_delay_ms > 0)
        clave__session_request_settle(k, LEAVING_SETTLES, leave_settled);
    else
        leave_settled(k);
}

/* ==== claims of either kind =================================================================== */

static void any_claim_handle(struct web_exchange *x, web_handler *of_owner,
                             session_step *of_session)
{
    bool is_slot =
        x->params[0] ? strncmp(x->params[0], SLOT_CLAIM_ID, sizeof SLOT_CLAIM_ID - 1) == 0 : false;
    if (is_slot || clave__web_header(x, "Clave-Owner"))
        of_owner(x);
    else if (clave__web_query(x, "token"))
        clave__web_bad_request(x, "\"token\" is for claims of kind \"slot\"");
    else
        clave__session_request_listed(x, NULL, of_session);
}

void clave__web_post_claim(struct web_exchange *x)
{
    any_claim_handle(x, clave__web_post_slot_claim, post_claim);
}

void clave__web_get_claim(struct web_exchange *x)
{
    any_claim_handle(x, clave__web_get_slot_claim, get_claim);
}

void clave__web_patch_claim(struct web_exchange *x)
{
    any_claim_handle(x, clave__web_patch_slot_claim, patch_claim);
}

void clave__web_delete_claim(struct web_exchange *x)
{
    any_claim_handle(x, clave__web_delete_slot_claim, leave_claim);
}

static void slot_claim_alive(struct web_exchange *x)
{
    clave__web_bad_request(x, "a slot has no deadline, so it depends on no signs of life");
}

void clave__web_claim_alive(struct web_exchange *x)
{
    any_claim_handle(x, slot_claim_alive, alive_claim);
}
