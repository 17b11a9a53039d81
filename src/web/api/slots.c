/* slots.c - the endpoints of slots, which belong to an owner (an id) and not to a session.
 *
 *   /v1/slots   who owns and who waits, the limit, breaking
 *   /v1/claims  claims of kind "slot" (header Clave-Owner, or an id that begins with "slot.")
 *   FleetLock   the protocol by which the machines of a fleet take turns to reboot: POST
 *               /v1/pre-reboot takes a slot, POST /v1/steady-state gives it back. Each group has
 *               its slots below the path of --fleetlock, which switches these endpoints on. A group
 *               without a limit gets one of 1.
 *
 * A request (struct slot_request) does one of two things. Either it makes a call of its own, which
 * ends when the request is answered or its sender hangs up. Or it polls a take that waits (struct
 * slot_wait), which belongs to a path and an owner: the take keeps its place in the queue between
 * the requests that poll it, and gives the place up after KEEP_MS without a poll. The place belongs
 * to the engine's own session, so each gate that is asked has one of its own. The first to take a
 * slot wins, and the other gates learn at once that the owner has it.
 *
 * A give at another gate withdraws the owner's waiting takes by deleting their places. It cannot
 * withdraw a take that has no place at the servers yet, or whose place was deleted with the
 * engine's session. Such a take lasts only as long as the requests that wait for it, and these are
 * answered that its outcome is unknown.
 *
 * Invariants: an answer says what the servers answered to this request, or to the take that it
 * polls; nothing is asked of the servers for a request after its answer; a path and an owner have
 * at most one take that is not being left; a take is freed in its callback, and nowhere else. */
#include "web/api/api.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/path.h"
#include "base/shell_quote.h"
#include "base/time_format.h"
#include "client/client_for_gate.h"
#include "recipe/slots/slot_node.h"
#include "web/observe/observe.h"

/* ==== /v1/slots =============================================================================== */

/* What was known of the queue and the slots when a take had to wait, or was refused. */
struct slot_room {
    bool known, has_strange;
    size_t ahead, owned;
    int64_t limit;
    char strange[256];   /* cut off if it is longer */
    char left_over[256]; /* likewise; "": none, see clave_mutex_event */
};

/* Is in x->state, and owns the exchange while the request waits. */
struct slot_request {
    struct web_exchange *x;
    const char *path;
    clave_slot as;            /* the owner of the slot, and what its slot says */
    uint32_t limit;           /* of clave_slots_options */
    const char *id;           /* id of the claim; NULL: the request is about no claim */
    clave_async_slots *slots; /* while the request's own call is under way, otherwise NULL */
    const char *what;         /* what that call does: "take a slot of" */
    struct slot_room room;
    struct slot_wait *place; /* the take that the request polls; NULL: none */
    struct list link;        /* in the list of requests that poll that take */
    struct timer until;
    bool wants_position; /* the place in the queue is news enough */
};

/* ---- a request that uses slots --------------------------------------------------------------- */

/* Makes a request, which becomes x->state. NULL: it has answered. */
static struct slot_request *slot_request_new(struct web_exchange *x)
{
    struct slot_request *r = x->state = clave__web_must_alloc(x, sizeof *r);
    if (r)
        r->x = x;
    return r;
}

/* A path, quoted for a shell. */
static const char *slot_quoted(struct web_exchange *x, const char *path)
{
    size_t n = 4 * strlen(path) + 3;
    char *out = clave__web_alloc(x, n);
    if (out)
        clave__shell_quote(out, n, path);
    return out ? out : "";
}

/* A path, encoded for the target of a request. */
static const char *slot_encoded(struct web_exchange *x, const char *path)
{
    char *out = clave__web_alloc(x, 3 * strlen(path) + 1);
    if (out)
        clave__percent_encode(out, path);
    return out ? out : "";
}

static const char *slot_strange_text(struct web_exchange *x, const char *node)
{
    return clave__web_sprintf(x,
                              "this is not a slot, but counts as one: to remove it: clave rm -r %s "
                              "(DELETE /v1/znodes%s)",
                              slot_quoted(x, node), slot_encoded(x, node));
}

static const char *slot_bad_limit_text(struct web_exchange *x, const char *path)
{
    return clave__web_sprintf(x,
                              "%s/limit holds no number of slots, so nobody takes any: to set it: "
                              "clave slot limit %s N (PUT /v1/slots%s)",
                              path, slot_quoted(x, path), slot_encoded(x, path));
}

static void slot_room_note(struct slot_room *r, const clave_slots_event *ev)
{
    *r = (struct slot_room){.known = true,
                            .has_strange = ev->strange != NULL,
                            .ahead = ev->ahead,
                            .owned = ev->owned,
                            .limit = ev->limit};
    snprintf(r->strange, sizeof r->strange, "%s", ev->strange ? ev->strange : "");
    snprintf(r->left_over, sizeof r->left_over, "%s", ev->left_over ? ev->left_over : "");
}

static const char *slot_room_text(struct web_exchange *x, const char *path,
                                  const struct slot_room *r)
{
    if (!r->known)
        return clave__web_sprintf(
            x, "no slot of %s was free: GET /v1/slots%s shows by whom they are owned", path, path);
    if (r->limit == CLAVE_SLOTS_LIMIT_BAD)
        return slot_bad_limit_text(x, path);
    const char *before = r->ahead > 0 ? clave__web_sprintf(x, ", %zu before it", r->ahead) : "";
    bool whole = strlen(r->strange) < sizeof r->strange - 1; /* a name that was cut off must not be
                                                              * in a command */
    const char *what =
        whole ? slot_strange_text(x, r->strange) : "this is not a slot, but counts as one";
    const char *strange =
        r->has_strange ? clave__web_sprintf(x, "; %s: %s", r->strange, what ? what : "") : "";
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
    slot_room_note(&r->room, ev);
}

