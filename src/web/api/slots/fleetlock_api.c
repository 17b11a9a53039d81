/* fleetlock_api.c - see slots_api.h. Called by the table of routes. The protocol knows no
 * waiting: a take is a try, and holds no place when there is no room. Invariant: 200 is said of
 * what the servers have told; a change whose outcome is not known is 5xx, which a machine repeats,
 * and that is harmless. */
#include <string.h>

#include "recipe/slots/slot_node.h"
#include "web/api/request_client.h"
#include "web/api/slots/slots_api.h"
#include "web/api/znodes/parents_access.h"
#include "web/http/answer.h"
#include "web/http/body.h"
#include "web/http/problem.h"

/* A machine asks again before it gives up. MOST_GROUP: a node's name. */
enum { PATIENCE_MS = 5000, MOST_BODY = 4096, MOST_GROUP = 128, MOST_GROUPS = 100 };

static const struct problem bad_machine = {.status = 400, .err = CLAVE_EINVAL};

/* ---- what is asked --------------------------------------------------------------------------- */

/* Of an object; NULL: it is missing, or no text. */
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

/* What the machine asks for. NULL: it has answered. */
static struct slot_request *fleetlock_read(struct web_exchange *x)
{
    struct slot_request *r = clave__web_alloc(x, sizeof *r);
    bool fits = clave__web_body_len(x) <= MOST_BODY;
    json_t *body = r && fits && clave__web_header(x, "fleet-lock-protocol")
                       ? clave__web_body_of_any_type(x)
                       : NULL;
    if (x->answered)
        return NULL;
    const json_t *who = body ? x->web->o.jansson->json_object_get(body, "client_params") : NULL;
    const char *group = fleetlock_text(x, who, "group"), *id = fleetlock_text(x, who, "id");
    const char *fault = fits ? fleetlock_fault(x, group, id) : "the body has more than 4096 bytes";
    char *path = r && !fault ? clave__web_child(x, x->web->o.access->fleetlock, group) : NULL;
    if (r && fault)
        clave__web_problem(x, &bad_machine, "%s", fault);
    else if (!path)
        clave__web_problem_err(x, CLAVE_ENOMEM, "read the request", NULL);
    if (!path)
        return NULL;
    *r = (struct slot_request){
        .x = x, .order = {.path = path, .as = {.id = id, .host = x->peer.address}, .limit = 1}};
    if (x->who.is_known && clave__slot_text_is_valid(x->who.name) && x->who.name[0])
        r->order.as.by = x->who.name;
    x->deed.path = path;
    x->deed.what = clave__web_sprintf(x, "slot of %s", id);
    x->state = r;
    return clave__web_must(x, WEB_LOCK, path) ? r : NULL;
}

/* ---- what is answered ------------------------------------------------------------------------ */

/* The protocol has 4xx for the machine's own faults, and 409 for "not now". */
static void fleetlock_refuse(struct web_exchange *x, clave_err err, const char *what)
{
    const struct slot_request *r = x->state;
    const char *path = r->order.path;
    const struct problem full = {.status = 409, .err = CLAVE_EBUSY, .path = path};
    unsigned status = clave__web_status(x, err);
    const char *text = err == CLAVE_EBUSY ? clave__slot_room_text(x, path, &r->room) : NULL;
    if (text)
        clave__web_problem(x, &full, "%s", text);
    else
        clave__web_problem_as(x, status >= 500 ? status : 500, err, what, path);
}

static void fleetlock_answer(struct web_exchange *x, clave_err err)
{
    struct slot_request *r = x->state;
    if (!clave__slot_request_over(r))
        return;
    if (err == CLAVE_OK)
        clave__web_answer_empty(x, 200);
    else
        fleetlock_refuse(x, err, r->what);
}

static void fleetlock_on_taken(clave_async_slots *s, clave_err err, const clave_slot *slot,
                               bool taken, void *arg)
{
    (void)s;
    (void)slot;
    (void)taken;
    fleetlock_answer(arg, err);
}

