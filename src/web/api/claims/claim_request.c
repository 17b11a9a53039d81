/* claim_request.c - see claim_request.h. Called by the endpoints of claims. Invariant: what is
 * looked for at the servers is as of a listing after the request arrived, on the session's own
 * connection.
 */
#include "web/api/claims/claim_request.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/path.h"
#include "clave/async/semaphore.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_kind.h"
#include "web/api/znodes/parents_access.h"
#include "web/http/body.h"
#include "web/http/problem.h"
#include "web/session/claim_nodes.h"
#include "web/session/kinds/claim_kinds.h"

enum { MOST_PATH = 8192, MOST_PERMITS = 1000 };

static const struct problem bad_order = {.status = 400, .err = CLAVE_EINVAL};

static const struct claim_kind *const kinds[] = {&clave__lock_claim, &clave__read_claim,
                                                 &clave__write_claim, &clave__semaphore_claim,
                                                 &clave__election_claim};

static const struct claim_kind *claim_request_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

/* ---- the body -------------------------------------------------------------------------------- */

static bool claim_request_may(struct web_exchange *x, const char *path)
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

/* The mark of a lock delay is a node beside the lock's. */
static bool claim_request_may_mark(struct web_exchange *x, const struct claim_terms *t)
{
    struct problem p = {.status = 403, .err = CLAVE_ENOAUTH};
    char *mark = t->lock_delay_ms > 0 ? clave__web_sprintf(x, "%s-held", t->path) : NULL;
    if (t->lock_delay_ms == 0)
        return true;
    p.path = mark;
    if (mark && clave__web_may(x, WEB_LOCK, mark))
        return clave__web_must(x, WEB_LOCK, mark);
    if (mark)
        clave__web_problem(x, &p,
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
    static const char *const keys[] = {
        "session", "path",      "kind",   "limit",   "lock_delay_ms", "name", "command",
        "host",    "revocable", "ttl_ms", "permits", "max_hold_ms",   NULL};
    static const int64_t limits[2] = {1, INT32_MAX}, delays[2] = {0, INT32_MAX};
    static const int64_t most_permits[2] = {1, MOST_PERMITS};
    struct claim_terms *t = &o->terms;
    int64_t limit = 0, permits = 0;
    json_t *body = clave__web_body(x);
    bool fine = body && clave__body_only(x, body, keys) &&
                clave__body_text(x, body, "path", &t->path) &&
                clave__body_text(x, body, "kind", kind) &&
                clave__body_int(x, body, "limit", limits, &limit) &&
                clave__body_int(x, body, "permits", most_permits, &permits) &&
                clave__body_int(x, body, "lock_delay_ms", delays, &t->lock_delay_ms) &&
                clave__body_int(x, body, "max_hold_ms", limits, &t->max_hold_ms) &&
                clave__body_text(x, body, "name", &t->name) &&
                clave__body_text(x, body, "command", &t->command) &&
                clave__body_text(x, body, "host", &t->host) &&
                clave__body_flag(x, body, "revocable", &t->revocable) &&
                clave__body_text(x, body, "session", &t->session) &&
                clave__body_int(x, body, "ttl_ms", limits, &o->ttl_ms);
    t->limit = (uint32_t)limit;
    t->permits = (uint32_t)permits;
    return fine;
}

struct claim_request *clave__claim_request_read(struct web_exchange *x)
{
    struct claim_request *o = clave__web_alloc(x, sizeof *o);
    const char *name = "lock", *misfit = NULL;
    if (!o) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "read the claim", NULL);
        return NULL;
    }
    *o = (struct claim_request){0};
    struct claim_terms *t = &o->terms;
    if (!claim_request_read_terms(x, o, &name))
        return NULL;
    t->kind = claim_request_kind(name);
    t->traceparent = clave__web_header(x, "traceparent");
    if (!t->host)
        t->host = x->peer.address;
    if (!t->path)
        clave__web_problem(x, &bad_order,
                           "\"path\" is missing: that of the lock, as \"/jobs/nightly\"");
    else if (!t->kind)
        clave__web_problem(x, &bad_order, "\"kind\" is none of " CLAIM_KIND_NAMES ": \"%.64s\"",
                           name);
    else if ((misfit = t->kind->misfit(t)) != NULL)
        clave__web_problem(x, &bad_order, "%s", misfit);
    bool fine = t->path && t->kind && !misfit;
    x->deed.path = t->path;
    x->deed.what = name;
    if (fine && t->limit)
        x->deed.what = clave__web_sprintf(x, "%s limit=%" PRIu32 " permits=%" PRIu32, name,
                                          t->limit, t->permits ? t->permits : 1);
    return fine && claim_request_may(x, t->path) && claim_request_may_mark(x, t) ? o : NULL;
}

