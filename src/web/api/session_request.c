/* session_request.c - the ZooKeeper client that serves a request: that of the session which the
 * request names, or the engine's own. Called by the endpoints. Invariants: a request that has left
 * its session does not touch it any more; nothing is created where the sender may not create it. */
#include "web/api/api.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"

/* ==== requests that name a session ============================================================ */

enum { MOST_LISTINGS = 3 };

/* ---- its life -------------------------------------------------------------------------------- */

void clave__session_request_leave(struct web_exchange *x)
{
    struct session_request *k = x->owned;
    struct http_session *s = k->s;
    k->s = NULL;
    clave__session_wait_cancel(&k->wait);
    clave__claim_poll_cancel(&k->poll);
    clave__http_session_leave(s);
}

struct session_request *clave__session_request_new(struct web_exchange *x, struct http_session *s,
                                                   const struct exchange_owner *o)
{
    assert(!x->owner && s->present > 0);
    struct session_request *k = clave__web_must_alloc(x, sizeof *k);
    if (!k) {
        clave__http_session_leave(s);
        return NULL;
    }
    *k = (struct session_request){.x = x, .s = s, .since = s->asked, .poll = {.web = x->web}};
    list_init(&k->wait.link);
    list_init(&k->poll.link);
    clave__web_own(x, o, k);
    return k;
}

/* ---- how it goes on -------------------------------------------------------------------------- */

/* What the request waits for has come. If it waits for two things, the first to come calls off the
 * other. */
static void session_request_go_on(struct session_request *k)
{
    assert(k->s && k->next);
    clave__session_wait_cancel(&k->wait);
    clave__claim_poll_cancel(&k->poll);
    k->next(k);
}

static void session_request_on_waited(struct session_wait *w, clave_err err)
{
    struct session_request *k = LIST_ENTRY(w, struct session_request, wait);
    k->x->deed.session = k->s->id;
    if (err == CLAVE_OK)
        session_request_go_on(k);
    else
        clave__session_request_gone(k, err);
}

struct session_wait *clave__session_request_await(struct session_request *k, session_step *next)
{
    k->next = next;
    k->wait.done = session_request_on_waited;
    return &k->wait;
}

static void session_request_on_news(struct claim_poll *p)
{
    session_request_go_on(LIST_ENTRY(p, struct session_request, poll));
}

struct claim_poll *clave__session_request_poll(struct session_request *k, session_step *next)
{
    k->next = next;
    k->poll.done = session_request_on_news;
    k->poll.wants_position = k->poll.wants_end = k->poll.wants_gone = false;
    k->poll.sign = 0;
    return &k->poll;
}

void clave__session_request_when_live(struct session_request *k, session_step *next)
{
    clave__http_session_await(k->s, clave__session_request_await(k, next));
}

void clave__session_request_prove(struct session_request *k, session_step *next)
{
    clave__http_session_prove(k->s, clave__session_request_await(k, next));
}

/* ---- what its claims are now ----------------------------------------------------------------- */

/* A claim whose state is unknown because another gate may have had the session since; NULL: there
 * is none. */
static struct claim *session_request_stale(const struct http_session *s)
{
    for (struct claim *c = NULL; (c = clave__claim_after(s, c));) {
        if (!clave__claim_is_fresh(c))
            return c;
    }
    return NULL;
}

static void session_request_settle(struct session_request *k);

static void session_request_on_settled(struct claim_poll *p)
{
    session_request_settle(LIST_ENTRY(p, struct session_request, poll));
}

/* Waits for the claims one after the other, while their queues are being listed. */
static void session_request_settle(struct session_request *k)
{
    struct claim *c = session_request_stale(k->s);
    if (!c || k->x->web->now >= k->settles_by) {
        k->next(k);
        return;
    }
    struct claim_poll *p = clave__session_request_poll(k, k->next);
    p->done = session_request_on_settled;
    p->wants_position = true;
    clave__claim_await(c, p, k->settles_by);
}

void clave__session_request_settle(struct session_request *k, int part, session_step *next)
{
    k->next = next;
    k->settles_by = k->x->arrived + k->s->ttl_ms / part;
    session_request_settle(k);
}

/* ---- finding the session --------------------------------------------------------------------- */

