/* slots_api.c - see slots_api.h. Invariant: each answer tells what the servers answered to this
 * request. */
#include "web/api/slots/slots_api.h"

#include <inttypes.h>

#include "recipe/slots/slot_name.h"
#include "web/api/slots/slot_json.h"
#include "web/api/znodes/parents_access.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"
#include "web/slots/slot_wait.h"

static const struct problem bad_slots = {.status = 400, .err = CLAVE_EINVAL};

/* They are asked for by the gate's own session. */
static bool slots_may_ask(struct web_exchange *x)
{
    if (!clave__param_path(x) || !clave__web_header(x, "Clave-Session"))
        return !x->answered;
    clave__web_problem(x, &bad_slots, "slots belong to no session: leave out Clave-Session");
    return false;
}

/* ---- GET ------------------------------------------------------------------------------------- */

static void on_slots_waiting(clave_async_client *c, clave_err err, const clave_participant *list,
                             size_t n, void *arg)
{
    struct web_exchange *x = arg;
    struct json *j = &x->json;
    (void)c;
    if (!clave__web_expected(x))
        return;
    if (err != CLAVE_OK && err != CLAVE_ENONODE) {
        clave__web_problem_err(x, err, "list who waits for a slot of", x->params[0]);
        return;
    }
    clave__json_open(j, "waiting", '[');
    for (size_t i = 0; err == CLAVE_OK && i < n; i++) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "owner", list[i].identity.name);
        clave__json_string(j, "host", list[i].identity.host);
        clave__slot_put_time(j, "since", list[i].stat.ctime);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
    clave__json_close(j, '}');
    clave__web_answer_json(x, 200);
}

static void slots_put_view(struct json *j, const char *path, const clave_slots_view *view)
{
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "path", path);
    if (view->limit >= 0)
        clave__json_int(j, "limit", view->limit);
    else
        clave__json_string(j, "limit", NULL);
    clave__json_open(j, "owners", '[');
    for (size_t i = 0; i < view->n; i++) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "owner", view->slots[i].id);
        clave__slot_put(j, &view->slots[i]);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
    if (view->broken.token == 0)
        return;
    clave__json_open(j, "broken", '{');
    clave__json_string(j, "owner", view->broken.id);
    clave__json_int64(j, "token", view->broken.token);
    clave__slot_put_time(j, "at", view->broken.since);
    clave__json_string(j, "by", view->broken.by);
    clave__json_string(j, "reason", view->broken.reason);
    clave__json_close(j, '}');
}

static void on_slots_listed(clave_async_client *c, clave_err err, const clave_slots_view *view,
                            void *arg)
{
    struct web_exchange *x = arg;
    struct problem none = {.status = 404, .err = CLAVE_ENONODE};
    if (!clave__web_expected(x))
        return;
    const char *path = none.path = x->params[0];
    if (err == CLAVE_OK && view->limit < 0 && view->n == 0) {
        clave__web_problem(
            x, &none, "there are no slots at %s: set a limit (clave slot limit %s N)", path, path);
        return;
    }
    const char *queue = clave__web_child(x, path, "queue");
    if (err == CLAVE_OK)
        err = queue ? clave_async_participants(c, queue, on_slots_waiting, x) : CLAVE_ENOMEM;
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "list the slots of", path);
        return;
    }
    clave__web_expect(x);
    slots_put_view(&x->json, path, view);
}

static void slots_list(struct web_exchange *x, clave_async_client *c)
{
    clave_err err = clave_async_slots_list(c, x->params[0], on_slots_listed, x);
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, "list the slots of", x->params[0]);
}

void clave__web_get_slots(struct web_exchange *x)
{
    if (slots_may_ask(x))
        clave__request_client(x, slots_list);
}

/* ---- PUT: the limit -------------------------------------------------------------------------- */

static clave_err slots_open(struct web_exchange *x, clave_async_slots **out)
{
    const struct slot_order o = {.path = x->params[0]};
    return clave__slot_order_open(x->web, &o, out);
}

static void on_slots_limit(clave_async_slots *s, clave_err err, void *arg)
{
    struct web_exchange *x = arg;
    clave_async_slots_free(s);
    if (!clave__web_expected(x))
        return;
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "set the limit of", x->params[0]);
        return;
    }
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", x->params[0]);
    clave__json_int(&x->json, "limit", *(const int64_t *)x->state);
    clave__json_close(&x->json, '}');
    clave__web_answer_json(x, 200);
}