/* What it does not own is given, too. */
static void fleetlock_on_given(clave_async_slots *s, clave_err err, const clave_slot *slot,
                               void *arg)
{
    (void)s;
    (void)slot;
    fleetlock_answer(arg, err);
}

/* ---- the requests ---------------------------------------------------------------------------- */

static void fleetlock_sent(struct web_exchange *x, clave_err err)
{
    struct slot_request *r = x->state;
    if (clave__slot_request_sent(r, err))
        clave__web_timer_set(x->web, &x->timer, x->web->now + PATIENCE_MS);
    else
        fleetlock_refuse(x, err, r->what);
}

static void fleetlock_take(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    (void)c;
    clave_err err = clave__slot_request_open(r, "take a slot of");
    if (err == CLAVE_OK)
        err = clave_async_slots_take(r->slots, 1, &r->order.as, CLAVE_TRY, fleetlock_on_taken, x);
    fleetlock_sent(x, err);
}

static void fleetlock_look_above(struct web_exchange *x, clave_async_client *c)
{
    const struct slot_request *r = x->state;
    clave__web_check_parents(x, c, WEB_LOCK, r->order.path, fleetlock_take);
}

/* ---- the bound of groups: a sender that is known by its address alone could name any number -- */

static void fleetlock_looks(struct web_exchange *x, clave_err err)
{
    x->looking = true;
    if (err == CLAVE_OK) {
        clave__web_timer_set(x->web, &x->timer, x->web->now + PATIENCE_MS);
        clave__web_expect(x);
    } else {
        fleetlock_refuse(x, err, "look at");
    }
}

static void fleetlock_on_groups(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    const struct slot_request *r = x->state;
    const struct problem full = {.status = 403, .err = CLAVE_EQUOTA, .path = r->order.path};
    if (!clave__web_expected(x))
        return;
    x->looking = false;
    if (res->err == CLAVE_OK && res->stat->num_children >= MOST_GROUPS)
        clave__web_problem(x, &full,
                           "there are %d groups, and a machine without a token makes no more: "
                           "make %s with PUT /v1/slots%s, or give the machine a token",
                           (int)res->stat->num_children, r->order.path, r->order.path);
    else if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE)
        fleetlock_look_above(x, c);
    else
        fleetlock_refuse(x, res->err, "look at the groups beside");
}

static void fleetlock_on_group(clave_async_client *c, const clave_result *res, void *arg)
{
    struct web_exchange *x = arg;
    if (!clave__web_expected(x))
        return;
    x->looking = false;
    if (res->err == CLAVE_OK)
        fleetlock_take(x, c);
    else if (res->err == CLAVE_ENONODE)
        fleetlock_looks(
            x, clave_async_exists(c, x->web->o.access->fleetlock, NULL, fleetlock_on_groups, x));
    else
        fleetlock_refuse(x, res->err, "look at");
}

static void fleetlock_look_at_group(struct web_exchange *x, clave_async_client *c)
{
    const struct slot_request *r = x->state;
    if (x->who.is_known)
        fleetlock_look_above(x, c);
    else
        fleetlock_looks(x, clave_async_exists(c, r->order.path, NULL, fleetlock_on_group, x));
}

static void fleetlock_give(struct web_exchange *x, clave_async_client *c)
{
    struct slot_request *r = x->state;
    (void)c;
    clave_err err = clave__slot_request_open(r, "give back the slot of");
    if (err == CLAVE_OK)
        err =
            clave_async_slots_give(r->slots, r->order.as.id, 0, CLAVE_NEVER, fleetlock_on_given, x);
    fleetlock_sent(x, err);
}

void clave__web_fleetlock_take(struct web_exchange *x)
{
    if (fleetlock_read(x))
        clave__request_client(x, fleetlock_look_at_group);
}

void clave__web_fleetlock_give(struct web_exchange *x)
{
    if (fleetlock_read(x))
        clave__request_client(x, fleetlock_give);
}
