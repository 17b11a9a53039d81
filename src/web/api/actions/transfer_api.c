/* transfer_api.c - see transfer_api.h. */
#include "web/api/actions/transfer_api.h"

#include <string.h>

#include "clave/async/leader.h"
#include "web/api/request_client.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/problem.h"

struct transfer {
    const char *node; /* of the candidate */
};

static void transfer_on_done(clave_async_client *c, clave_err err, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct transfer *t = x->state;
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "transfer the leadership of", x->params[0]);
        return;
    }
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", x->params[0]);
    clave__json_string(&x->json, "node", t->node);
    clave__json_close(&x->json, '}');
    clave__web_answer_json(x, 200);
}

static void transfer_go(struct web_exchange *x, clave_async_client *c)
{
    const struct transfer *t = x->state;
    clave_err err = clave_async_leader_transfer(c, x->params[0], t->node, transfer_on_done, x);
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, "transfer the leadership of", x->params[0]);
}

void clave__web_post_transfer(struct web_exchange *x)
{
    static const struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    static const char *const keys[] = {"to", "reason", NULL};
    struct transfer *t = clave__web_alloc(x, sizeof *t);
    json_t *body = clave__web_body(x);
    if (!body)
        return;
    if (!t) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "read the request for", x->params[0]);
        return;
    }
    *t = (struct transfer){0};
    if (!clave__body_only(x, body, keys) || !clave__body_text(x, body, "to", &t->node) ||
        !clave__body_text(x, body, "reason", &x->deed.reason))
        return;
    if (!t->node || strchr(t->node, '/')) {
        clave__web_problem(x, &bad, "\"to\" must be the node of a candidate");
        return;
    }
    x->state = t;
    x->deed.path = clave__web_child(x, x->params[0], t->node);
    clave__request_client(x, transfer_go);
}