/* ---- the session's own claim ----------------------------------------------------------------- */

static bool claim_request_is_for(const struct claim *c, const struct claim_terms *t)
{
    return strcmp(c->path, t->path) == 0 && c->kind == t->kind && c->limit == t->limit &&
           (c->permits ? c->permits : 1) == (t->permits ? t->permits : 1);
}

static void claim_request_put_released(struct json *j, const void *arg)
{
    (void)arg;
    clave__web_put_cause(j, CLAVE_OK);
}

static void claim_request_put_claim(struct json *j, const void *id)
{
    clave__json_string(j, "claim", id);
}

/* A session has one place a path and owner, which is another than this. */
static void claim_request_refuse(struct session_request *k, const char *path, const char *id)
{
    const struct problem p = {.status = 409,
                              .err = CLAVE_ENODEEXISTS,
                              .path = path,
                              .members = claim_request_put_claim,
                              .arg = id};
    clave__web_problem(
        k->x, &p,
        "this session has the claim %s on %s, of another kind, limit, number of permits or "
        "Idempotency-Key, and a session has one place a path and owner: end that claim, or use "
        "another session, or a key with another owner",
        id, path);
}

static void claim_request_refuse_for_now(struct session_request *k, const char *path)
{
    const struct problem p = {.status = 503, .err = CLAVE_EINUSE, .path = path, .retry_after_s = 1};
    clave__web_problem(k->x, &p, "what this session had on %s is still being given back", path);
}

static void on_claim_request_proven(struct session_wait *w, clave_err err)
{
    struct session_request *k = clave__session_request_of(w);
    struct claim_request *o = k->arg;
    if (err == CLAVE_OK)
        clave__claim_request_look(k, o->begin);
    else
        clave__session_request_gone(k, err);
}

/* Another gate may have given back what is in the way. */
static void claim_request_prove(struct session_request *k)
{
    struct claim_request *o = k->arg;
    o->proved = true;
    clave__session_request_await(k, on_claim_request_proven);
    clave__http_session_prove(k->s, &k->wait);
}

/* Sets k->claim to the claim of an earlier request for the same, if there is one. false: it has
 * answered, or looks again later. */
static bool claim_request_find_own(struct session_request *k)
{
    const struct claim_request *o = k->arg;
    const struct claim_terms *t = &o->terms;
    struct claim *keyed = o->keyed ? clave__claim_find(k->s, o->own) : NULL;
    if (keyed && keyed->state == CLAIM_ENDED && keyed->why == CLAVE_ENOAUTH &&
        keyed->granted_at == 0)
        keyed = NULL; /* refused: the next one is judged anew */
    struct claim *c = keyed ? keyed : clave__claim_on_path(k->s, t->path, t->id);
    bool leaving =
        c ? !keyed && c->state == CLAIM_LEAVING : clave__claim_is_being_left(k->s, t->path, t->id);
    if (!keyed && o->keyed && clave__claim_is_marked(k->s, o->own)) {
        const struct problem over = {.status = 410,
                                     .err = CLAVE_ELOST,
                                     .path = t->path,
                                     .members = claim_request_put_released};
        clave__web_problem(k->x, &over, "the claim of this Idempotency-Key was given back");
    } else if (keyed && !claim_request_is_for(keyed, t)) {
        const struct problem reused = {.status = 409,
                                       .err = CLAVE_ENODEEXISTS,
                                       .members = claim_request_put_claim,
                                       .arg = keyed->place.uuid};
        clave__web_problem(k->x, &reused, "this Idempotency-Key was used for another claim");
    } else if (leaving) {
        claim_request_refuse_for_now(k, t->path);
    } else if (!keyed && c && (o->keyed || !claim_request_is_for(c, t))) {
        if (!o->proved && clave__http_session_is_shared(k->s))
            claim_request_prove(k);
        else
            claim_request_refuse(k, t->path, c->place.uuid);
    } else {
        k->claim = c;
        return true;
    }
    return false;
}

