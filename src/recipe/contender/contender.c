/* contender.c - a contender: its states, what it is made of, what it knows. Called by every recipe
 * that queues (contender.h). Invariant: only clave__contender_enter changes the state, and a reply
 * of an earlier attempt never meets a later one. */
#include "recipe/contender/contender.h"

#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "client/client_metrics.h"
#include "recipe/queue/identity.h"

/* Room for "_c_" + uuid + "-" before the given name, and for the number after it. */
enum { PROTECTED_LEN = 40, NUMBER_LEN = 11, FOREIGN_NAME_LEN = 64 };

#define TO(state) (1u << CONTENDER_##state)
static const unsigned moves[] = {
    [CONTENDER_IDLE] = TO(JOINING) | TO(ENDED),
    [CONTENDER_JOINING] = TO(STANDING_BY) | TO(WAITING) | TO(LEAVING),
    [CONTENDER_STANDING_BY] = TO(JOINING) | TO(LEAVING),
    [CONTENDER_WAITING] = TO(CONFIRMING) | TO(HELD) | TO(LEAVING),
    [CONTENDER_CONFIRMING] = TO(WAITING) | TO(HELD) | TO(LEAVING),
    [CONTENDER_HELD] = TO(LEAVING),
    [CONTENDER_LEAVING] = TO(IDLE),
    [CONTENDER_ENDED] = 0,
};
#undef TO

static const char *const state_names[] = {
    "idle", "joining", "standing by", "waiting", "confirming", "held", "leaving", "ended",
};

static void contender_stop_waiting(struct contender *c)
{
    clave__node_watch_clear(&c->queue.predecessor);
    clave__node_watch_clear(&c->queue.before_predecessor);
    if (c->queue.children)
        clave_async_watch_disarm(c->queue.children);
    clave__client_timer_clear(c->client, &c->acquire.pause);
    list_remove(&c->grant.confirm.link);
    clave__deadlock_schedule_end(&c->deadlock_schedule);
}

void clave__contender_end_hold(struct contender *c)
{
    struct list *e;
    while ((e = list_pop_front(&c->grant.watchers))) {
        struct hold_watcher *w = LIST_ENTRY(e, struct hold_watcher, link);
        w->over(w);
    }
}