static void slot_request_close(struct slot_request *r)
{
    clave_async_slots *s = r->slots;
    r->slots = NULL;
    clave_async_slots_free(s);
}

static void slot_poll_cancel(struct slot_request *r);

/* The request is answered, or nobody waits for the answer any more: its sender has hung up, or has
 * lost the right to it. */
static void slot_request_leave(struct web_exchange *x)
{
    struct slot_request *r = x->state;
    if (r->place)
        slot_poll_cancel(r);
    else
        slot_request_close(r);
}

/* The servers have not answered in time, or the gate stops. A place that waits ends with the
 * engine's session, unless its take is done before. */
static void slot_request_late(struct web_exchange *x)
{
    const struct slot_request *r = x->state;
    clave__web_problem_as(x, 504, CLAVE_ECONNLOSS, r->what, r->path);
}

static const struct exchange_owner slot_request_owner = {
    .leave = slot_request_leave, .stop = slot_request_late, .late = slot_request_late};
static const struct exchange_owner slot_look_owner = {.leave = slot_request_leave};

static clave_err slot_request_open(struct slot_request *r, const char *what)
{
    clave_slots_options o = CLAVE_SLOTS_OPTIONS_INIT;
    o.limit = r->limit;
    o.event_cb = slot_request_on_event;
    o.event_arg = r;
    r->what = what;
    return clave_async_slots_new(&r->slots, r->x->web->own, r->path, &o);
}

static void fleetlock_answer(struct slot_request *r, clave_err err);

/* A machine asks again before it gives up. */
enum { FLEETLOCK_PATIENCE_MS = 5000 };

/* The call of the request was made; or it could not be made, and the request is answered. */
static void slot_request_sent(struct slot_request *r, clave_async_client *c, clave_err err)
{
    struct web_exchange *x = r->x;
    assert(x->state == r && !x->owner);
    if (err == CLAVE_OK) {
        clave__web_expect(x);
        clave__web_own(x, &slot_request_owner, r);
        if (x->is_fleetlock)
            clave__web_timer_set(x->web, &x->timer, x->web->now + FLEETLOCK_PATIENCE_MS);
        return;
    }
    slot_request_close(r);
    if (x->is_fleetlock)
        fleetlock_answer(r, err);
    else
        clave__request_client_refused(x, c, err, r->what, r->path);
}

/* The call of the request has ended. Returns false if nobody waits for the answer any more. */
static bool slot_request_over(struct slot_request *r)
{
    struct web_exchange *x = r->x;
    if (r->slots) {
        slot_request_close(r);
        clave__web_disown(x);
    }
    return clave__web_expected(x);
}

static void slot_put_time(struct json *j, const char *key, int64_t ms)
{
    char text[RFC3339_CAP];
    clave__json_string(j, key, clave__rfc3339_format(ms, text));
}

static void slot_put(struct json *j, const clave_slot *slot)
{
    clave__json_int64(j, "token", slot->token);
    slot_put_time(j, "since", slot->since);
    clave__json_string(j, "host", slot->host);
    clave__json_string(j, "by", slot->by);
    clave__json_string(j, "reason", slot->reason);
    clave__json_string(j, "node", slot->node);
}

/* The gate asks for slots with its own session. */
static bool slots_may_ask(struct web_exchange *x)
{
    if (!clave__param_path(x) || !clave__web_header(x, "Clave-Session"))
        return !x->answered;
    return clave__web_bad_request(x, "slots belong to no session: leave out Clave-Session");
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
        slot_put_time(j, "since", list[i].stat.ctime);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
    clave__web_answer_object(x, 200);
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
        clave__json_string(j, "detail", slot_bad_limit_text(x, path));
    clave__json_open(j, "owners", '[');
    for (size_t i = 0; i < view->n; i++) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "owner", view->slots[i].id);
        slot_put(j, &view->slots[i]);
        if (!view->slots[i].id)
            clave__json_string(j, "detail", slot_strange_text(x, view->slots[i].node));
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
    if (view->broken.token == 0)
        return;
    clave__json_open(j, "broken", '{');
    clave__json_string(j, "owner", view->broken.id);
    clave__json_int64(j, "token", view->broken.token);
    slot_put_time(j, "at", view->broken.since);
    clave__json_string(j, "by", view->broken.by);
    clave__json_string(j, "reason", view->broken.reason);
    clave__json_close(j, '}');
}

static void on_slots_listed(clave_async_client *c, clave_err err, const clave_slots_view *view,
                            void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    const char *path = x->params[0];
    if (err == CLAVE_OK && view->limit == CLAVE_SLOTS_LIMIT_NONE && view->n == 0) {
        clave__web_refuse(x, 404, CLAVE_ENONODE, path,
                          "there are no slots at %s: set a limit (clave slot limit %s N)", path,
                          path);
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
    clave__request_client_sent(x, c, err, "list the slots of", x->params[0]);
}

void clave__web_get_slots(struct web_exchange *x)
{
    if (slots_may_ask(x))
        clave__request_client(x, slots_list);
}

/* ---- PUT: the limit -------------------------------------------------------------------------- */

static struct slot_request *slots_request(struct web_exchange *x)
{
    struct slot_request *r = slots_may_ask(x) ? slot_request_new(x) : NULL;
    if (r)
        r->path = x->params[0];
    return r;
}

static void on_slots_limit(clave_async_slots *s, clave_err err, void *arg)
{
    struct slot_request *r = arg;
    struct web_exchange *x = r->x;
    (void)s;
    if (!slot_request_over(r))
        return;
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, r->what, r->path);
        return;
    }
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "path", r->path);
    clave__json_int(&x->json, "limit", r->limit);
    clave__web_answer_object(x, 200);
}