/* What the session has on the path, by another gate, is what is asked for, unless the key says that
 * it is another. */
bool clave__claim_request_is_excluded(struct session_request *k)
{
    assert(k->arg && k->claim);
    struct claim_request *o = k->arg;
    const struct claim *c = k->claim;
    if (c->state != CLAIM_ENDED || c->why != CLAVE_ENODEEXISTS)
        return false;
    memcpy(o->own, c->other.uuid, sizeof o->own);
    k->claim = NULL;
    if (clave__claim_is_being_left(k->s, o->terms.path, o->own)) {
        claim_request_refuse_for_now(k, o->terms.path);
    } else if (o->keyed || !c->other.fits) {
        claim_request_refuse(k, o->terms.path, o->own);
    } else {
        o->terms.id = o->own;
        if (claim_request_find_own(k))
            o->begin(k);
    }
    return true;
}

/* ---- looking at the servers ------------------------------------------------------------------ */

static void claim_request_begin(struct session_request *k)
{
    struct claim_request *o = k->arg;
    clave__web_timer_clear(k->x->web, &k->x->timer); /* what has waited for answers has them */
    k->x->looking = false;
    if (claim_request_find_own(k))
        o->begin(k);
}

bool clave__claim_request_begin_again(struct session_request *k)
{
    struct claim_request *o = k->arg;
    if (o->again)
        return false;
    o->again = true;
    claim_request_begin(k);
    return true;
}

/* It has not been answered. false: the answer that came is of no use, and it has answered now. */
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
    k->x->looking = true;
    if (err == CLAVE_OK)
        clave__web_expect(k->x);
    else if (claim_request_has_answer(k, err))
        clave__web_problem_err(k->x, err, "look at", o->at);
    if (err == CLAVE_OK)
        clave__http_session_flush(k->s);
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
    struct session_request *k = x->pending;
    const struct claim_request *o = k->arg;
    if (!claim_request_has_answer(k, res->err))
        return;
    char *text =
        res->err == CLAVE_OK ? clave__web_strndup(x, res->data ? res->data : "", res->len) : NULL;
    if (text)
        clave__identity_parse(text, res->len, &id);
    if (id.limit == 0 || id.limit == o->terms.limit) {
        claim_request_begin(k);
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
    struct session_request *k = x->pending;
    struct claim_request *o = k->arg;
    if (!claim_request_has_answer(k, res->err))
        return;
    if (res->err != CLAVE_OK || res->nnames == 0) {
        claim_request_begin(k);
        return;
    }
    o->at = clave__web_child(x, o->at, res->names[0]);
    claim_request_submitted(k, o->at ? clave_async_get(c, o->at, NULL, on_claim_request_lease, x)
                                     : CLAVE_ENOMEM);
}

static void claim_request_look_at_limit(struct web_exchange *x, clave_async_client *c)
{
    struct session_request *k = x->pending;
    struct claim_request *o = k->arg;
    if (o->terms.kind->queue != QUEUE_LEASE) {
        claim_request_begin(k);
        return;
    }
    o->at = clave__web_child(x, o->terms.path, "leases");
    claim_request_submitted(
        k, o->at ? clave_async_children(c, o->at, NULL, on_claim_request_leases, x) : CLAVE_ENOMEM);
}

/* ---- all of it ---- */

static void claim_request_leave_session(struct web_exchange *x)
{
    clave__session_request_done(x->pending);
}

void clave__claim_request_look(struct session_request *k, void (*begin)(struct session_request *k))
{
    assert(k->arg && k->s);
    struct claim_request *o = k->arg;
    struct web_exchange *x = k->x;
    x->answering = claim_request_leave_session;
    o->begin = begin;
    if (!claim_request_find_own(k))
        return;
    if (k->claim) {
        begin(k);
        return;
    }
    clave__web_check_parents(x, k->s->client, WEB_LOCK, o->terms.path, claim_request_look_at_limit);
    if (k->s)
        clave__http_session_flush(k->s);
}
