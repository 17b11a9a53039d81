/* slot_claims.c - claims of kind "slot", which belong to an owner (Clave-Owner), not to a session:
 * asked for, looked at, given back. Called by the table of routes.
 *
 * The id of a claim is its path and its owner as one word, so that any gate knows from it which
 * slot is meant. It is no secret, and proves nothing.
 *
 * A take that waits belongs to a path and an owner, not to the request that began it: its place in
 * the queue is kept over the requests that poll it, and given up when nobody has polled for
 * KEEP_MS. It is a place of the engine's own session, so another gate has another one; whichever
 * comes first takes, and the other learns at once that the owner has it.
 *
 * Invariants: for a path and an owner there is at most one take that is not being left; a take is
 * freed in its callback, and nowhere else. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/base64.h"
#include "base/path.h"
#include "client/client_for_gate.h"
#include "recipe/slots/slot_node.h"
#include "web/api/request_client.h"
#include "web/api/slots/slots_api.h"
#include "web/api/znodes/parents_access.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/forwarded.h"
#include "web/http/prefer.h"
#include "web/http/problem.h"
#include "web/http/request_args.h"
#include "web/http/request_limits.h"
#include "web/http/sender_limits.h"

enum { THE_TAKE = 1, KEEP_MS = 30000, MOST_PATH = 4096 };

/* ---- the id of a claim ----------------------------------------------------------------------- */

struct slot_claim_id {
    const char *path, *owner;
    const char *text; /* "slot." and both in base64url */
};

static const char slot_mark[] = "slot.";

/* NULL: the slot may be. */
static const char *slot_claim_id_fault(const char *path, const char *owner)
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

static char *slot_claim_id_text(struct web_exchange *x, const char *path, const char *owner)
{
    char *both = clave__web_sprintf(x, "%s\n%s", path, owner);
    size_t n = both ? strlen(both) : 0, mark = sizeof slot_mark - 1;
    char *text = both ? clave__web_alloc(x, mark + BASE64_LEN(n) + 1) : NULL;
    if (!text)
        return NULL;
    memcpy(text, slot_mark, mark);
    clave__base64(both, n, text + mark);
    for (char *c = text + mark; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c == '=' ? '\0' : *c;
    return text;
}

/* It begins as the id of such a claim does. */
static bool slot_claim_id_is_one(const char *text)
{
    return strncmp(text, slot_mark, sizeof slot_mark - 1) == 0;
}

/* Checks both, and makes the text; all lasts as long as the exchange. false: it has answered. */
static bool slot_claim_id_make(struct web_exchange *x, const char *path, const char *owner,
                               struct slot_claim_id *out)
{
    const char *fault = slot_claim_id_fault(path, owner);
    struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    if (fault) {
        clave__web_problem(x, &bad, "there can be no such slot: %s", fault);
        return false;
    }
    *out = (struct slot_claim_id){path, owner, slot_claim_id_text(x, path, owner)};
    if (!out->text)
        clave__web_problem_err(x, CLAVE_ENOMEM, "take a slot of", path);
    return out->text != NULL;
}

/* The bytes of base64url, with a NUL; NULL: it is none. */
static char *slot_claim_id_decode(struct web_exchange *x, const char *text)
{
    size_t n = strlen(text), padded = BASE64_LEN((n * 3 + 3) / 4), len = 0;
    char *copy = clave__web_alloc(x, padded + 5), *out = clave__web_alloc(x, padded + 1);
    if (!copy || !out)
        return NULL;
    padded = (n + 3) / 4 * 4;
    memset(copy, '=', padded + 1);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '+' || text[i] == '/' || text[i] == '=')
            return NULL;
        copy[i] = text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i];
    }
    if (!clave__base64_decode(copy, padded, out, &len))
        return NULL;
    out[len] = '\0';
    return strlen(out) == len ? out : NULL;
}