static void slots_set_limit(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    clave_err err = slot_request_open(r, "set the limit of");
    if (err == CLAVE_OK)
        err = clave_async_slots_set_limit(r->slots, r->limit, on_slots_limit, r);
    slot_request_sent(r, c, err);
}

void clave__web_put_slots_limit(struct web_exchange *x)
{
    int64_t limit = -1;
    const struct body_member members[] = {
        {"limit", .number = &limit, .least = 0, .most = INT32_MAX}};
    struct slot_request *r = slots_request(x);
    if (!r || !clave__web_read_body(x, BODY_MEMBERS(members)))
        return;
    x->deed.what = clave__web_sprintf(x, "slot limit=%" PRId64, limit);
    r->limit = (uint32_t)limit;
    if (limit >= 0)
        clave__request_client_to_create(x, r->path, slots_set_limit);
    else
        clave__web_bad_request(x, "\"limit\" is missing: how many owners there may be");
}

/* ---- break ----------------------------------------------------------------------------------- */

static void on_slot_broken(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    struct slot_request *r = arg;
    struct web_exchange *x = r->x;
    const clave_slot *b = &r->as;
    (void)s;
    if (!slot_request_over(r))
        return;
    if (err == CLAVE_ENOTEMPTY) {
        clave__web_refuse(x, 409, CLAVE_ENOTEMPTY, r->path,
                          "others have made nodes below %s: clave rm -r %s/owners/...", b->id,
                          r->path);
    } else if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, r->what, r->path);
    } else if (!slot) {
        clave__web_refuse(x, 404, CLAVE_ENOTHELD, r->path, "%s owns no slot of %s%s", b->id,
                          r->path, b->token ? " with this token" : "");
    } else {
        clave__observe_deed(x, slot->token, LOCK_ENDED);
        clave__json_open(&x->json, NULL, '{');
        clave__json_string(&x->json, "path", r->path);
        clave__json_string(&x->json, "owner", b->id);
        slot_put(&x->json, slot);
        clave__web_answer_object(x, 200);
    }
}

static void slots_break(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    clave_err err = slot_request_open(r, "break a slot of");
    if (err == CLAVE_OK)
        err = clave_async_slots_break(r->slots, &r->as, CLAVE_NEVER, on_slot_broken, r);
    slot_request_sent(r, c, err);
}

static bool slots_read_break(struct web_exchange *x, clave_slot *b)
{
    const struct body_member members[] = {
        {"owner", .text = &b->id},
        {"token", .number = &b->token, .least = 1, .most = INT64_MAX},
        {"reason", .text = &b->reason}};
    if (!clave__web_read_body(x, BODY_MEMBERS(members)))
        return false;
    bool fine = b->id && clave__slot_id_is_valid(b->id) && b->reason && b->reason[0] &&
                clave__slot_text_is_valid(b->reason);
    return fine || clave__web_bad_request(
                       x, "\"owner\" and \"reason\" are needed: whose slot is taken away, and why");
}

void clave__web_break_slot(struct web_exchange *x)
{
    struct slot_request *r = slots_request(x);
    if (!r)
        return;
    r->as.by = x->who.name[0] ? x->who.name : x->peer.address;
    if (!slots_read_break(x, &r->as))
        return;
    x->deed.what = clave__web_sprintf(x, "slot of %s", r->as.id);
    x->deed.reason = r->as.reason;
    clave__request_client(x, slots_break);
}

/* ==== claims of kind "slot" =================================================================== */

enum { THE_TAKE = 1, KEEP_MS = 30000, MOST_PATH = 4096 };

/* ---- the id of a claim: "slot.", then path and owner in base64url ---------------------------- */

static const char slot_mark[] = SLOT_CLAIM_ID;

/* Returns NULL if this owner can have a slot of this path. */
static const char *slot_claim_fault(const char *path, const char *owner)
{
    size_t n = strlen(path);
    if (n > MOST_PATH)
        return "its path is longer than 4096 bytes";
    const char *fault = clave__path_fault(path, n, false);
    if (fault)
        return fault;
    return clave__slot_id_is_valid(owner)
               ? NULL
               : "an owner is 1 to 128 bytes of UTF-8 without control characters";
}

/* Notes that the request is about the claim of this owner to a slot of this path; both texts last
 * as long as the exchange. Returns false if it has answered. */
static bool slot_request_name(struct slot_request *r, const char *path, const char *owner)
{
    struct web_exchange *x = r->x;
    const char *fault = slot_claim_fault(path, owner);
    if (fault)
        return clave__web_bad_request(x, "there can be no such slot: %s", fault);
    const char *both = clave__web_sprintf(x, "%s\n%s", path, owner);
    size_t n = both ? strlen(both) : 0, mark = sizeof slot_mark - 1;
    char *id = both ? clave__web_alloc(x, mark + BASE64_LEN(n) + 1) : NULL;
    if (!id) {
        clave__web_problem_err(x, CLAVE_ENOMEM, "take a slot of", path);
        return false;
    }
    memcpy(id, slot_mark, mark);
    clave__base64url(both, n, id + mark);
    r->path = x->deed.path = path;
    r->as.id = owner;
    r->id = id;
    x->deed.what = "slot";
    return clave__web_must(x, WEB_LOCK, path);
}

