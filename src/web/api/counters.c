/* counters.c - /v1/counters: a number that several programs change, on clave/async/counter.h.
 *
 * A request has a counter of its own, which lives until its answer: a change is one transaction
 * with a write to the counter's marker, so it is made once however often its connection to the
 * servers is lost meanwhile. If the servers do not answer within the time of a request, the answer
 * is 504: the change may have been made.
 *
 * Invariant: after the answer nothing is requested but the delete of the request's own marker; only
 * what was already on its way to the servers may still be done. */
#include "web/api/api.h"

#include <inttypes.h>
#include <string.h>

#include "clave/async/counter.h"

struct counter_request {
    clave_async_client *client;
    clave_async_counter *counter; /* NULL: not begun yet, or over */
    const char *verb;
    bool adds, sets, compares;
    int64_t add, set, expected;
};

/* ---- its end --------------------------------------------------------------------------------- */

static void counter_request_end(struct web_exchange *x)
{
    struct counter_request *r = x->state;
    clave_async_counter_free(r->counter);
    r->counter = NULL;
    clave__web_flush(x->web, r->client);
}

static void counter_request_leave_gate(struct web_exchange *x)
{
    counter_request_end(x);
}

static void counter_request_leave_session(struct web_exchange *x)
{
    counter_request_end(x);
    clave__session_request_leave(x);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void counter_put_value(struct json *j, const void *arg)
{
    clave__json_int64(j, "value", *(const int64_t *)arg);
}

static void counter_answer(struct web_exchange *x, int64_t before, int64_t after)
{
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", x->params[0]);
    if (!clave__web_reads(x))
        clave__json_int64(&x->json, "before", before);
    clave__json_int64(&x->json, "value", after);
    clave__web_answer_object(x, 200);
}

static void on_counter_done(clave_async_counter *n, clave_err err, int64_t before, int64_t after,
                            void *arg)
{
    struct web_exchange *x = arg;
    const struct counter_request *r = x->state;
    const char *path = x->params[0];
    int64_t sum;
    const struct problem other = {
        .status = 409, .err = err, .path = path, .members = counter_put_value, .arg = &before};
    (void)n;
    if (err == CLAVE_OK)
        counter_answer(x, before, after);
    else if (err == CLAVE_EBADVERSION)
        clave__web_problem(x, &other, "%s is %" PRId64 " and not %" PRId64, path, before,
                           r->expected);
    else if (err == CLAVE_EINVAL && r->adds && __builtin_add_overflow(before, r->add, &sum))
        clave__web_refuse(x, 400, err, path,
                          "cannot %s %s: it is %" PRId64 ", and the sum has more than 64 bits",
                          r->verb, path, before);
    else if (err == CLAVE_EINVAL)
        clave__web_refuse(x, 400, err, path,
                          "cannot %s %s: it is no counter: its data are not eight bytes", r->verb,
                          path);
    else
        clave__web_problem_err(x, err, r->verb, path);
}

/* ---- the request ----------------------------------------------------------------------------- */

static clave_err counter_ask(struct web_exchange *x)
{
    const struct counter_request *r = x->state;
    if (r->adds)
        return clave_async_counter_add(r->counter, r->add, on_counter_done, x);
    if (r->compares)
        return clave_async_counter_compare_and_set(r->counter, r->expected, r->set, on_counter_done,
                                                   x);
    if (r->sets)
        return clave_async_counter_set(r->counter, r->set, on_counter_done, x);
    return clave_async_counter_get(r->counter, on_counter_done, x);
}

static void counter_begin(struct web_exchange *x, clave_async_client *c)
{
    static const struct exchange_owner of_session = {.leave = counter_request_leave_session};
    static const struct exchange_owner of_gate = {.leave = counter_request_leave_gate};
    struct counter_request *r = x->state;
    r->client = c;
    void *session_request = x->owner ? x->owned : NULL;
    if (session_request)
        clave__web_disown(x);
    clave__web_own(x, session_request ? &of_session : &of_gate, session_request);
    clave__web_timer_set(x->web, &x->timer, x->web->now + WEB_PATIENCE_MS);
    clave_err err = clave_async_counter_new(&r->counter, c, x->params[0]);
    if (err == CLAVE_OK)
        err = counter_ask(x);
    x->begun = x->asked = err == CLAVE_OK && !clave__web_reads(x);
    if (err != CLAVE_OK)
        clave__request_client_refused(x, c, err, r->verb, x->params[0]);
}

/* NULL: it has answered. */
static struct counter_request *counter_request_new(struct web_exchange *x, const char *verb)
{
    if (!clave__param_path(x))
        return NULL;
    if (strcmp(x->params[0], "/") == 0) {
        clave__web_bad_request(x, "the root is no counter");
        return NULL;
    }
    struct counter_request *r = x->state = clave__web_must_alloc(x, sizeof *r);
    if (r)
        *r = (struct counter_request){.verb = verb};
    return r;
}

void clave__web_get_counter(struct web_exchange *x)
{
    if (counter_request_new(x, "read"))
        clave__request_client(x, counter_begin);
}

static bool counter_is_said(const json_t *v)
{
    return v && !json_is_null(v);
}

void clave__web_post_counter(struct web_exchange *x)
{
    struct counter_request *r = counter_request_new(x, "change");
    json_t *body = r ? clave__web_body(x) : NULL;
    if (!body)
        return;
    const struct body_member members[] = {
        {"add", .number = &r->add, .least = INT64_MIN, .most = INT64_MAX},
        {"set", .number = &r->set, .least = INT64_MIN, .most = INT64_MAX},
        {"expected", .number = &r->expected, .least = INT64_MIN, .most = INT64_MAX}};
    const struct jansson *lib = x->web->o.jansson;
    r->adds = counter_is_said(lib->json_object_get(body, "add"));
    r->sets = counter_is_said(lib->json_object_get(body, "set"));
    r->compares = counter_is_said(lib->json_object_get(body, "expected"));
    const char *markers = clave__web_sprintf(x, "%s-markers", x->params[0]);
    if (!clave__web_read_body(x, BODY_MEMBERS(members)))
        return;
    if (r->adds == r->sets || (r->compares && !r->sets))
        clave__web_bad_request(
            x, "the body is {\"add\": N}, {\"set\": N} or {\"set\": N, \"expected\": M}");
    else if (!markers)
        clave__web_problem_err(x, CLAVE_ENOMEM, r->verb, x->params[0]);
    else if (clave__web_must(x, WEB_WRITE, markers)) /* the marker is made beside the counter */
        clave__request_client_to_create(x, x->params[0], counter_begin);
}