void clave__session_request_gone(struct session_request *k, clave_err why)
{
    struct web_exchange *x = k->x;
    const struct problem over = {
        .status = 410, .err = CLAVE_ELOST, .members = clave__web_put_cause, .arg = &why};
    if (why == CLAVE_EUNREACHABLE || why == CLAVE_EOPTIMEOUT || why == CLAVE_ETIMEDOUT ||
        why == CLAVE_ENOMEM) {
        clave__web_refuse(x, 503, why, NULL, "%s: %s", clave_strerror(why), k->s->fault);
    } else if (why == CLAVE_ETOOBIG) {
        clave__web_problem_err(x, why, "prove in one transaction all that is held", NULL);
    } else if (why == CLAVE_EAUTHFAILED) {
        clave__web_refuse(x, 403, why, NULL, "a server refuses an identity of \"auth\"");
    } else {
        clave__web_problem(x, &over, "the session has ended: %s", clave__web_cause(why));
    }
}

/* Lists up to MOST_LISTINGS times, since the listing may be out of date when the proof ends: the
 * connection may have been lost, or a try may have been given up and have left its node. */
static void session_request_list(struct session_request *k)
{
    if (!clave__http_session_must_list(k->s) || k->listings == MOST_LISTINGS) {
        k->handle(k);
        return;
    }
    k->listings++;
    clave__session_request_prove(k, session_request_list);
}

bool clave__session_request_lists_once(struct session_request *k)
{
    if (k->listings > 0 || !clave__http_session_is_shared(k->s))
        return false;
    k->listings++;
    k->s->listed_on = 0;
    clave__session_request_prove(k, session_request_list);
    return true;
}

/* Reads the secret. false: it has answered. */
static bool session_request_unseal(struct web_exchange *x, struct sealed_session *out)
{
    static const struct problem foreign = {
        .status = 403, .err = CLAVE_ENOAUTH, .code = "EOTHERKEY"};
    const char *secret = clave__web_header(x, "Clave-Session");
    if (secret && clave__unseal(&x->web->sessions->key, secret, out))
        return true;
    if (secret)
        clave__web_problem(x, &foreign,
                           "this gate cannot read the secret in Clave-Session: it was made with "
                           "another key, as before a restart without --http-key, or is not as POST "
                           "/v1/sessions returned it. What is held stays held for its valid_ms");
    else
        clave__web_refuse(x, 401, CLAVE_ENOAUTH, NULL,
                          "the header Clave-Session is missing: the secret of a "
                          "session, see POST /v1/sessions");
    return false;
}

/* `first` runs when the session is live. */
static void session_request_begin(struct web_exchange *x, const char *id, session_step *first,
                                  session_step *handle)
{
    static const struct exchange_owner owner = {.leave = clave__session_request_leave};
    struct http_sessions *ss = x->web->sessions;
    struct sealed_session sealed;
    struct http_session *s;
    char own[24];
    if (!session_request_unseal(x, &sealed) ||
        (!clave__http_session_by_id(ss, sealed.id) && !clave__web_may_take_up(x)))
        return;
    clave_err err = clave__http_session_find(ss, &sealed, clave__web_sender(x), &s);
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "attach to the session", NULL);
        return;
    }
    struct session_request *k = clave__session_request_new(x, s, &owner);
    if (!k)
        return;
    snprintf(own, sizeof own, "%" PRId64, s->id);
    if (id && strcmp(id, own) != 0) {
        clave__web_refuse(x, 403, CLAVE_ENOAUTH, NULL, "Clave-Session is the secret of session %s",
                          own);
        return;
    }
    if (!clave__web_may_call(
            x)) /* checked only now, so that a refused request still keeps the session alive */
        return;
    k->handle = handle;
    clave__session_request_when_live(k, first);
}

void clave__session_request(struct web_exchange *x, const char *id, session_step *handle)
{
    session_request_begin(x, id, handle, handle);
}

void clave__session_request_listed(struct web_exchange *x, const char *id, session_step *handle)
{
    session_request_begin(x, id, session_request_list, handle);
}

/* ==== missing parents ========================================================================= */

/* Cuts the path to the nearest ancestor on which the sender lacks the role: if that exists, so do
 * those above it. false: only the root is left. */
static bool parents_access_cut(const struct web_exchange *x, char *path)
{
    size_t n = clave__path_parent_len(path, strlen(path));
    for (; n > 1; n = clave__path_parent_len(path, n)) {
        path[n] = '\0';
        if (!clave__web_may(x, x->route->role, path))
            return true;
    }
    return false;
}

