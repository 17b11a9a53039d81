/* leader_value_api.c - see leader_value_api.h. Invariant: a value is written only in one
 * transaction with a check of the leader's node. */
#include "web/api/actions/leader_value_api.h"

#include <string.h>

#include "web/api/session_request.h"
#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"

static void value_lost(struct web_exchange *x)
{
    clave__web_problem(x,
                       &(struct problem){.status = 410, .err = CLAVE_ELOST, .path = x->params[0]},
                       "this session does not lead %s", x->params[0]);
}

static void on_value_published(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    clave__session_request_done(x->pending);
    if (res->err == CLAVE_OK)
        clave__web_answer_empty(x, 204);
    else if (res->err == CLAVE_ELOST || res->err == CLAVE_ENOTHELD)
        value_lost(x);
    else
        clave__web_problem_err(x, res->err, "publish the value of", x->params[0]);
}

static struct claim *value_claim(struct http_session *s, const char *path)
{
    for (struct list *l = s->parts.next; l != &s->parts; l = l->next) {
        struct claim *c = clave__claim_of(LIST_ENTRY(l, struct session_part, link));
        if (c->state == CLAIM_HELD && c->kind->publish && strcmp(c->path, path) == 0)
            return c;
    }
    return NULL;
}

static void value_publish(struct session_request *k)
{
    struct web_exchange *x = k->x;
    struct claim *c = value_claim(k->s, x->params[0]);
    clave_err err = c ? c->kind->publish(c, clave__web_body_bytes(x), clave__web_body_len(x),
                                         on_value_published, x)
                      : CLAVE_ENOTHELD;
    if (err == CLAVE_OK) {
        clave__web_expect(x);
        clave__http_session_flush(k->s);
        return;
    }
    clave__session_request_done(k);
    if (err == CLAVE_ENOTHELD)
        value_lost(x);
    else
        clave__web_problem_err(x, err, "publish the value of", x->params[0]);
}

enum { SETTLING = 2 };

/* Another gate may have been told that it leads. */
static void value_put(struct session_request *k)
{
    clave__session_request_settle(k, SETTLING, value_publish);
}

/* The value's node is beside the election's. */
void clave__web_put_value(struct web_exchange *x)
{
    if (!clave__param_path(x))
        return;
    char *node = clave__web_sprintf(x, "%s-value", x->params[0]);
    if (!node)
        clave__web_problem_err(x, CLAVE_ENOMEM, "publish the value of", x->params[0]);
    x->deed.path = node;
    if (node && clave__web_must(x, WEB_LOCK, node))
        clave__session_request_informed(x, NULL, value_put);
}
