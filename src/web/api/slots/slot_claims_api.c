/* slot_claims_api.c - see slot_claims_api.h. Invariant: that a slot is owned, or is not, is said as
 * the servers tell it in answer to this request, or to the take that it polls. */
#include "web/api/slots/slot_claims_api.h"

#include <inttypes.h>
#include <string.h>

#include "recipe/slots/slot_name.h"
#include "web/api/session_request.h"
#include "web/api/slots/slot_json.h"
#include "web/api/znodes/parents_access.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/forwarded.h"
#include "web/http/prefer.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"
#include "web/http/request_limits.h"
#include "web/slots/slot_claim_id.h"
#include "web/slots/slot_wait.h"

static const struct problem bad_slot = {.status = 400, .err = CLAVE_EINVAL};

/* How long DELETE waits for a take that it has cancelled. */
enum { LEAVING_MS = 10000 };

struct slot_call {
    struct web_exchange *x;
    struct slot_claim_id id;
    struct slot_order order;
    int64_t token; /* of the slot that is given back; 0: any */
    struct slot_poll poll;
};

/* NULL: it has answered. */
static struct slot_call *slot_call_new(struct web_exchange *x)
{
    struct slot_call *k = clave__web_alloc(x, sizeof *k);
    if (k)
        *k = (struct slot_call){.x = x};
    else
        clave__web_problem_err(x, CLAVE_ENOMEM, "read the claim", NULL);
    x->state = k;
    return k;
}

/* ---- what is answered ------------------------------------------------------------------------ */

static void slot_open_claim(struct web_exchange *x, const char *state)
{
    const struct slot_call *k = x->state;
    struct json *j = &x->json;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "id", k->id.text);
    clave__json_string(j, "path", k->id.path);
    clave__json_string(j, "kind", "slot");
    clave__json_string(j, "owner", k->id.owner);
    clave__json_string(j, "state", state);
}

static void slot_answer(struct web_exchange *x, unsigned status)
{
    const struct slot_call *k = x->state;
    clave__json_close(&x->json, '}');
    if (clave__web_is_method(x, "POST"))
        clave__web_set_header(x, "Location", "%s/v1/claims/%s", clave__web_prefix(x), k->id.text);
    clave__web_answer_json(x, status);
}

static void slot_answer_waits(struct web_exchange *x, const struct slot_news *n)
{
    slot_open_claim(x, "waiting");
    if (n->position > 0)
        clave__json_int(&x->json, "position", (int64_t)n->position);
    if (n->left_over)
        clave__json_string(&x->json, "left_over", n->left_over);
    slot_answer(x, 202);
}

static void slot_answer_owned(struct web_exchange *x, const clave_slot *slot, bool taken)
{
    slot_open_claim(x, "held");
    clave__slot_put(&x->json, slot);
    slot_answer(x, taken && clave__web_is_method(x, "POST") ? 201 : 200);
}

static void slot_answer_refused(struct web_exchange *x, clave_err err)
{
    const struct slot_call *k = x->state;
    struct problem p = {.status = 409, .err = err, .path = k->id.path, .retry_after_s = 1};
    if (err == CLAVE_EBUSY) {
        clave__web_problem(x, &p, "all slots of %s are owned: GET /v1/slots%s shows by whom",
                           k->id.path, k->id.path);
    } else if (err == CLAVE_ENONODE) {
        p.status = 404;
        p.retry_after_s = 0;
        clave__web_problem(x, &p,
                           "no limit of slots is set at %s: set one (clave slot limit %s N, PUT "
                           "/v1/slots%s), or claim with \"limit\"",
                           k->id.path, k->id.path, k->id.path);
    } else if (err == CLAVE_ECANCELED) {
        p.status = 410;
        p.retry_after_s = 0;
        clave__web_problem(x, &p,
                           "%s does not wait for a slot of %s any more: another request "
                           "has left the queue",
                           k->id.owner, k->id.path);
    } else {
        clave__web_problem_err(x, err, "take a slot of", k->id.path);
    }
}

/* ---- polls ----------------------------------------------------------------------------------- */

static void slot_call_cancel(struct web_exchange *x)
{
    struct slot_call *k = x->state;
    clave__slot_poll_cancel(&k->poll);
}

/* The servers have not answered in time, or the gate stops: a place that waits ends with its
 * session, unless the take is done first. */