/* Decodes the id of a claim; *owner follows the path. NULL: this is no such id. */
static char *slot_claim_path(struct web_exchange *x, const char *id, const char **owner)
{
    const char *text = id + sizeof slot_mark - 1;
    size_t n = strncmp(id, slot_mark, sizeof slot_mark - 1) == 0 ? strlen(text) : 0, len = 0;
    char *path = n > 0 ? clave__web_alloc(x, n * 3 / 4 + 1) : NULL;
    if (!path || !clave__base64url_decode(text, n, path, &len))
        return NULL;
    path[len] = '\0';
    char *line = strlen(path) == len ? strchr(path, '\n') : NULL;
    if (!line)
        return NULL;
    *line = '\0';
    *owner = line + 1;
    return slot_claim_fault(path, *owner) ? NULL : path;
}

/* ---- what is answered ------------------------------------------------------------------------ */

static void slot_open_claim(const struct slot_request *r, const char *state)
{
    struct json *j = &r->x->json;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "id", r->id);
    clave__json_string(j, "path", r->path);
    clave__json_string(j, "kind", "slot");
    clave__json_string(j, "owner", r->as.id);
    clave__json_string(j, "state", state);
}

static void slot_answer(const struct slot_request *r, unsigned status)
{
    struct web_exchange *x = r->x;
    clave__json_close(&x->json, '}');
    if (clave__web_is_method(x, "POST"))
        clave__web_set_header(x, "Location", "%s/v1/claims/%s", clave__web_prefix(x), r->id);
    clave__web_answer_json(x, status);
}

static void slot_answer_owned(const struct slot_request *r, const clave_slot *slot, bool taken)
{
    slot_open_claim(r, "held");
    slot_put(&r->x->json, slot);
    slot_answer(r, taken && clave__web_is_method(r->x, "POST") ? 201 : 200);
}

static void slot_answer_refused(const struct slot_request *r, clave_err err,
                                const struct slot_room *room)
{
    struct web_exchange *x = r->x;
    const struct problem busy = {.status = 409, .err = err, .path = r->path, .retry_after_s = 1};
    const char *text = err == CLAVE_EBUSY ? slot_room_text(x, r->path, room) : NULL;
    if (text)
        clave__web_problem(x, &busy, "%s", text);
    else if (err == CLAVE_ENONODE)
        clave__web_refuse(x, 404, err, r->path,
                          "no limit of slots is set at %s: set one (clave slot limit %s N, PUT "
                          "/v1/slots%s), or claim with \"limit\"",
                          r->path, r->path, r->path);
    else if (err == CLAVE_ECANCELED)
        clave__web_refuse(x, 410, err, r->path,
                          "%s does not wait for a slot of %s any more: another request has left "
                          "the queue",
                          r->as.id, r->path);
    else
        clave__web_problem_err(x, err, "take a slot of", r->path);
}

/* ---- takes that wait ------------------------------------------------------------------------- */

struct slot_wait {
    struct list link; /* of struct web.slot_places */
    struct web *web;
    clave_async_slots *slots;
    struct sender *sender;
    struct timer keep;
    struct list polls; /* of slot_request */
    size_t position;   /* from 1; 0: it has no place at the servers, as far as is known */
    struct slot_room room;
    bool leaving;
    char *path, *owner;
};

static void slot_wait_keep(struct slot_wait *p)
{
    clave__web_timer_set(p->web, &p->keep, p->web->now + KEEP_MS);
}

static void slot_wait_touch(struct slot_wait *p)
{
    if (p->keep.armed)
        slot_wait_keep(p);
}

/* Leaves the queue. A request that was sent already may still take a slot; those that poll are
 * answered with how the take ended. */
static void slot_wait_leave(struct slot_wait *p)
{
    if (p->leaving)
        return;
    p->leaving = true;
    clave__web_timer_clear(p->web, &p->keep);
    (void)clave_async_slots_cancel(p->slots, THE_TAKE); /* its callback comes in any case */
    clave__web_flush(p->web, p->web->own);
}

/* ---- polls of takes that wait ---- */

static void slot_poll_cancel(struct slot_request *r)
{
    struct slot_wait *p = r->place;
    r->place = NULL;
    list_remove(&r->link);
    clave__web_timer_clear(p->web, &r->until);
    if (list_empty(&p->polls) && p->position > 0)
        slot_wait_keep(p);
    else if (list_empty(&p->polls))
        slot_wait_leave(p);
}

static void slot_wait_tell_waits(struct slot_request *r)
{
    const struct slot_wait *p = r->place;
    struct json *j = &r->x->json;
    if (p->position == 0) {
        slot_answer_refused(r, CLAVE_ECONNLOSS, &p->room);
        return;
    }
    slot_open_claim(r, "waiting");
    clave__json_int(j, "position", (int64_t)p->position);
    if (p->room.left_over[0])
        clave__json_string(j, "left_over", p->room.left_over);
    if (p->room.has_strange || p->room.limit == CLAVE_SLOTS_LIMIT_BAD)
        clave__json_string(j, "detail", slot_room_text(r->x, r->path, &p->room));
    slot_answer(r, 202);
}

/* If the process was stopped, the deadline of the engine's session may have passed, and the places
 * are gone with the session. Not to be called in a callback of the engine's client. */
static void slot_wait_catch_up(struct web *w)
{
    clave_async_client_tick(w->own, w->now);
}

