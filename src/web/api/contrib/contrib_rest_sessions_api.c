/* contrib_rest_sessions_api.c - /sessions/v1; see contrib_rest.h. Called by the table of routes. */
#include <string.h>

#include "web/api/contrib/contrib_rest.h"
#include "web/api/contrib/contrib_rest_format.h"
#include "web/http/answer.h"
#include "web/http/request_args.h"
#include "web/http/request_limits.h"
#include "web/session/contrib_rest_session.h"

enum { EXPIRE_S = 30, MOST_EXPIRE_S = 3600 };

static void rest_answer_session(struct web_exchange *x, unsigned status, const char *id,
                                const char *uri)
{
    enum rest_format f;
    struct rest_document d = {.root = "session"};
    if (!clave__rest_format(x, &f))
        return;
    clave__rest_add_text(&d, "id", id);
    clave__rest_add_text(&d, "uri", uri);
    clave__rest_answer(x, f == REST_OCTETS ? REST_JSON : f, status, &d);
}

/* ---- POST ----------------------------------------------------------------------------------- */

/* Its maker has hung up: nobody knows its UUID. */
static void on_rest_maker_gone(struct web_exchange *x)
{
    struct contrib_rest_session *r = x->state;
    if (r)
        clave__contrib_rest_session_close(r, NULL, NULL);
}

static void on_rest_session_made(struct contrib_rest_session *r, clave_err err, void *arg)
{
    struct web_exchange *x = arg;
    const char *uri = clave__rest_uri(x);
    x->cancel = NULL;
    if (err != CLAVE_OK) {
        clave__rest_fault_err(x, err, "session", false);
        return;
    }
    uri = uri ? clave__web_sprintf(x, "%s/%s", uri, r->uuid) : NULL;
    const char *id = clave__web_strndup(x, r->uuid, strlen(r->uuid));
    if (!uri || !id) {
        clave__contrib_rest_session_close(r, NULL, NULL);
        clave__rest_fault_err(x, CLAVE_ENOMEM, "session", false);
        return;
    }
    clave__web_set_header(x, "Location", "%s", uri);
    rest_answer_session(x, 201, id, uri);
}

void clave__web_rest_post_session(struct web_exchange *x)
{
    const char *op = clave__web_query(x, "op"), *expire = clave__web_query(x, "expire");
    int64_t s = EXPIRE_S;
    enum rest_format f;
    if (!clave__rest_format(x, &f))
        return;
    if (op && strcmp(op, "create") != 0) {
        clave__rest_fault(x, 400, "bad operation %.64s", op);
        return;
    }
    if (expire && (!clave__web_parse_int(expire, &s) || s < 1 || s > MOST_EXPIRE_S)) {
        clave__rest_fault(x, 400, "expire must be 1 to %d seconds", (int)MOST_EXPIRE_S);
        return;
    }
    if (!clave__web_may_make_session(x))
        return;
    const struct session_terms terms = {
        .name = "contrib REST", .ttl_ms = (int32_t)s * 1000, .sender = clave__web_sender(x)};
    x->cancel = on_rest_maker_gone;
    struct contrib_rest_session *r = NULL;
    clave_err err = clave__contrib_rest_session_open(x->web, &terms, on_rest_session_made, x, &r);
    if (err == CLAVE_OK)
        x->state = r;
    else
        clave__rest_fault_err(x, err, "session", false);
}

/* ---- PUT, DELETE ---------------------------------------------------------------------------- */

static struct contrib_rest_session *rest_find(struct web_exchange *x)
{
    struct contrib_rest_session *r = clave__contrib_rest_session_find(x->web, x->params[0]);
    if (!r)
        clave__rest_fault(x, 404, "session %.64s not found", x->params[0]);
    return r;
}

void clave__web_rest_put_session(struct web_exchange *x)
{
    struct contrib_rest_session *r = rest_find(x);
    const char *uri = r ? clave__rest_uri(x) : NULL;
    if (r && uri)
        rest_answer_session(x, 200, x->params[0], uri);
    else if (r)
        clave__rest_fault_err(x, CLAVE_ENOMEM, "session", false);
}

static void on_rest_ender_gone(struct web_exchange *x)
{
    ((struct contrib_rest_session *)x->state)->done = NULL;
}

static void on_rest_session_ended(struct contrib_rest_session *r, clave_err err, void *arg)
{
    struct web_exchange *x = arg;
    (void)r;
    (void)err;
    x->cancel = NULL;
    clave__web_answer_empty(x, 204);
}

void clave__web_rest_delete_session(struct web_exchange *x)
{
    struct contrib_rest_session *r = rest_find(x);
    if (!r)
        return;
    x->state = r;
    x->cancel = on_rest_ender_gone;
    x->begun = true;
    clave__contrib_rest_session_close(r, on_rest_session_ended, x);
}
