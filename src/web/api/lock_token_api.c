/* lock_token_api.c - see lock_token_api.h. Invariant: "holds" is said of a node that was there in a
 * transaction after the request had arrived, and that held by a listing; the opposite, of one that
 * was not there then, or by a listing that followed a commit. */
#include "web/api/lock_token_api.h"

#include "web/api/locks_api.h"
#include "web/api/request_client.h"
#include "web/api/token_lookup.h"
#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"

static void token_tell(struct web_exchange *x, const struct place_question *q, bool holds)
{
    struct json *j = &x->json;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "path", q->path);
    clave__json_int64(j, "token", q->token);
    clave__json_bool(j, "holds", holds);
    clave__json_close(j, '}');
    clave__web_answer_json(x, 200);
}

static void on_token_checked(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE)
        token_tell(x, x->state, res->err == CLAVE_OK);
    else
        clave__web_problem_err(x, res->err, "check the holder of", x->params[0]);
}

static void on_token_found(struct web_exchange *x, clave_async_client *c, void *arg,
                           enum place_found found, const char *node)
{
    const clave_op check = {.kind = CLAVE_OP_CHECK, .path = node, .version = -1};
    if (found != PLACE_HOLDS) {
        token_tell(x, arg, false);
        return;
    }
    clave_err err = clave_async_multi(c, &check, 1, on_token_checked, x);
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, "check the holder of", x->params[0]);
}

static void token_begin(struct web_exchange *x, clave_async_client *c)
{
    clave__place_search(x, c, x->state);
}

static void token_ask(struct web_exchange *x)
{
    struct place_question *q = clave__web_alloc(x, sizeof *q);
    int64_t token;
    if (!clave__web_parse_int(clave__web_query(x, "token"), &token) || token <= 0) {
        clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL},
                           "\"token\" must be a number above 0");
    } else if (!q) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "look at", x->params[0]);
    } else {
        *q = (struct place_question){x->params[0], token, false, on_token_found, q};
        x->state = q;
        clave__request_client(x, token_begin);
    }
}

void clave__web_get_lock_or_token(struct web_exchange *x)
{
    if (!clave__web_query(x, "token"))
        clave__web_get_lock(x);
    else if (clave__param_path(x))
        token_ask(x);
}