static void on_slot_wait_poll_until(struct timer *t, int64_t now)
{
    struct slot_request *r = LIST_ENTRY(t, struct slot_request, until);
    (void)now;
    slot_wait_catch_up(r->x->web);
    if (r->place)
        slot_wait_tell_waits(r);
}

/* Answers at once if the answer is known, otherwise at news or at `until`. */
static void slot_wait_await(struct slot_wait *p, struct slot_request *r, int64_t until)
{
    assert(!r->place);
    r->place = p;
    r->what = "take a slot of";
    list_push_back(&p->polls, &r->link);
    clave__timer_init(&r->until, on_slot_wait_poll_until);
    clave__web_timer_clear(p->web, &p->keep);
    clave__web_own(r->x, clave__web_reads(r->x) ? &slot_look_owner : &slot_request_owner, r);
    bool at_once = until <= p->web->now;
    if (p->position > 0 && (at_once || r->wants_position)) {
        slot_wait_tell_waits(r);
        return;
    }
    r->wants_position |= at_once; /* it is not known yet whether the take waits */
    clave__web_timer_set(p->web, &r->until, at_once ? p->web->now + WEB_PATIENCE_MS : until);
}

static void slot_wait_poll(struct slot_wait *p, struct slot_request *r)
{
    int64_t wait = clave__web_prefer_wait(r->x);
    r->wants_position = wait < 0;
    if (wait < 0)
        wait = clave__web_reads(r->x) ? 0 : WEB_PATIENCE_MS;
    slot_wait_await(p, r, p->web->now + (wait < LONGEST_POLL_MS ? wait : LONGEST_POLL_MS));
}

/* ---- life ------------------------------------------------------------------------------------ */

static void slot_wait_free(struct slot_wait *p)
{
    struct web *w = p->web;
    assert(list_empty(&p->polls));
    clave__web_timer_clear(w, &p->keep);
    list_remove(&p->link);
    clave_async_slots_free(p->slots);
    if (p->sender) {
        clave__sender_give(w, p->sender, SENDER_WAITS, 1);
        clave__sender_unref(w, p->sender);
    }
    clave__mem_free(&w->mem, p->path);
    clave__mem_free(&w->mem, p->owner);
    clave__mem_free(&w->mem, p);
}

static void on_slot_wait_moved(clave_async_slots *s, const clave_slots_event *ev, void *arg)
{
    struct slot_wait *p = arg;
    (void)s;
    p->position = ev->ahead + 1;
    slot_room_note(&p->room, ev);
    if (ev->refused)
        return; /* the end of the take follows */
    for (struct list *e = p->polls.next, *next; e != &p->polls; e = next) {
        struct slot_request *r = LIST_ENTRY(e, struct slot_request, link);
        next = e->next;
        if (r->wants_position)
            slot_wait_tell_waits(r);
    }
}

static void on_slot_wait_ended(clave_async_slots *s, clave_err err, const clave_slot *slot,
                               bool taken, void *arg)
{
    struct slot_wait *p = arg;
    int64_t now = p->web->own ? clave__client_now(p->web->own) : 0; /* NULL: this is its end */
    (void)s;
    p->web->now = now > p->web->now ? now : p->web->now;
    p->leaving = true; /* nobody finds it any more */
    while (!list_empty(&p->polls)) {
        const struct slot_request *r = LIST_ENTRY(p->polls.next, struct slot_request, link);
        if (err == CLAVE_OK)
            slot_answer_owned(r, slot, taken);
        else
            slot_answer_refused(r, err, &p->room);
    }
    slot_wait_free(p);
}

static void on_slot_wait_not_polled(struct timer *t, int64_t now)
{
    (void)now;
    slot_wait_leave(LIST_ENTRY(t, struct slot_wait, keep));
}

static clave_err slot_wait_open(struct slot_wait *p, const struct slot_request *r)
{
    clave_slots_options options = CLAVE_SLOTS_OPTIONS_INIT;
    options.limit = r->limit;
    options.event_cb = on_slot_wait_moved;
    options.event_arg = p;
    p->path = clave__mem_strdup(&p->web->mem, r->path);
    p->owner = clave__mem_strdup(&p->web->mem, r->as.id);
    if (!p->path || !p->owner)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_slots_new(&p->slots, p->web->own, r->path, &options);
    return err != CLAVE_OK ? err
                           : clave_async_slots_take(p->slots, THE_TAKE, &r->as, CLAVE_NEVER,
                                                    on_slot_wait_ended, p);
}

/* The take of this request's path and owner that is not being left; NULL: there is none. */
static struct slot_wait *slot_wait_find(const struct slot_request *r)
{
    struct web *w = r->x->web;
    for (struct list *e = w->slot_places.next; e != &w->slot_places; e = e->next) {
        struct slot_wait *p = LIST_ENTRY(e, struct slot_wait, link);
        if (!p->leaving && strcmp(p->owner, r->as.id) == 0 && strcmp(p->path, r->path) == 0)
            return p;
    }
    return NULL;
}

/* Begins a take for this request. It counts towards SENDER_WAITS of the request's sender. Errors as
 * clave_async_slots_take; ENOMEM. */
static clave_err slot_wait_new(const struct slot_request *r, struct slot_wait **out)
{
    assert(!slot_wait_find(r));
    struct web *w = r->x->web;
    struct slot_wait *p = clave__mem_zalloc(&w->mem, sizeof *p);
    *out = NULL;
    if (!p)
        return CLAVE_ENOMEM;
    p->web = w;
    list_init(&p->polls);
    list_push_back(&w->slot_places, &p->link);
    clave__timer_init(&p->keep, on_slot_wait_not_polled);
    clave_err err = slot_wait_open(p, r);
    if (err != CLAVE_OK) {
        slot_wait_free(p);
        return err;
    }
    p->sender = clave__sender_ref(clave__web_sender(r->x));
    clave__sender_add(w, p->sender, SENDER_WAITS, 1);
    slot_wait_keep(p);
    *out = p;
    return CLAVE_OK;
}