static void slot_call_late(struct web_exchange *x)
{
    struct slot_call *k = x->state;
    bool takes = clave__web_is_method(x, "POST");
    clave__slot_poll_cancel(&k->poll);
    clave__web_problem_as(x, 504, CLAVE_ECONNLOSS,
                          takes ? "take a slot of" : "give back the slot of", k->id.path);
}

static void slot_call_await(struct web_exchange *x, struct slot_wait *place, int64_t until,
                            void (*done)(struct slot_poll *p, const struct slot_news *n))
{
    struct slot_call *k = x->state;
    x->cancel = slot_call_cancel;
    k->poll.done = done;
    clave__slot_wait_await(place, &k->poll, until);
}

static void on_slot_news(struct slot_poll *p, const struct slot_news *n)
{
    struct web_exchange *x = LIST_ENTRY(p, struct slot_call, poll)->x;
    if (!n->ended)
        slot_answer_waits(x, n);
    else if (n->err == CLAVE_OK)
        slot_answer_owned(x, n->slot, n->taken);
    else
        slot_answer_refused(x, n->err);
}

/* false: it has answered that too many wait. */
static bool slot_call_may_wait(struct web_exchange *x)
{
    return clave__web_prefer_wait(x) <= 0 || clave__web_may_wait(x);
}

static void slot_poll_place(struct web_exchange *x, struct slot_wait *place)
{
    struct slot_call *k = x->state;
    int64_t wait = clave__web_prefer_wait(x);
    bool looks = clave__web_is_method(x, "GET") || clave__web_is_method(x, "HEAD");
    k->poll.wants_position = wait < 0;
    wait = wait < 0 && looks ? 0 : wait < 0 ? WEB_PATIENCE_MS : wait;
    x->stop = looks ? NULL : slot_call_late;
    slot_call_await(x, place, x->web->now + (wait < LONGEST_POLL_MS ? wait : LONGEST_POLL_MS),
                    on_slot_news);
}

/* ---- POST ------------------------------------------------------------------------------------ */

static void on_slot_tried(clave_async_slots *s, clave_err err, const clave_slot *slot, bool taken,
                          void *arg)
{
    struct web_exchange *x = arg;
    clave_async_slots_free(s);
    if (!clave__web_expected(x))
        return;
    if (err == CLAVE_OK)
        slot_answer_owned(x, slot, taken);
    else
        slot_answer_refused(x, err);
}

static void slot_try(struct web_exchange *x)
{
    const struct slot_call *k = x->state;
    clave_async_slots *s;
    clave_err err = clave__slot_order_open(x->web, &k->order, &s);
    if (err == CLAVE_OK)
        err = clave_async_slots_take(s, 1, &k->order.as, CLAVE_TRY, on_slot_tried, x);
    if (err == CLAVE_OK) {
        x->late = x->stop = slot_call_late;
        clave__web_expect(x);
        return;
    }
    clave_async_slots_free(s);
    clave__request_client_refused(x, x->web->own, err, "take a slot of", k->id.path);
}

static void slot_begin(struct web_exchange *x, clave_async_client *c)
{
    const struct slot_call *k = x->state;
    const struct problem leaving = {
        .status = 503, .err = CLAVE_EINUSE, .path = k->id.path, .retry_after_s = 1};
    struct slot_wait *place = clave__slot_wait_find(x->web, k->id.path, k->id.owner);
    clave__web_timer_clear(x->web, &x->timer); /* what has waited for answers has them */
    if (place && clave__slot_wait_is_left(place)) {
        clave__web_problem(x, &leaving, "%s is still leaving the queue of %s", k->id.owner,
                           k->id.path);
    } else if (place) {
        slot_poll_place(x, place);
    } else if (clave__web_prefer_wait(x) == 0) {
        slot_try(x);
    } else if (clave__web_may_keep_waiting(x)) {
        clave_err err = clave__slot_wait_new(x->web, clave__web_sender(x), &k->order, &place);
        if (err == CLAVE_OK)
            slot_poll_place(x, place);
        else
            clave__request_client_refused(x, c, err, "take a slot of", k->id.path);
    }
}

static void slot_look_above(struct web_exchange *x, clave_async_client *c)
{
    const struct slot_call *k = x->state;
    clave__web_check_parents(x, c, WEB_LOCK, k->id.path, slot_begin);
}

