/* slots_api.c - see slots_api.h. Called by the table of routes and by the folder. */
#include "web/api/slots/slots_api.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/time_format.h"
#include "recipe/slots/slot_node.h"
#include "web/api/request_client.h"
#include "web/api/znodes/parents_access.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"

/* ---- a request that uses slots --------------------------------------------------------------- */

#define SLOT_STRANGE                                                                               \
    "this is no slot, and takes room: to remove it: clave rm -r %s (DELETE /v1/znodes%s)"
#define SLOT_BAD_LIMIT                                                                             \
    "%s/limit holds no number of slots, so nobody takes any: to set it: clave slot limit %s N "    \
    "(PUT /v1/slots%s)"

void clave__slot_room_note(struct slot_room *r, const clave_slots_event *ev)
{
    *r = (struct slot_room){.known = true,
                            .has_strange = ev->strange != NULL,
                            .ahead = ev->ahead,
                            .owned = ev->owned,
                            .limit = ev->limit};
    snprintf(r->strange, sizeof r->strange, "%s", ev->strange ? ev->strange : "");
    snprintf(r->left_over, sizeof r->left_over, "%s", ev->left_over ? ev->left_over : "");
}

const char *clave__slot_room_text(struct web_exchange *x, const char *path,
                                  const struct slot_room *r)
{
    if (!r->known)
        return clave__web_sprintf(
            x, "no slot of %s was free: GET /v1/slots%s shows by whom they are owned", path, path);
    if (r->limit == CLAVE_SLOTS_LIMIT_BAD)
        return clave__web_sprintf(x, SLOT_BAD_LIMIT, path, path, path);
    const char *before = r->ahead > 0 ? clave__web_sprintf(x, ", %zu before it", r->ahead) : "";
    const char *strange = r->has_strange ? clave__web_sprintf(x, "; %s: " SLOT_STRANGE, r->strange,
                                                              r->strange, r->strange)
                                         : "";
    return clave__web_sprintf(x,
                              "no slot of %s is free: %zu owners%s, the limit is %" PRId64
                              ": GET /v1/slots%s shows by whom%s",
                              path, r->owned, before ? before : "", r->limit, path,
                              strange ? strange : "");
}

static void slot_request_on_event(clave_async_slots *s, const clave_slots_event *ev, void *arg)
{
    struct slot_request *r = arg;
    (void)s;
    clave__slot_room_note(&r->room, ev);
}

static void slot_request_close(struct slot_request *r)
{
    clave_async_slots *s = r->slots;
    r->slots = NULL;
    clave_async_slots_free(s);
}

/* Nobody waits for it any more: it has hung up, or lost the right to it. */
static void slot_request_cancel(struct web_exchange *x)
{
    slot_request_close(x->state);
}

/* The servers have not answered in time, or the gate stops. */
static void slot_request_late(struct web_exchange *x)
{
    struct slot_request *r = x->state;
    slot_request_close(r);
    clave__web_problem_as(x, 504, CLAVE_ECONNLOSS, r->what, r->order.path);
}

clave_err clave__slot_request_open(struct slot_request *r, const char *what)
{
    clave_slots_options o = CLAVE_SLOTS_OPTIONS_INIT;
    o.limit = r->order.limit;
    o.event_cb = slot_request_on_event;
    o.event_arg = r;
    r->what = what;
    return clave_async_slots_new(&r->slots, r->x->web->own, r->order.path, &o);
}

bool clave__slot_request_sent(struct slot_request *r, clave_err err)
{
    struct web_exchange *x = r->x;
    assert(x->state == r && !x->cancel);
    if (err != CLAVE_OK) {
        slot_request_close(r);
        return false;
    }
    clave__web_expect(x);
    x->cancel = slot_request_cancel;
    x->late = x->stop = slot_request_late;
    return true;
}

bool clave__slot_request_over(struct slot_request *r)
{
    struct web_exchange *x = r->x;
    if (r->slots) {
        slot_request_close(r);
        x->cancel = NULL;
        x->late = x->stop = NULL;
    }
    return clave__web_expected(x);
}

void clave__slot_put_time(struct json *j, const char *key, int64_t ms)
{
    char text[RFC3339_CAP];
    clave__json_string(j, key, clave__rfc3339_format(ms, text));
}

void clave__slot_put(struct json *j, const clave_slot *slot)
{
    clave__json_int64(j, "token", slot->token);
    clave__slot_put_time(j, "since", slot->since);
    clave__json_string(j, "host", slot->host);
    clave__json_string(j, "by", slot->by);
    clave__json_string(j, "reason", slot->reason);
    clave__json_string(j, "node", slot->node);
}

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