void clave__slot_places_judge(struct web *w)
{
    for (struct list *e = w->slot_places.next, *next; e != &w->slot_places; e = next) {
        struct slot_wait *p = LIST_ENTRY(e, struct slot_wait, link);
        next = e->next;
        if (list_empty(&p->polls))
            slot_wait_leave(p);
    }
}

void clave__slot_places_lost(struct web *w)
{
    for (struct list *e = w->slot_places.next; e != &w->slot_places; e = e->next)
        LIST_ENTRY(e, struct slot_wait, link)->position = 0;
    clave__slot_places_judge(w);
}

/* ---- POST ------------------------------------------------------------------------------------ */

static void on_slot_tried(clave_async_slots *s, clave_err err, const clave_slot *slot, bool taken,
                          void *arg)
{
    struct slot_request *r = arg;
    (void)s;
    if (!slot_request_over(r))
        return;
    if (r->x->is_fleetlock)
        fleetlock_answer(r, err);
    else if (err == CLAVE_OK)
        slot_answer_owned(r, slot, taken);
    else
        slot_answer_refused(r, err, &r->room);
}

static void slot_try(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    clave_err err = slot_request_open(r, "take a slot of");
    if (err == CLAVE_OK)
        err = clave_async_slots_take(r->slots, THE_TAKE, &r->as, CLAVE_TRY, on_slot_tried, r);
    slot_request_sent(r, c, err);
}

static void slot_begin(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    struct slot_wait *place = slot_wait_find(r);
    clave_err err = CLAVE_OK;
    clave__web_timer_clear(x->web, &x->timer); /* all awaited answers have come */
    if (!place && clave__web_prefer_wait(x) == 0) {
        slot_try(x, c);
        return;
    }
    if (!place && !clave__web_may_keep_waiting(x))
        return;
    if (!place)
        err = slot_wait_new(r, &place);
    if (err == CLAVE_OK)
        slot_wait_poll(place, r);
    else
        clave__request_client_refused(x, c, err, "take a slot of", r->path);
}

static const char *slot_head_fault(const struct web_exchange *x)
{
    if (clave__web_header(x, "Clave-Session"))
        return "a slot belongs to its owner, and no session: leave out Clave-Session";
    return clave__web_header(x, "Idempotency-Key")
               ? "a claim to a slot is repeated by its path and owner: leave out Idempotency-Key"
               : NULL;
}

/* Completes what a slot says of its owner. A person who is known by a token need not be named in
 * the body. */
static bool slot_may_say(struct web_exchange *x, clave_slot *as)
{
    if (!as->host)
        as->host = x->peer.address;
    if (!as->by && x->who.is_known && x->who.name[0])
        as->by = x->who.name;
    bool fine = clave__slot_text_is_valid(as->host) && clave__slot_text_is_valid(as->by) &&
                clave__slot_text_is_valid(as->reason);
    return fine || clave__web_bad_request(
                       x,
                       "\"host\", \"by\" and \"reason\" have at most %d bytes of UTF-8 without "
                       "control characters",
                       (int)CLAVE_SLOT_TEXT_MAX);
}

static bool slot_read(struct web_exchange *x, struct slot_request *r)
{
    const char *kind = "lock", *path = NULL, *fault = slot_head_fault(x);
    int64_t limit = 0;
    const struct body_member members[] = {
        {"kind", .text = &kind},
        {"path", .text = &path},
        {"host", .text = &r->as.host},
        {"by", .text = &r->as.by},
        {"reason", .text = &r->as.reason},
        {"limit", .number = &limit, .least = 1, .most = INT32_MAX},
    };
    if (fault)
        return clave__web_bad_request(x, "%s", fault);
    if (!clave__web_read_body(x, BODY_MEMBERS(members)))
        return false;
    if (!path)
        return clave__web_bad_request(x, "\"path\" is missing: that of the slots");
    if (strcmp(kind, "slot") != 0)
        return clave__web_bad_request(x, "Clave-Owner is for claims of \"kind\": \"slot\"");
    r->limit = (uint32_t)limit;
    x->deed.reason = r->as.reason;
    return slot_request_name(r, path, clave__web_header(x, "Clave-Owner")) &&
           slot_may_say(x, &r->as);
}

/* Returns false if it has answered that too many requests wait. */
static bool slot_call_may_wait(struct web_exchange *x)
{
    return clave__web_prefer_wait(x) <= 0 || clave__web_may_wait(x);
}

void clave__web_post_slot_claim(struct web_exchange *x)
{
    struct slot_request *r = slot_request_new(x);
    if (!r || !slot_read(x, r))
        return;
    slot_wait_catch_up(x->web);
    struct slot_wait *place = slot_wait_find(r);
    if (place)
        slot_wait_touch(place); /* a request that is refused below is a sign of life, too */
    if (slot_call_may_wait(x))
        clave__request_client_to_create(x, r->path, slot_begin);
}

/* ---- the claim of an id ---------------------------------------------------------------------- */