static const char *slot_head_fault(const struct web_exchange *x)
{
    if (clave__web_header(x, "Clave-Session"))
        return "a slot belongs to its owner, and no session: leave out Clave-Session";
    return clave__web_header(x, "Idempotency-Key")
               ? "a claim to a slot is repeated by its path and owner: leave out Idempotency-Key"
               : NULL;
}

static bool slot_read_order(struct web_exchange *x, struct slot_call *k, const char **kind)
{
    static const char *const keys[] = {"kind", "path", "host", "by", "reason", "limit", NULL};
    static const int64_t limits[2] = {1, INT32_MAX};
    struct slot_order *o = &k->order;
    int64_t limit = 0;
    json_t *body = clave__web_body(x);
    bool fine = body && clave__body_only(x, body, keys) &&
                clave__body_text(x, body, "kind", kind) &&
                clave__body_text(x, body, "path", &o->path) &&
                clave__body_text(x, body, "host", &o->as.host) &&
                clave__body_text(x, body, "by", &o->as.by) &&
                clave__body_text(x, body, "reason", &o->as.reason) &&
                clave__body_int(x, body, "limit", limits, &limit);
    o->limit = (uint32_t)limit;
    return fine;
}

/* A person who is known by a token need not say so in the body. */
static bool slot_may_say(struct web_exchange *x, clave_slot *as)
{
    if (!as->host)
        as->host = x->peer.address;
    if (!as->by && x->who.is_known && x->who.name[0])
        as->by = x->who.name;
    bool fine = clave__slot_text_is_valid(as->host) && clave__slot_text_is_valid(as->by) &&
                clave__slot_text_is_valid(as->reason);
    if (!fine)
        clave__web_problem(x, &bad_slot,
                           "\"host\", \"by\" and \"reason\" have at most %d bytes of UTF-8 without "
                           "control characters",
                           (int)CLAVE_SLOT_TEXT_MAX);
    return fine;
}

static bool slot_read(struct web_exchange *x, struct slot_call *k)
{
    const char *kind = "lock", *fault = slot_head_fault(x);
    const char *owner = clave__web_header(x, "Clave-Owner");
    if (fault) {
        clave__web_problem(x, &bad_slot, "%s", fault);
        return false;
    }
    if (!slot_read_order(x, k, &kind))
        return false;
    if (strcmp(kind, "slot") != 0 || !k->order.path) {
        clave__web_problem(x, &bad_slot, "%s",
                           k->order.path ? "Clave-Owner is for claims of \"kind\": \"slot\""
                                         : "\"path\" is missing: that of the slots");
        return false;
    }
    k->order.as.id = owner;
    x->deed.path = k->order.path;
    x->deed.what = "slot";
    x->deed.reason = k->order.as.reason;
    return clave__slot_claim_id_make(x, k->order.path, owner, &k->id) &&
           clave__web_must(x, WEB_LOCK, k->id.path) && slot_may_say(x, &k->order.as);
}

void clave__web_post_slot_claim(struct web_exchange *x)
{
    struct slot_call *k = slot_call_new(x);
    if (!k || !slot_read(x, k))
        return;
    struct slot_wait *place = clave__slot_wait_find(x->web, k->id.path, k->id.owner);
    if (place)
        clave__slot_wait_touch(place); /* what is refused below is a sign of life as well */
    if (slot_call_may_wait(x))
        clave__request_client(x, slot_look_above);
}

/* ---- the claim of an id ---------------------------------------------------------------------- */

/* Of the id in the path. NULL: it has answered. */
static struct slot_call *slot_call_named(struct web_exchange *x)
{
    const char *owner = clave__web_header(x, "Clave-Owner"), *text = x->params[0];
    struct slot_call *k = slot_call_new(x);
    if (!k)
        return NULL;
    if (!clave__slot_claim_id_is_one(text) || clave__web_header(x, "Clave-Session")) {
        clave__web_problem(x, &bad_slot,
                           "a claim belongs to an owner or to a session: Clave-Owner is for ids "
                           "that begin with \"slot.\", and Clave-Session for others");
        return NULL;
    }
    if (!clave__slot_claim_id_parse(x, text, &k->id))
        return NULL;
    if (owner && strcmp(owner, k->id.owner) != 0) {
        clave__web_problem(x, &bad_slot, "Clave-Owner is another than that of this claim: %s",
                           k->id.owner);
        return NULL;
    }
    x->deed.path = k->id.path;
    x->deed.what = "slot";
    k->order = (struct slot_order){.path = k->id.path, .as = {.id = k->id.owner}};
    return clave__web_must(x, WEB_LOCK, k->id.path) ? k : NULL;
}