/* Of the text. false: it has answered 404 or 503. */
static bool slot_claim_id_parse(struct web_exchange *x, const char *text, struct slot_claim_id *out)
{
    assert(slot_claim_id_is_one(text));
    static const struct problem unknown = {.status = 404, .err = CLAVE_ENOTHELD};
    char *both = slot_claim_id_decode(x, text + sizeof slot_mark - 1);
    char *line = both ? strchr(both, '\n') : NULL;
    if (line)
        *line = '\0';
    if (line && !slot_claim_id_fault(both, line + 1))
        return slot_claim_id_make(x, both, line + 1, out);
    clave__web_problem(x, &unknown, "this is no id of a claim to a slot: POST /v1/claims tells it");
    return false;
}

/* ---- takes that wait ------------------------------------------------------------------------- */

struct slot_wait {
    struct list link; /* of struct web.slot_places */
    struct web *web;
    clave_async_slots *slots;
    struct sender *sender;
    struct timer keep;
    struct list polls;
    size_t position; /* 0: not known yet */
    struct slot_room room;
    bool leaving;
    char *path, *owner;
};

/* What a poll is told, valid during the call. */
struct slot_news {
    bool ended;             /* false: it waits */
    clave_err err;          /* how it ended, as of clave_async_slots_take_cb */
    const clave_slot *slot; /* that the owner has; NULL: none */
    bool taken;             /* by this take */
    size_t position;        /* from 1; 0: not known */
    const struct slot_room *room;
};

struct slot_poll {
    struct list link; /* of the place */
    struct slot_wait *place;
    struct timer until;
    bool wants_position;
    void (*done)(struct slot_poll *p, const struct slot_news *news); /* once */
};

/* ---- polls of takes that wait
 * ----------------------------------------------------------------------------------- */

static void slot_wait_keep(struct slot_wait *p)
{
    clave__web_timer_set(p->web, &p->keep, p->web->now + KEEP_MS);
}

static void slot_wait_touch(struct slot_wait *p)
{
    if (p->keep.armed)
        slot_wait_keep(p);
}

static void slot_poll_cancel(struct slot_poll *poll)
{
    struct slot_wait *p = poll->place;
    if (!p)
        return;
    poll->place = NULL;
    list_remove(&poll->link);
    clave__web_timer_clear(p->web, &poll->until);
    if (list_empty(&p->polls))
        slot_wait_keep(p);
}

static void slot_wait_tell_waits(struct slot_poll *poll)
{
    const struct slot_news news = {.position = poll->place->position, .room = &poll->place->room};
    slot_poll_cancel(poll);
    poll->done(poll, &news);
}

static void on_slot_wait_poll_until(struct timer *t, int64_t now)
{
    (void)now;
    slot_wait_tell_waits(LIST_ENTRY(t, struct slot_poll, until));
}

static void slot_wait_await(struct slot_wait *p, struct slot_poll *poll, int64_t until)
{
    assert(poll->done && !poll->place);
    poll->place = p;
    list_push_back(&p->polls, &poll->link);
    clave__timer_init(&poll->until, on_slot_wait_poll_until);
    clave__web_timer_clear(p->web, &p->keep);
    if (until <= p->web->now || (poll->wants_position && p->position > 0))
        slot_wait_tell_waits(poll);
    else
        clave__web_timer_set(p->web, &poll->until, until);
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
    clave__slot_room_note(&p->room, ev);
    if (ev->refused)
        return; /* its end follows */
    for (struct list *e = p->polls.next, *next; e != &p->polls; e = next) {
        struct slot_poll *poll = LIST_ENTRY(e, struct slot_poll, link);
        next = e->next;
        if (poll->wants_position)
            slot_wait_tell_waits(poll);
    }
}