/* Makes a request about the claim whose id is in the path. NULL: it has answered. */
static struct slot_request *slot_request_named(struct web_exchange *x)
{
    const char *said = clave__web_header(x, "Clave-Owner"), *owner = NULL;
    bool is_one = strncmp(x->params[0], slot_mark, sizeof slot_mark - 1) == 0;
    struct slot_request *r = slot_request_new(x);
    char *path = r && is_one ? slot_claim_path(x, x->params[0], &owner) : NULL;
    if (!r)
        return NULL;
    if (!is_one || clave__web_header(x, "Clave-Session"))
        clave__web_bad_request(x, "a claim belongs to an owner or to a session: Clave-Owner is for "
                                  "ids that begin with \"slot.\", and Clave-Session for others");
    else if (!path)
        clave__web_refuse(x, 404, CLAVE_ENOTHELD, NULL,
                          "this is no id of a claim to a slot: POST /v1/claims tells it");
    else if (said && strcmp(said, owner) != 0)
        clave__web_bad_request(x, "Clave-Owner is another than that of this claim: %s", owner);
    else if (slot_request_name(r, path, owner))
        return r;
    return NULL;
}

/* ---- GET ------------------------------------------------------------------------------------- */

static void on_slot_looked(clave_async_client *c, clave_err err, const clave_slots_view *view,
                           void *arg)
{
    struct web_exchange *x = arg;
    (void)c;
    if (!clave__web_expected(x))
        return;
    const struct slot_request *r = x->state;
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, "look at the slots of", r->path);
        return;
    }
    for (size_t i = 0; i < view->n; i++) {
        const char *id = view->slots[i].id; /* NULL: a node that others made */
        if (id && strcmp(id, r->as.id) == 0) {
            slot_answer_owned(r, &view->slots[i], false);
            return;
        }
    }
    clave__web_refuse(x, 404, CLAVE_ENOTHELD, r->path,
                      "%s owns no slot of %s, and does not wait at this gate: POST /v1/claims "
                      "again",
                      r->as.id, r->path);
}

static void on_slot_proved(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    const struct slot_request *r = x->state;
    bool is_committed = res->err == CLAVE_OK || clave_err_classify(res->err) == CLAVE_CLASS_FINAL;
    if (!is_committed) {
        clave__web_problem_err(x, res->err, "look at the slots of", r->path);
        return;
    }
    clave_err err = clave_async_slots_list(c, r->path, on_slot_looked, x);
    clave__request_client_sent(x, c, err, "look at the slots of", r->path);
}

/* A leader that was deposed and does not know it answers syncs and reads with the state before its
 * successor, but it commits nothing. So a check is committed first, be it as a failure: what this
 * session reads afterwards is no older than the request. */
static void slot_look(struct web_exchange *x, clave_async_client *c)
{
    const struct slot_request *r = x->state;
    const clave_op check = {.kind = CLAVE_OP_CHECK, .path = r->path, .version = -1};
    clave_err err = clave_async_multi(c, &check, 1, on_slot_proved, x);
    clave__request_client_sent(x, c, err, "look at the slots of", r->path);
}

void clave__web_get_slot_claim(struct web_exchange *x)
{
    struct slot_request *r = slot_request_named(x);
    if (!r || !slot_call_may_wait(x))
        return;
    slot_wait_catch_up(x->web);
    struct slot_wait *place = slot_wait_find(r);
    if (place)
        slot_wait_poll(place, r);
    else
        clave__request_client(x, slot_look);
}

void clave__web_patch_slot_claim(struct web_exchange *x)
{
    clave__web_bad_request(x, "what a slot says cannot be changed after it was taken");
}

/* ---- DELETE ---------------------------------------------------------------------------------- */

static void on_slot_given(clave_async_slots *s, clave_err err, const clave_slot *slot, void *arg)
{
    struct slot_request *r = arg;
    struct web_exchange *x = r->x;
    (void)s;
    if (!slot_request_over(r))
        return;
    if (x->is_fleetlock) { /* a give of a slot that the machine does not own succeeds as well */
        fleetlock_answer(r, err);
        return;
    }
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, r->what, r->path);
        return;
    }
    slot_open_claim(r, "released");
    clave__json_bool(&x->json, "given", slot != NULL);
    if (slot)
        slot_put(&x->json, slot);
    slot_answer(r, 200);
}

/* Releases the slot of an owner, and withdraws the waiting takes of the owner, also at other
 * gates. */
static void slot_give(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    clave_err err = slot_request_open(r, "give back the slot of");
    if (err == CLAVE_OK)
        err =
            clave_async_slots_give(r->slots, r->as.id, r->as.token, CLAVE_NEVER, on_slot_given, r);
    slot_request_sent(r, c, err);
}

void clave__web_delete_slot_claim(struct web_exchange *x)
{
    struct slot_request *r = slot_request_named(x);
    const char *token = clave__web_query(x, "token");
    if (!r)
        return;
    if (token && (!clave__web_parse_int(token, &r->as.token) || r->as.token <= 0)) {
        clave__web_bad_request(x, "\"token\" must be a number above 0");
        return;
    }
    struct slot_wait *place = slot_wait_find(r);
    if (place)
        slot_wait_leave(place);
    clave__request_client(x, slot_give);
}

/* ==== FleetLock =============================================================================== */

/* MOST_GROUP: a node's name. */
enum { FLEETLOCK_BODY = 4096, MOST_GROUP = 128, MOST_GROUPS = 100 };

/* ---- what is asked --------------------------------------------------------------------------- */

/* The text of this member of an object; NULL: it is missing, or not a text. */
static const char *fleetlock_text(const struct web_exchange *x, const json_t *o, const char *key)
{
    json_t *v = json_is_object(o) ? x->web->o.jansson->json_object_get(o, key) : NULL;
    return json_is_string(v) ? x->web->o.jansson->json_string_value(v) : NULL;
}