static void slots_put_view(struct web_exchange *x, const char *path, const clave_slots_view *view)
{
    struct json *j = &x->json;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "path", path);
    if (view->limit >= 0)
        clave__json_int(j, "limit", view->limit);
    else
        clave__json_string(j, "limit", NULL);
    if (view->limit == CLAVE_SLOTS_LIMIT_BAD)
        clave__json_string(j, "detail", clave__web_sprintf(x, SLOT_BAD_LIMIT, path, path, path));
    clave__json_open(j, "owners", '[');
    for (size_t i = 0; i < view->n; i++) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "owner", view->slots[i].id);
        clave__slot_put(j, &view->slots[i]);
        if (!view->slots[i].id)
            clave__json_string(
                j, "detail",
                clave__web_sprintf(x, SLOT_STRANGE, view->slots[i].node, view->slots[i].node));
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
    if (err == CLAVE_OK && view->limit == CLAVE_SLOTS_LIMIT_NONE && view->n == 0) {
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
    slots_put_view(x, path, view);
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

/* A request of a path; x->state is it. NULL: it has answered. */
static struct slot_request *slots_request(struct web_exchange *x)
{
    struct slot_request *r = slots_may_ask(x) ? clave__web_alloc(x, sizeof *r) : NULL;
    if (r)
        *r = (struct slot_request){.x = x, .order = {.path = x->params[0]}};
    else if (!x->answered)
        clave__web_problem_err(x, CLAVE_ENOMEM, "read the request", x->params[0]);
    x->state = r;
    return r;
}

static void slots_refused(struct slot_request *r, clave_async_client *c, clave_err err)
{
    clave__request_client_refused(r->x, c, err, r->what, r->order.path);
}

static void on_slots_limit(clave_async_slots *s, clave_err err, void *arg)
{
    struct web_exchange *x = arg;
    struct slot_request *r = x->state;
    (void)s;
    if (!clave__slot_request_over(r))
        return;
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, r->what, r->order.path);
        return;
    }
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", r->order.path);
    clave__json_int(&x->json, "limit", r->order.limit);
    clave__json_close(&x->json, '}');
    clave__web_answer_json(x, 200);
}

static void slots_set_limit(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    clave_err err = clave__slot_request_open(r, "set the limit of");
    if (err == CLAVE_OK)
        err = clave_async_slots_set_limit(r->slots, r->order.limit, on_slots_limit, x);
    if (!clave__slot_request_sent(r, err))
        slots_refused(r, c, err);
}

static void slots_look_above(struct web_exchange *x, clave_async_client *c)
{
    clave__web_check_parents(x, c, WEB_WRITE, x->params[0], slots_set_limit);
}

void clave__web_put_slots_limit(struct web_exchange *x)
{
    static const char *const keys[] = {"limit", NULL};
    static const int64_t limits[2] = {0, INT32_MAX};
    int64_t limit = -1;
    struct slot_request *r = slots_request(x);
    json_t *body = r ? clave__web_body(x) : NULL;
    if (!body || !clave__body_only(x, body, keys) ||
        !clave__body_int(x, body, "limit", limits, &limit))
        return;
    x->deed.what = clave__web_sprintf(x, "slot limit=%" PRId64, limit);
    r->order.limit = (uint32_t)limit;
    if (limit >= 0)
        clave__request_client(x, slots_look_above);
    else
        clave__web_problem(x, &bad_slots, "\"limit\" is missing: how many owners there may be");
}

/* ---- break ----------------------------------------------------------------------------------- */

static void on_slot_broken(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    struct web_exchange *x = arg;
    struct slot_request *r = x->state;
    const clave_slot *b = &r->order.as;
    const char *path = r->order.path;
    const struct problem none = {.status = 404, .err = CLAVE_ENOTHELD, .path = path};
    const struct problem full = {.status = 409, .err = CLAVE_ENOTEMPTY, .path = path};
    (void)s;
    if (!clave__slot_request_over(r))
        return;
    if (err == CLAVE_ENOTEMPTY) {
        clave__web_problem(x, &full, "others have made nodes below %s: clave rm -r %s/owners/...",
                           b->id, path);
    } else if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, r->what, path);
    } else if (!slot) {
        clave__web_problem(x, &none, "%s owns no slot of %s%s", b->id, path,
                           b->token ? " with this token" : "");
    } else {
        clave__json_open(&x->json, NULL, '{');
        clave__json_string(&x->json, "path", path);
        clave__json_string(&x->json, "owner", b->id);
        clave__slot_put(&x->json, slot);
        clave__json_close(&x->json, '}');
        clave__web_answer_json(x, 200);
    }
}

static void slots_break(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    clave_err err = clave__slot_request_open(r, "break a slot of");
    if (err == CLAVE_OK)
        err = clave_async_slots_break(r->slots, &r->order.as, CLAVE_NEVER, on_slot_broken, x);
    if (!clave__slot_request_sent(r, err))
        slots_refused(r, c, err);
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
    struct slot_request *r = slots_request(x);
    if (!r)
        return;
    clave_slot *b = &r->order.as;
    b->by = x->who.name[0] ? x->who.name : x->peer.address;
    if (!slots_read_break(x, b))
        return;
    x->deed.what = clave__web_sprintf(x, "slot of %s", b->id);
    x->deed.reason = b->reason;
    clave__request_client(x, slots_break);
}