static void on_parents_stat(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    const char *above = x->creates.above;
    clave_err_class class_ = clave_err_classify(res->err);
    x->only_reads = res->err != CLAVE_OK;
    if (res->err == CLAVE_OK)
        x->go(x, c);
    else if (res->err == CLAVE_ENONODE)
        clave__web_refuse(x, 403, CLAVE_ENOAUTH, above,
                          "%s would have to be created, and the role \"%s\" is needed there: see "
                          "/v1/whoami",
                          above, clave__web_role_name(x->route->role));
    else
        clave__web_problem_as(x, class_ == CLAVE_CLASS_FINAL ? 403 : 503,
                              class_ == CLAVE_CLASS_UNKNOWN ? CLAVE_EUNREACHABLE : res->err,
                              "look at", above);
}

static void parents_check(struct web_exchange *x, clave_async_client *c)
{
    bool may = clave__web_may(x, x->route->role, "/");
    char *above = may ? NULL : clave__web_strndup(x, x->creates.path, strlen(x->creates.path));
    if (may || (above && !parents_access_cut(x, above))) {
        x->go(x, c);
        return;
    }
    clave_err err = above ? clave_async_exists(c, above, NULL, on_parents_stat, x) : CLAVE_ENOMEM;
    x->creates.above = above;
    x->only_reads |= above != NULL;
    clave__request_client_sent(x, c, err, "look at", x->creates.path);
}

void clave__web_check_parents(struct web_exchange *x, clave_async_client *c, const char *path,
                              request_client *go)
{
    x->creates.path = path;
    x->go = go;
    parents_check(x, c);
}

/* ==== the client of a request ================================================================= */

/* How many requests whose senders have gone may stay in the client until a server answers them. */
enum { MOST_GIVEN_UP = 2000 };

static void client_ready(struct web_exchange *x, clave_async_client *c)
{
    if (x->creates.path)
        parents_check(x, c);
    else
        x->go(x, c);
}

static void on_client_connected(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    bool lost = clave_err_classify(res->err) == CLAVE_CLASS_UNKNOWN;
    if (res->err != CLAVE_OK) {
        clave__web_problem_as(x, 503, lost ? CLAVE_EUNREACHABLE : res->err, "reach a server", NULL);
        return;
    }
    x->only_reads = false;
    client_ready(x, c);
}

static void client_on_session_live(struct session_request *k)
{
    struct web_exchange *x = k->x;
    struct http_session *s = k->s;
    clave_async_client *c = s->client;
    if (clave__web_reads(x) || clave_async_client_is_connected(c)) {
        client_ready(x, c);
    } else if (clave_async_exists(c, "/", NULL, on_client_connected, x) == CLAVE_OK) {
        x->only_reads = true;
        clave__web_expect(x);
    } else {
        clave__web_problem_as(x, 503, CLAVE_ENOMEM, "reach a server", NULL);
    }
    clave__http_session_flush(s);
}

void clave__request_client(struct web_exchange *x, request_client *go)
{
    assert(!x->answered);
    clave_async_client *own = x->web->own;
    x->go = go;
    if (x->web->given_up >= MOST_GIVEN_UP)
        clave__web_refuse(x, 503, CLAVE_EUNREACHABLE, NULL,
                          "no server has answered what was asked before");
    else if (clave__web_header(x, "Clave-Session"))
        clave__session_request(x, NULL, client_on_session_live);
    else if (!clave__web_may_call(x))
        return; /* it has answered */
    else if (!clave__web_reads(x) && !clave_async_client_is_connected(own))
        clave__web_refuse(x, 503, CLAVE_EUNREACHABLE, NULL,
                          "not connected to a ZooKeeper server: %s",
                          clave_async_client_errmsg(own));
    else {
        client_ready(x, own);
        clave__web_flush(x->web, own);
    }
}

void clave__request_client_to_create(struct web_exchange *x, const char *path, request_client *go)
{
    x->creates.path = path;
    clave__request_client(x, go);
}

void clave__request_client_refused(struct web_exchange *x, clave_async_client *c, clave_err err,
                                   const char *what, const char *path)
{
    assert(err != CLAVE_OK);
    bool ours = err == CLAVE_EPATH || err == CLAVE_EINVAL || err == CLAVE_ETOOBIG;
    if (ours)
        clave__web_refuse(x, err == CLAVE_ETOOBIG ? 413 : 400, err, NULL, "cannot %s %s: %s", what,
                          path, clave_async_client_errmsg(c));
    else
        clave__web_problem_err(x, err, what, path);
}

void clave__request_client_sent(struct web_exchange *x, clave_async_client *c, clave_err err,
                                const char *what, const char *path)
{
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, what, path);
}
