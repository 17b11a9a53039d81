/* token_api.c - see token_api.h. Invariant: what is said of a token is as of a listing made after
 * the request has arrived. */
#include "web/api/orders/token_api.h"

#include "clave/async/semaphore.h"
#include "recipe/contender/queue_kind.h"
#include "web/api/client_call.h"
#include "web/http/answer.h"
#include "web/http/problem.h"

struct token_question {
    struct web_exchange *x;
    const char *path;
    int64_t token;
    bool in_leases;
    bool hidden; /* somebody holds whose node, and so whose token, may not be read */
};

static void token_list(struct token_question *o, clave_async_client *c);

/* Whether it need not wait for any of those before it. */
static bool token_has_turn(const clave_participant *list, size_t at)
{
    unsigned waits = clave__queue_kind_waits_for(clave__queue_kind_of(list[at].node));
    size_t leases = 0;
    for (size_t i = 0; i < at; i++) {
        if (waits >> clave__queue_kind_of(list[i].node) & 1)
            return false;
        leases++;
    }
    bool lease = clave__queue_kind_of(list[at].node) == QUEUE_LEASE;
    return !lease || list[at].identity.limit == 0 || leases < list[at].identity.limit;
}

static void token_tell(struct token_question *o, bool holds)
{
    struct json *j = &o->x->json;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "path", o->path);
    clave__json_int64(j, "token", o->token);
    clave__json_bool(j, "holds", holds);
    clave__json_close(j, '}');
    clave__web_answer_json(o->x, 200);
}

static void on_token_listed(clave_async_client *c, clave_err err, const clave_participant *list,
                            size_t n, void *arg)
{
    struct token_question *o = arg;
    size_t at = 0;
    if (!clave__web_expected(o->x))
        return;
    for (; err == CLAVE_OK && at < n && list[at].stat.czxid != o->token; at++)
        o->hidden = o->hidden || (list[at].stat.czxid == 0 && token_has_turn(list, at));
    if (err != CLAVE_OK) {
        clave__web_problem_err(o->x, err, "list", o->path);
    } else if (at < n) {
        token_tell(o, token_has_turn(list, at));
    } else if (!o->in_leases) {
        o->in_leases = true;
        token_list(o, c);
    } else if (o->hidden) {
        clave__web_problem_err(o->x, CLAVE_ENOAUTH, "read a holder of", o->path);
    } else {
        token_tell(o, false);
    }
}

static void token_list(struct token_question *o, clave_async_client *c)
{
    clave_err err = o->in_leases
                        ? clave_async_semaphore_participants(c, o->path, on_token_listed, o)
                        : clave_async_participants(c, o->path, on_token_listed, o);
    if (err == CLAVE_OK)
        clave__web_expect(o->x);
    else
        clave__client_call_refused(o->x, c, err, "list", o->path);
}

static void on_token_synced(clave_async_client *c, const clave_result *res, void *arg)
{
    struct token_question *o = arg;
    if (!clave__web_expected(o->x))
        return;
    if (res->err == CLAVE_OK)
        token_list(o, c);
    else
        clave__web_problem_err(o->x, res->err, "look at", o->path);
}

static void token_begin(struct web_exchange *x, clave_async_client *c)
{
    struct token_question *o = clave__web_alloc(x, sizeof *o);
    clave_err err = CLAVE_ENOMEM;
    if (o) {
        *o = (struct token_question){.x = x, .path = x->params[0]};
        (void)clave__web_parse_int(clave__web_query(x, "token"), &o->token);
        err = clave_async_sync(c, "/", on_token_synced, o);
    }
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__client_call_refused(x, c, err, "look at", x->params[0]);
}

void clave__web_get_token(struct web_exchange *x)
{
    int64_t token;
    if (clave__web_parse_int(clave__web_query(x, "token"), &token) && token > 0)
        clave__client_call(x, token_begin);
    else
        clave__web_problem(x, &(struct problem){.status = 400, .err = CLAVE_EINVAL},
                           "\"token\" must be a number above 0");
}