void clave__contender_enter(struct contender *c, enum contender_state to)
{
    bool allowed = moves[c->state] & (1u << to);
    assert(allowed);
    (void)allowed;
    clave__log(clave__client_log(c->client), CLAVE_LOG_DEBUG, "contender %s -> %s %s",
               state_names[c->state], state_names[to],
               c->node.watch.path[0] ? c->node.watch.path
               : c->spec             ? c->spec->path
                                     : "");
    if (c->state == CONTENDER_HELD) {
        clave__client_note_end(c->client, c->acquire.elects);
        clave__contender_end_hold(c);
    }
    c->state = to;
    switch (to) {
    case CONTENDER_JOINING:
        c->node.seen = c->queue.plain = c->leaving.again = false;
        c->node.token = 0;
        c->grant.restored = 0;
        c->grant.asked_before = false;
        c->queue.ahead = SIZE_MAX;
        c->queue.left_over = false;
        break;
    case CONTENDER_HELD:
        clave__client_note_grant(c->client, c->acquire.elects,
                                 clave__client_now(c->client) - c->acquire.joined);
        contender_stop_waiting(c);
        c->acquire.failures = 0;
        break;
    case CONTENDER_LEAVING:
        contender_stop_waiting(c);
        if (c->grant.holding)
            clave__client_unhold(c->client, &c->grant.hold);
        c->grant.holding = false;
        break;
    case CONTENDER_IDLE:
        clave__node_watch_clear(&c->node.watch);
        break;
    case CONTENDER_WAITING:
        if (!c->acquire.trying)
            clave__deadlock_schedule_begin(&c->deadlock_schedule, c->spec->deadlock_terms,
                                           c->node.watch.path);
        break;
    case CONTENDER_STANDING_BY:
    case CONTENDER_CONFIRMING:
    case CONTENDER_ENDED:
        break;
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void clave__contender_free(struct contender *c)
{
    assert(list_empty(&c->grant.watchers));
    struct queue_place *place = c->place;
    clave__client_timer_clear(c->client, &c->acquire.limit);
    clave__client_timer_clear(c->client, &c->acquire.pause);
    clave__client_unlisten(&c->listener);
    clave__node_watch_fini(&c->node.watch);
    clave__node_watch_fini(&c->queue.predecessor);
    clave__node_watch_fini(&c->queue.before_predecessor);
    if (c->queue.children)
        clave_async_watch_free(c->queue.children);
    clave__mem_free(c->mem, c->downgrade.node);
    clave__mem_free(c->mem, c->node.data);
    clave__mem_free(c->mem, c);
    if (place && --place->ncontenders == 0 && place->unused)
        place->unused(place);
}

void clave__contender_begin(struct contender *c)
{
    c->busy++;
}

static bool contender_has_pending_requests(const struct contender *c)
{
    return c->busy > 0 || c->node.watch.asking || c->queue.predecessor.asking ||
           c->queue.before_predecessor.asking || c->leaving.must_delete;
}

/* LEAVING ends when no request is pending; what follows depends on whether there is an owner. */
static void contender_settle(struct contender *c)
{
    if (c->state == CONTENDER_LEAVING && !contender_has_pending_requests(c)) {
        clave__contender_enter(c, CONTENDER_IDLE);
        if (c->leaving.again)
            clave__contender_join_after_pause(c);
    }
    if (c->state != CONTENDER_IDLE || c->owner || contender_has_pending_requests(c))
        return;
    clave__contender_enter(c, CONTENDER_ENDED);
    contender_left *left = c->leaving.done;
    void *left_arg = c->leaving.arg;
    clave_err left_err = c->leaving.err;
    clave__contender_free(c);
    if (left)
        left(left_arg, left_err);
}

void clave__contender_end(struct contender *c)
{
    assert(c->busy > 0);
    c->busy--;
    contender_settle(c);
}

/* The rule that every member of the cycle applies makes us the victim. */
static void contender_on_deadlock(struct deadlock_schedule *d, const char *text)
{
    struct contender *c = LIST_ENTRY(d, struct contender, deadlock_schedule);
    if (c->state != CONTENDER_WAITING)
        return;
    clave__contender_begin(c);
    c->deadlock = text;
    clave__contender_fail(c, CLAVE_EDEADLOCK);
    c->deadlock = NULL;
    clave__contender_end(c);
}

static clave_err contender_init_watches(struct contender *c)
{
    size_t own = strlen(c->spec->stem) + PROTECTED_LEN + NUMBER_LEN + 1;
    size_t other = strlen(c->spec->path) + PROTECTED_LEN + FOREIGN_NAME_LEN;
    clave_err err = clave__node_watch_init(&c->node.watch, c->client, c->mem, own);
    if (err == CLAVE_OK)
        err = clave__node_watch_init(&c->queue.predecessor, c->client, c->mem, other);
    if (err == CLAVE_OK)
        err = clave__node_watch_init(&c->queue.before_predecessor, c->client, c->mem, other);
    if (err == CLAVE_OK && c->spec->counted)
        err = clave_async_watch_new(&c->queue.children, c->client,
                                    clave__contender_turn_children_event, c);
    c->node.watch.on_reply = clave__contender_turn_own_reply;
    c->node.watch.on_event = clave__contender_turn_own_event;
    c->queue.predecessor.on_reply = c->acquire.race ? clave__contender_race_rival_reply
                                                    : clave__contender_turn_predecessor_reply;
    c->queue.predecessor.on_event = c->acquire.race ? clave__contender_race_rival_event
                                                    : clave__contender_turn_predecessor_event;
    c->queue.before_predecessor.on_reply = clave__contender_turn_before_predecessor_reply;
    c->queue.before_predecessor.on_event = clave__contender_turn_before_predecessor_event;
    return err;
}

clave_err clave__contender_new(struct contender **out, clave_async_client *client,
                               const struct contender_spec *spec,
                               const struct contender_events *events, void *owner)
{
    const struct clave_mem *mem = clave__client_mem(client);
    struct contender *c = clave__mem_zalloc(mem, sizeof *c);
    *out = NULL;
    if (!c)
        return CLAVE_ENOMEM;
    c->client = client;
    c->mem = mem;
    c->spec = spec;
    c->place = spec->place;
    if (c->place)
        c->place->ncontenders++;
    c->acquire.race = spec->rule->race;
    c->acquire.elects = spec->elects;
    c->events = events;
    c->owner = owner;
    list_init(&c->listener.link);
    list_init(&c->grant.hold.link);
    list_init(&c->grant.confirm.link);
    list_init(&c->grant.watchers);
    c->listener.on_state = clave__contender_session_state;
    c->grant.hold.on_missing = clave__contender_turn_node_missing;
    c->grant.hold.on_settled = clave__contender_turn_hold_settled;
    c->grant.confirm.on_confirmed = clave__contender_turn_confirmed;
    clave__contender_timers_init(c);
    clave__deadlock_schedule_init(&c->deadlock_schedule, client, contender_on_deadlock);
    clave_err err = contender_init_watches(c);
    if (err != CLAVE_OK) {
        clave__contender_free(c);
        return err;
    }
    clave__client_listen(client, &c->listener);
    *out = c;
    return CLAVE_OK;
}

clave_err clave__contender_downgrade(struct contender *c, const char *node)
{
    clave_err err = clave__contender_downgrade_prepare(c, node);
    if (err != CLAVE_OK)
        clave__contender_free(c);
    return err;
}

clave_err clave__contender_add_identity(struct contender *c, const clave_identity *more)
{
    const struct contender_spec *spec = c->spec;
    bool may = clave__identity_is_form(spec->data, spec->len) || (spec->len == 0 && more->yields);
    if (!may || spec->rule->unprotected) /* its data is the caller's, byte for byte */
        return CLAVE_OK;
    c->node.data = clave__identity_extend(c->mem, spec->data, spec->len, more, &c->node.ndata);
    if (c->node.data)
        return CLAVE_OK;
    clave__contender_free(c);
    return CLAVE_ENOMEM;
}

/* ---- what is known --------------------------------------------------------------------------- */

const void *clave__contender_data(const struct contender *c, size_t *len)
{
    assert(c->node.data || c->spec);
    *len = c->node.data ? c->node.ndata : c->spec->len;
    return c->node.data ? c->node.data : c->spec->data;
}

void clave__contender_recount(struct contender *c)
{
    clave__contender_begin(c);
    if (c->state == CONTENDER_WAITING)
        clave__contender_turn_check(c);
    clave__contender_end(c);
}

clave_err clave__contender_not_in_time(const struct contender *c)
{
    bool first = c->state == CONTENDER_CONFIRMING || c->state == CONTENDER_HELD;
    return clave__client_not_in_time(c->client, first ? 0 : c->queue.others_seen_on);
}

int64_t clave__contender_deadline(const struct contender *c)
{
    return deadline_earlier(clave_async_client_hold_deadline(c->client), c->grant.end);
}

struct grant_facts clave__contender_facts(struct contender *c)
{
    return (struct grant_facts){
        .place = c,
        .token = c->node.token,
        .session_id = c->node.session_id,
        .deadline = clave__contender_deadline(c),
        .node = c->node.watch.path,
        .count = 1,
    };
}