/* ---- GET ------------------------------------------------------------------------------------- */

static void on_slot_looked(clave_async_client *c, clave_err err, const clave_slots_view *view,
                           void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct slot_call *k = x->state;
    const struct problem none = {.status = 404, .err = CLAVE_ENOTHELD, .path = k->id.path};
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "look at the slots of", k->id.path);
        return;
    }
    for (size_t i = 0; i < view->n; i++) {
        const char *id = view->slots[i].id; /* NULL: a node that others made */
        if (id && strcmp(id, k->id.owner) == 0) {
            slot_answer_owned(x, &view->slots[i], false);
            return;
        }
    }
    clave__web_problem(x, &none,
                       "%s owns no slot of %s, and does not wait at this gate: POST /v1/claims "
                       "again",
                       k->id.owner, k->id.path);
}

static void slot_look(struct web_exchange *x, clave_async_client *c)
{
    const struct slot_call *k = x->state;
    clave_err err = clave_async_slots_list(c, k->id.path, on_slot_looked, x);
    if (err == CLAVE_OK)
        clave__web_expect(x);
    else
        clave__request_client_refused(x, c, err, "look at the slots of", k->id.path);
}

void clave__web_get_slot_claim(struct web_exchange *x)
{
    const struct slot_call *k = slot_call_named(x);
    if (!k || !slot_call_may_wait(x))
        return;
    struct slot_wait *place = clave__slot_wait_find(x->web, k->id.path, k->id.owner);
    if (place && !clave__slot_wait_is_left(place))
        slot_poll_place(x, place);
    else
        clave__request_client(x, slot_look);
}

void clave__web_patch_slot_claim(struct web_exchange *x)
{
    clave__web_problem(x, &bad_slot, "a slot says what it said when it was taken");
}

/* ---- DELETE ---------------------------------------------------------------------------------- */

static void on_slot_given(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    struct web_exchange *x = arg;
    clave_async_slots_free(s);
    if (!clave__web_expected(x))
        return;
    const struct slot_call *k = x->state;
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "give back the slot of", k->id.path);
        return;
    }
    slot_open_claim(x, "released");
    clave__json_bool(&x->json, "given", slot != NULL);
    if (slot)
        clave__slot_put(&x->json, slot);
    slot_answer(x, 200);
}

static void slot_give(struct web_exchange *x, clave_async_client *c)
{
    const struct slot_call *k = x->state;
    clave_async_slots *s;
    clave_err err = clave__slot_order_open(x->web, &k->order, &s);
    if (err == CLAVE_OK)
        err = clave_async_slots_give(s, k->id.owner, k->token, on_slot_given, x);
    if (err == CLAVE_OK) {
        x->late = x->stop = slot_call_late;
        clave__web_expect(x);
        return;
    }
    clave_async_slots_free(s);
    clave__request_client_refused(x, c, err, "give back the slot of", k->id.path);
}

/* The take is over, however it ended: what it took is given back now. */
static void on_slot_left(struct slot_poll *p, const struct slot_news *n)
{
    static const struct problem unknown = {.status = 504, .err = CLAVE_EOPTIMEOUT};
    struct web_exchange *x = LIST_ENTRY(p, struct slot_call, poll)->x;
    if (n->ended)
        clave__request_client(x, slot_give);
    else
        clave__web_problem(x, &unknown, "a take that waited may still be done");
}

void clave__web_delete_slot_claim(struct web_exchange *x)
{
    struct slot_call *k = slot_call_named(x);
    const char *token = clave__web_query(x, "token");
    if (!k)
        return;
    if (token && (!clave__web_parse_int(token, &k->token) || k->token <= 0)) {
        clave__web_problem(x, &bad_slot, "\"token\" must be a number above 0");
        return;
    }
    struct slot_wait *place = clave__slot_wait_find(x->web, k->id.path, k->id.owner);
    if (!place) {
        clave__request_client(x, slot_give);
        return;
    }
    x->begun = true;
    clave__slot_wait_leave(place);
    slot_call_await(x, place, x->web->now + LEAVING_MS, on_slot_left);
}

bool clave__web_is_slot_claim(const struct web_exchange *x)
{
    return clave__web_header(x, "Clave-Owner") ||
           (x->params[0] && clave__slot_claim_id_is_one(x->params[0]));
}