static bool fleetlock_is_group(const char *group)
{
    size_t n = strspn(group, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
    bool is_dots = strcmp(group, ".") == 0 || strcmp(group, "..") == 0; /* no names of nodes */
    return n > 0 && n <= MOST_GROUP && group[n] == '\0' && !is_dots;
}

static const char *fleetlock_fault(const struct web_exchange *x, const char *group, const char *id)
{
    if (!clave__web_header_is(x, "fleet-lock-protocol", "true"))
        return "the header \"fleet-lock-protocol: true\" is missing";
    if (clave__web_header(x, "Clave-Session"))
        return "a slot belongs to its machine, and no session: leave out Clave-Session";
    if (!group || !id)
        return "the body must be {\"client_params\": {\"group\": \"...\", \"id\": \"...\"}}";
    if (!fleetlock_is_group(group))
        return "\"group\" is 1 to 128 letters, digits, dots and hyphens";
    return clave__slot_id_is_valid(id)
               ? NULL
               : "\"id\" is 1 to 128 bytes of UTF-8 without control characters";
}

/* Reads what the machine asks for. NULL: it has answered. */
static struct slot_request *fleetlock_read(struct web_exchange *x)
{
    struct slot_request *r = slot_request_new(x);
    bool fits = clave__web_body_len(x) <= FLEETLOCK_BODY;
    json_t *body = r && fits && clave__web_header(x, "fleet-lock-protocol")
                       ? clave__web_body_of_any_type(x)
                       : NULL;
    if (x->answered)
        return NULL;
    const json_t *who = body ? x->web->o.jansson->json_object_get(body, "client_params") : NULL;
    const char *group = fleetlock_text(x, who, "group"), *id = fleetlock_text(x, who, "id");
    const char *fault = fits ? fleetlock_fault(x, group, id) : "the body has more than 4096 bytes";
    if (fault)
        clave__web_bad_request(x, "%s", fault);
    else if (!(r->path = clave__web_child(x, x->web->o.access->fleetlock, group)))
        clave__web_problem_err(x, CLAVE_ENOMEM, "read the request", NULL);
    if (!r->path)
        return NULL;
    r->as = (clave_slot){.id = id, .host = x->peer.address};
    r->limit = 1;
    if (x->who.is_known && clave__slot_text_is_valid(x->who.name) && x->who.name[0])
        r->as.by = x->who.name;
    x->deed.path = r->path;
    x->deed.what = clave__web_sprintf(x, "slot of %s", id);
    return clave__web_must(x, WEB_LOCK, r->path) ? r : NULL;
}

/* ---- what is answered ------------------------------------------------------------------------ */

/* The protocol has 4xx for the machine's own faults, and 409 for "not now". */
static void fleetlock_answer(struct slot_request *r, clave_err err)
{
    struct web_exchange *x = r->x;
    unsigned status = clave__web_status(x, err);
    const char *text = err == CLAVE_EBUSY ? slot_room_text(x, r->path, &r->room) : NULL;
    if (err == CLAVE_OK)
        clave__web_answer_empty(x, 200);
    else if (text)
        clave__web_refuse(x, 409, CLAVE_EBUSY, r->path, "%s", text);
    else
        clave__web_problem_as(x, status >= 500 ? status : 500, err, r->what, r->path);
}

/* ---- the bound of groups: a sender that is known by its address alone could name any number -- */

static void fleetlock_looks(struct slot_request *r, clave_err err)
{
    struct web_exchange *x = r->x;
    x->only_reads = true;
    if (err == CLAVE_OK) {
        clave__web_timer_set(x->web, &x->timer, x->web->now + FLEETLOCK_PATIENCE_MS);
        clave__web_expect(x);
    } else {
        fleetlock_answer(r, err);
    }
}

static void fleetlock_on_groups(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    struct slot_request *r = x->state;
    if (!clave__web_expected(x))
        return;
    x->only_reads = false;
    if (res->err == CLAVE_OK && res->stat->num_children >= MOST_GROUPS) {
        clave__web_refuse(x, 403, CLAVE_EQUOTA, r->path,
                          "there are %d groups, and a machine without a token makes no more: "
                          "make %s with PUT /v1/slots%s, or give the machine a token",
                          (int)res->stat->num_children, r->path, r->path);
    } else if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE) {
        clave__web_check_parents(x, c, r->path, slot_try);
    } else {
        r->what = "look at the groups beside";
        fleetlock_answer(r, res->err);
    }
}

static void fleetlock_on_group(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    struct slot_request *r = x->state;
    if (!clave__web_expected(x))
        return;
    x->only_reads = false;
    if (res->err == CLAVE_OK)
        slot_try(x, c);
    else if (res->err == CLAVE_ENONODE)
        fleetlock_looks(
            r, clave_async_exists(c, x->web->o.access->fleetlock, NULL, fleetlock_on_groups, x));
    else
        fleetlock_answer(r, res->err);
}

static void fleetlock_look_at_group(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    r->what = "look at";
    fleetlock_looks(r, clave_async_exists(c, r->path, NULL, fleetlock_on_group, x));
}

void clave__web_fleetlock_take(struct web_exchange *x)
{
    const struct slot_request *r = fleetlock_read(x);
    if (r && x->who.is_known)
        clave__request_client_to_create(x, r->path, slot_try);
    else if (r)
        clave__request_client(x, fleetlock_look_at_group);
}

void clave__web_fleetlock_give(struct web_exchange *x)
{
    if (fleetlock_read(x))
        clave__request_client(x, slot_give);
}
