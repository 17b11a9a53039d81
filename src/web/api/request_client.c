/* request_client.c - see request_client.h. Called by the endpoints of nodes. */
#include "web/api/request_client.h"

#include <assert.h>

#include "web/api/session_request.h"
#include "web/http/problem.h"
#include "web/http/request_limits.h"

/* Requests whose senders have gone, and which no server has answered: they stay in the client until
 * one does. */
enum { MOST_GIVEN_UP = 2000 };

static bool client_reads(const struct web_exchange *x)
{
    return clave__web_is_method(x, "GET") || clave__web_is_method(x, "HEAD");
}

/* ---- of a session --------------------------------------------------------------------------- */

/* The session's client is present for as long as the request takes, in however many steps. */
static void client_leave_session(struct web_exchange *x)
{
    clave__session_request_done(x->pending);
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
    x->looking = false;
    x->go(x, c);
}

static void client_on_session_live(struct session_request *k)
{
    struct web_exchange *x = k->x;
    struct http_session *s = k->s;
    clave_async_client *c = s->client;
    x->answering = client_leave_session;
    if (client_reads(x) || clave_async_client_is_connected(c)) {
        x->go(x, c);
    } else if (clave_async_exists(c, "/", NULL, on_client_connected, x) == CLAVE_OK) {
        x->looking = true;
        clave__web_expect(x);
    } else {
        clave__web_problem_as(x, 503, CLAVE_ENOMEM, "reach a server", NULL);
    }
    clave__http_session_flush(s);
}

/* ---- the engine's own ----------------------------------------------------------------------- */

static void client_own(struct web_exchange *x)
{
    static const struct problem away = {
        .status = 503, .err = CLAVE_EUNREACHABLE, .retry_after_s = 1};
    clave_async_client *c = x->web->own;
    if (!client_reads(x) && !clave_async_client_is_connected(c)) {
        clave__web_problem(x, &away, "not connected to a ZooKeeper server: %s",
                           clave_async_client_errmsg(c));
        return;
    }
    x->go(x, c);
    clave__web_flush(x->web, c);
}

void clave__request_client(struct web_exchange *x, request_client *go)
{
    static const struct problem behind = {
        .status = 503, .err = CLAVE_EUNREACHABLE, .retry_after_s = 1};
    assert(!x->answered);
    x->go = go;
    if (x->web->given_up >= MOST_GIVEN_UP)
        clave__web_problem(x, &behind, "no server has answered what was asked before");
    else if (clave__web_header(x, "Clave-Session"))
        clave__session_request(x, NULL, client_on_session_live);
    else if (clave__web_may_call(x))
        client_own(x);
}

void clave__request_client_refused(struct web_exchange *x, clave_async_client *c, clave_err err,
                                   const char *what, const char *path)
{
    assert(err != CLAVE_OK);
    bool ours = err == CLAVE_EPATH || err == CLAVE_EINVAL || err == CLAVE_ETOOBIG;
    struct problem p = {.status = err == CLAVE_ETOOBIG ? 413 : 400, .err = err};
    if (ours)
        clave__web_problem(x, &p, "cannot %s %s: %s", what, path, clave_async_client_errmsg(c));
    else
        clave__web_problem_err(x, err, what, path);
}