static void slots_set_limit(struct web_exchange *x, clave_async_client *c)
{
    uint32_t limit = (uint32_t) * (const int64_t *)x->state;
    clave_async_slots *s;
    clave_err err = slots_open(x, &s);
    if (err == CLAVE_OK)
        err = clave_async_slots_set_limit(s, limit, on_slots_limit, x);
    if (err == CLAVE_OK) {
        clave__web_expect(x);
        return;
    }
    clave_async_slots_free(s);
    clave__request_client_refused(x, c, err, "set the limit of", x->params[0]);
}

static void slots_look_above(struct web_exchange *x, clave_async_client *c)
{
    clave__web_check_parents(x, c, WEB_WRITE, x->params[0], slots_set_limit);
}

void clave__web_put_slots_limit(struct web_exchange *x)
{
    static const char *const keys[] = {"limit", NULL};
    static const int64_t limits[2] = {0, INT32_MAX};
    int64_t *limit = clave__web_alloc(x, sizeof *limit);
    json_t *body = slots_may_ask(x) ? clave__web_body(x) : NULL;
    if (!body)
        return;
    if (!limit) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "set the limit of", x->params[0]);
        return;
    }
    *limit = -1;
    x->state = limit;
    if (!clave__body_only(x, body, keys) || !clave__body_int(x, body, "limit", limits, limit))
        return;
    x->deed.what = clave__web_sprintf(x, "slot limit=%" PRId64, *limit);
    if (*limit >= 0)
        clave__request_client(x, slots_look_above);
    else
        clave__web_problem(x, &bad_slots, "\"limit\" is missing: how many owners there may be");
}

/* ---- break ----------------------------------------------------------------------------------- */

static void on_slot_broken(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    struct web_exchange *x = arg;
    clave_async_slots_free(s);
    if (!clave__web_expected(x))
        return;
    const clave_slot *b = x->state;
    const struct problem none = {.status = 404, .err = CLAVE_ENOTHELD, .path = x->params[0]};
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "break a slot of", x->params[0]);
        return;
    }
    if (!slot) {
        clave__web_problem(x, &none, "%s owns no slot of %s%s", b->id, x->params[0],
                           b->token ? " with this token" : "");
        return;
    }
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", x->params[0]);
    clave__json_string(&x->json, "owner", b->id);
    clave__slot_put(&x->json, slot);
    clave__json_close(&x->json, '}');
    clave__web_answer_json(x, 200);
}

static void slots_break(struct web_exchange *x, clave_async_client *c)
{
    const clave_slot *b = x->state;
    clave_async_slots *s;
    clave_err err = slots_open(x, &s);
    if (err == CLAVE_OK)
        err = clave_async_slots_break(s, b, on_slot_broken, x);
    if (err == CLAVE_OK) {
        clave__web_expect(x);
        return;
    }
    clave_async_slots_free(s);
    clave__request_client_refused(x, c, err, "break a slot of", x->params[0]);
}

static bool slots_read_break(struct web_exchange *x, clave_slot *b)
{
    static const char *const keys[] = {"owner", "token", "reason", NULL};
    static const int64_t tokens[2] = {1, INT64_MAX};
    json_t *body = clave__web_body(x);
    if (!body || !clave__body_only(x, body, keys) || !clave__body_text(x, body, "owner", &b->id) ||
        !clave__body_int(x, body, "token", tokens, &b->token) ||
        !clave__body_text(x, body, "reason", &b->reason))
        return false;
    bool fine = b->id && clave__slot_id_is_valid(b->id) && b->reason && b->reason[0] &&
                clave__slot_text_is_valid(b->reason);
    if (!fine)
        clave__web_problem(
            x, &bad_slots,
            "\"owner\" and \"reason\" are needed: whose slot is taken away, and why");
    return fine;
}

void clave__web_break_slot(struct web_exchange *x)
{
    clave_slot *b = clave__web_alloc(x, sizeof *b);
    if (!slots_may_ask(x))
        return;
    if (!b) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "break a slot of", x->params[0]);
        return;
    }
    *b = (clave_slot){.by = x->who.name[0] ? x->who.name : x->peer.address};
    x->state = b;
    if (!slots_read_break(x, b))
        return;
    x->deed.what = clave__web_sprintf(x, "slot of %s", b->id);
    x->deed.reason = b->reason;
    clave__request_client(x, slots_break);
}