static void on_slot_wait_ended(clave_async_slots *s, clave_err err, const clave_slot *slot,
                               bool taken, void *arg)
{
    struct slot_wait *p = arg;
    const struct slot_news news = {
        .ended = true, .err = err, .slot = slot, .taken = taken, .room = &p->room};
    int64_t now = p->web->own ? clave__client_now(p->web->own) : 0; /* NULL: this is its end */
    (void)s;
    p->web->now = now > p->web->now ? now : p->web->now;
    p->leaving = true; /* nobody finds it any more */
    while (!list_empty(&p->polls)) {
        struct slot_poll *poll = LIST_ENTRY(p->polls.next, struct slot_poll, link);
        slot_poll_cancel(poll);
        poll->done(poll, &news);
    }
    slot_wait_free(p);
}

static void slot_wait_leave(struct slot_wait *p);

static void on_slot_wait_not_polled(struct timer *t, int64_t now)
{
    (void)now;
    slot_wait_leave(LIST_ENTRY(t, struct slot_wait, keep));
}

static clave_err slot_wait_open(struct slot_wait *p, const struct slot_order *o)
{
    clave_slots_options options = CLAVE_SLOTS_OPTIONS_INIT;
    options.limit = o->limit;
    options.event_cb = on_slot_wait_moved;
    options.event_arg = p;
    p->path = clave__mem_strdup(&p->web->mem, o->path);
    p->owner = clave__mem_strdup(&p->web->mem, o->as.id);
    if (!p->path || !p->owner)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_slots_new(&p->slots, p->web->own, o->path, &options);
    return err != CLAVE_OK ? err
                           : clave_async_slots_take(p->slots, THE_TAKE, &o->as, CLAVE_NEVER,
                                                    on_slot_wait_ended, p);
}

/* NULL: there is none that is not being left. */
static struct slot_wait *slot_wait_find(struct web *w, const char *path, const char *owner)
{
    for (struct list *e = w->slot_places.next; e != &w->slot_places; e = e->next) {
        struct slot_wait *p = LIST_ENTRY(e, struct slot_wait, link);
        if (!p->leaving && strcmp(p->owner, owner) == 0 && strcmp(p->path, path) == 0)
            return p;
    }
    return NULL;
}

/* Begins to take, for this sender, to whose SENDER_WAITS it counts. Errors as of
 * clave_async_slots_take; ENOMEM. */
static clave_err slot_wait_new(struct web *w, struct sender *s, const struct slot_order *o,
                               struct slot_wait **out)
{
    assert(!slot_wait_find(w, o->path, o->as.id));
    struct slot_wait *p = clave__mem_zalloc(&w->mem, sizeof *p);
    *out = NULL;
    if (!p)
        return CLAVE_ENOMEM;
    p->web = w;
    list_init(&p->polls);
    list_push_back(&w->slot_places, &p->link);
    clave__timer_init(&p->keep, on_slot_wait_not_polled);
    clave_err err = slot_wait_open(p, o);
    if (err != CLAVE_OK) {
        slot_wait_free(p);
        return err;
    }
    p->sender = clave__sender_ref(s);
    clave__sender_add(w, s, SENDER_WAITS, 1);
    slot_wait_keep(p);
    *out = p;
    return CLAVE_OK;
}

/* Leaves the queue. What was sent already may still take; polls are told how it ended. */
static void slot_wait_leave(struct slot_wait *p)
{
    if (p->leaving)
        return;
    p->leaving = true;
    clave__web_timer_clear(p->web, &p->keep);
    (void)clave_async_slots_cancel(p->slots, THE_TAKE); /* its callback comes in any case */
    clave__web_flush(p->web, p->web->own);
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

/* ---- a request for a claim ------------------------------------------------------------------- */

static const struct problem bad_slot = {.status = 400, .err = CLAVE_EINVAL};

struct slot_call {
    struct slot_request request; /* first: x->state is either */
    struct slot_claim_id id;
    struct slot_poll poll;
};

/* NULL: it has answered. */
static struct slot_call *slot_call_new(struct web_exchange *x)
{
    struct slot_call *k = clave__web_alloc(x, sizeof *k);
    if (k)
        *k = (struct slot_call){.request = {.x = x}};
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
    const struct slot_call *k = x->state;
    slot_open_claim(x, "waiting");
    if (n->position > 0)
        clave__json_int(&x->json, "position", (int64_t)n->position);
    if (n->room && n->room->left_over[0])
        clave__json_string(&x->json, "left_over", n->room->left_over);
    if (n->room->has_strange || n->room->limit == CLAVE_SLOTS_LIMIT_BAD)
        clave__json_string(&x->json, "detail", clave__slot_room_text(x, k->id.path, n->room));
    slot_answer(x, 202);
}

static void slot_answer_owned(struct web_exchange *x, const clave_slot *slot, bool taken)
{
    slot_open_claim(x, "held");
    clave__slot_put(&x->json, slot);
    slot_answer(x, taken && clave__web_is_method(x, "POST") ? 201 : 200);
}

static void slot_answer_refused(struct web_exchange *x, clave_err err, const struct slot_room *room)
{
    const struct slot_call *k = x->state;
    struct problem p = {.status = 409, .err = err, .path = k->id.path, .retry_after_s = 1};
    const char *text = err == CLAVE_EBUSY ? clave__slot_room_text(x, k->id.path, room) : NULL;
    if (text) {
        clave__web_problem(x, &p, "%s", text);
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
    slot_poll_cancel(&k->poll);
}

/* The gate stops: a place that waits ends with its session, unless the take is done first. */
static void slot_call_stop(struct web_exchange *x)
{
    struct slot_call *k = x->state;
    slot_poll_cancel(&k->poll);
    clave__web_problem_as(x, 504, CLAVE_ECONNLOSS, "take a slot of", k->id.path);
}

static void slot_call_await(struct web_exchange *x, struct slot_wait *place, int64_t until,
                            void (*done)(struct slot_poll *p, const struct slot_news *n))
{
    struct slot_call *k = x->state;
    x->cancel = slot_call_cancel;
    k->poll.done = done;
    slot_wait_await(place, &k->poll, until);
}

static void on_slot_news(struct slot_poll *p, const struct slot_news *n)
{
    struct web_exchange *x = LIST_ENTRY(p, struct slot_call, poll)->request.x;
    if (!n->ended)
        slot_answer_waits(x, n);
    else if (n->err == CLAVE_OK)
        slot_answer_owned(x, n->slot, n->taken);
    else
        slot_answer_refused(x, n->err, n->room);
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
    x->stop = looks ? NULL : slot_call_stop;
    slot_call_await(x, place, x->web->now + (wait < LONGEST_POLL_MS ? wait : LONGEST_POLL_MS),
                    on_slot_news);
}

/* ---- POST ------------------------------------------------------------------------------------ */

static void on_slot_tried(clave_async_slots *s, clave_err err, const clave_slot *slot, bool taken,
                          void *arg)
{
    struct web_exchange *x = arg;
    struct slot_request *r = x->state;
    (void)s;
    if (!clave__slot_request_over(r))
        return;
    if (err == CLAVE_OK)
        slot_answer_owned(x, slot, taken);
    else
        slot_answer_refused(x, err, &r->room);
}

static void slot_try(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    clave_err err = clave__slot_request_open(r, "take a slot of");
    if (err == CLAVE_OK)
        err = clave_async_slots_take(r->slots, THE_TAKE, &r->order.as, CLAVE_TRY, on_slot_tried, x);
    if (!clave__slot_request_sent(r, err))
        clave__request_client_refused(x, c, err, r->what, r->order.path);
}

static void slot_begin(struct web_exchange *x, clave_async_client *c)
{
    const struct slot_call *k = x->state;
    struct slot_wait *place = slot_wait_find(x->web, k->id.path, k->id.owner);
    clave__web_timer_clear(x->web, &x->timer); /* what has waited for answers has them */
    if (place) {
        slot_poll_place(x, place);
    } else if (clave__web_prefer_wait(x) == 0) {
        slot_try(x, c);
    } else if (clave__web_may_keep_waiting(x)) {
        clave_err err = slot_wait_new(x->web, clave__web_sender(x), &k->request.order, &place);
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
    struct slot_order *o = &k->request.order;
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
    if (strcmp(kind, "slot") != 0 || !k->request.order.path) {
        clave__web_problem(x, &bad_slot, "%s",
                           k->request.order.path ? "Clave-Owner is for claims of \"kind\": \"slot\""
                                                 : "\"path\" is missing: that of the slots");
        return false;
    }
    k->request.order.as.id = owner;
    x->deed.path = k->request.order.path;
    x->deed.what = "slot";
    x->deed.reason = k->request.order.as.reason;
    return slot_claim_id_make(x, k->request.order.path, owner, &k->id) &&
           clave__web_must(x, WEB_LOCK, k->id.path) && slot_may_say(x, &k->request.order.as);
}

void clave__web_post_slot_claim(struct web_exchange *x)
{
    struct slot_call *k = slot_call_new(x);
    if (!k || !slot_read(x, k))
        return;
    struct slot_wait *place = slot_wait_find(x->web, k->id.path, k->id.owner);
    if (place)
        slot_wait_touch(place); /* what is refused below is a sign of life as well */
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
    if (!slot_claim_id_is_one(text) || clave__web_header(x, "Clave-Session")) {
        clave__web_problem(x, &bad_slot,
                           "a claim belongs to an owner or to a session: Clave-Owner is for ids "
                           "that begin with \"slot.\", and Clave-Session for others");
        return NULL;
    }
    if (!slot_claim_id_parse(x, text, &k->id))
        return NULL;
    if (owner && strcmp(owner, k->id.owner) != 0) {
        clave__web_problem(x, &bad_slot, "Clave-Owner is another than that of this claim: %s",
                           k->id.owner);
        return NULL;
    }
    x->deed.path = k->id.path;
    x->deed.what = "slot";
    k->request.order = (struct slot_order){.path = k->id.path, .as = {.id = k->id.owner}};
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
    struct slot_wait *place = slot_wait_find(x->web, k->id.path, k->id.owner);
    if (place)
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
    struct slot_request *r = x->state;
    (void)s;
    if (!clave__slot_request_over(r))
        return;
    if (err != CLAVE_OK) {
        clave__web_problem_err(x, err, r->what, r->order.path);
        return;
    }
    slot_open_claim(x, "released");
    clave__json_bool(&x->json, "given", slot != NULL);
    if (slot)
        clave__slot_put(&x->json, slot);
    slot_answer(x, 200);
}

/* It withdraws the takes of the owner that wait, at other gates as well. */
static void slot_give(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    clave_err err = clave__slot_request_open(r, "give back the slot of");
    if (err == CLAVE_OK)
        err = clave_async_slots_give(r->slots, r->order.as.id, r->order.as.token, CLAVE_NEVER,
                                     on_slot_given, x);
    if (!clave__slot_request_sent(r, err))
        clave__request_client_refused(x, c, err, r->what, r->order.path);
}

void clave__web_delete_slot_claim(struct web_exchange *x)
{
    struct slot_call *k = slot_call_named(x);
    const char *token = clave__web_query(x, "token");
    if (!k)
        return;
    if (token && (!clave__web_parse_int(token, &k->request.order.as.token) ||
                  k->request.order.as.token <= 0)) {
        clave__web_problem(x, &bad_slot, "\"token\" must be a number above 0");
        return;
    }
    struct slot_wait *place = slot_wait_find(x->web, k->id.path, k->id.owner);
    if (place)
        slot_wait_leave(place);
    clave__request_client(x, slot_give);
}

bool clave__web_is_slot_claim(const struct web_exchange *x)
{
    return clave__web_header(x, "Clave-Owner") ||
           (x->params[0] && slot_claim_id_is_one(x->params[0]));
}
