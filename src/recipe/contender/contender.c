/* contender.c - a place in a queue: its states, how it comes to an end, and how it reacts when the
 * connection, the session or the time is over. contender.h explains its purpose and draws the
 * states. contender_join.c is about how it gets its node, contender_turn.c about whether its turn
 * has come.
 *
 * What must stay true is checked by contender_check, which runs at both ends of every call from the
 * engine. Besides: only clave__contender_enter changes the state. A reply to an earlier attempt
 * never reaches a later one, because LEAVING lasts until nothing is pending. When a place is given
 * up, its owner is forgotten first and told last, after the delete was sent, so an acquire made in
 * that callback queues behind it. */
#include "recipe/contender/contender.h"

#include <assert.h>
#include <string.h>

#include "base/deadline.h"
#include "base/err_class.h"
#include "client/client_metrics.h"
#include "recipe/queue/identity.h"

enum { PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 1000 };

#define TO(state) (1u << CONTENDER_##state)
static const unsigned moves[] = {
    [CONTENDER_IDLE] = TO(LOOKING) | TO(JOINING) | TO(ENDED),
    [CONTENDER_LOOKING] = TO(JOINING) | TO(LEAVING),
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
    "idle",       "looking", "joining", "standing by", "waiting",
    "confirming", "held",    "leaving", "ended",
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
    case CONTENDER_LOOKING:
    case CONTENDER_STANDING_BY:
    case CONTENDER_CONFIRMING:
    case CONTENDER_ENDED:
        break;
    }
}

/* ---- calls from the engine ------------------------------------------------------------------- */

/* Checks what must be true between two calls. */
static void contender_check(const struct contender *c)
{
    bool stands = c->state >= CONTENDER_WAITING && c->state <= CONTENDER_HELD;
    bool wanted = c->owner != NULL;
    (void)stands, (void)wanted;
    assert(wanted == (c->spec != NULL));
    /* one that nobody wants can only be leaving */
    assert(wanted || c->state == CONTENDER_IDLE || c->state == CONTENDER_LEAVING);
    assert(wanted || (!c->leaving.again && !c->acquire.limit.armed));
    /* Once it stands in the queue it knows its node and, once that node was read, its session. (The
     * answer to a downgrade may be lost together with the session.) */
    assert(!stands || c->node.watch.path[0] != '\0');
    assert(!stands || !c->node.seen || c->node.session_id != 0);
    assert(c->state != CONTENDER_IDLE || c->node.watch.path[0] == '\0' || c->downgrade.node);
    assert(c->state != CONTENDER_STANDING_BY || c->acquire.race);
    /* From when it is next in line, a hold keeps the session's deadline fresh. */
    assert(!c->grant.holding || stands);
    assert(c->grant.holding || (c->state != CONTENDER_HELD && c->state != CONTENDER_CONFIRMING));
    assert(c->state == CONTENDER_HELD || list_empty(&c->grant.watchers));
    assert(c->state == CONTENDER_CONFIRMING || list_empty(&c->grant.confirm.link));
    assert(c->state != CONTENDER_HELD || c->node.token != 0);
    assert(!c->leaving.must_delete || c->state == CONTENDER_LEAVING);
}

static int64_t contender_pause_ms(const struct contender *c)
{
    if (c->acquire.failures == 0)
        return 0;
    unsigned doublings = c->acquire.failures < 6 ? c->acquire.failures - 1 : 6;
    int64_t ms = (int64_t)PAUSE_MIN_MS << doublings;
    return ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS;
}

static void contender_retry_later(struct contender *c)
{
    clave__client_timer_set(c->client, &c->acquire.pause,
                            clave__client_now(c->client) + contender_pause_ms(c));
}

static void contender_join_after_pause(struct contender *c)
{
    if (contender_pause_ms(c) > 0)
        contender_retry_later(c);
    else
        clave__contender_join_again(c);
}

void clave__contender_check_later(struct contender *c)
{
    c->acquire.failures++;
    contender_retry_later(c);
}

void clave__contender_retry_or_fail(struct contender *c, clave_err err)
{
    if (clave__err_passes(err))
        clave__contender_check_later(c);
    else
        clave__contender_fail(c, err);
}

void clave__contender_begin(struct contender *c)
{
    contender_check(c);
    c->busy++;
}

static bool contender_has_pending_requests(const struct contender *c)
{
    return c->busy > 0 || c->node.watch.asking || c->queue.predecessor.asking ||
           c->queue.before_predecessor.asking || c->leaving.must_delete;
}

/* Ends LEAVING when no request is pending; what follows depends on whether there is an owner. */
static void contender_settle(struct contender *c)
{
    if (c->state == CONTENDER_LEAVING && !contender_has_pending_requests(c)) {
        clave__contender_enter(c, CONTENDER_IDLE);
        if (c->leaving.again)
            contender_join_after_pause(c);
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
    contender_check(c);
    c->busy--;
    contender_settle(c);
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void contender_on_deleted(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    /* the session has ended, and its nodes with it */
    bool gone =
        res->err == CLAVE_ENONODE || res->err == CLAVE_EEXPIRED || res->err == CLAVE_ENOTSENT;
    c->leaving.err = gone ? CLAVE_OK : res->err;
    clave__contender_end(c);
}

/* Deletes the node. The watch on our own node stays armed: its event comes before the answer, and
 * costs the server less than a request to forget it. */
void clave__contender_remove_node(struct contender *c, const char *path)
{
    clave_err err = clave__client_delete_node(c->client, path, c->acquire.race ? c->node.token : 0,
                                              contender_on_deleted, c);
    c->leaving.must_delete = err == CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        c->busy++;
    else if (err == CLAVE_ENOMEM)
        clave__contender_check_later(c);
    else
        c->leaving.err = err; /* ECLOSED: the node goes with the session */
}

void clave__contender_remove_own(struct contender *c)
{
    clave__contender_remove_node(c, c->node.watch.path);
}

/* False if the node must stay, because another process with the session may have been granted it:
 * that of a try that fails and only found it, or that of a place that spares it. */
static bool contender_may_remove(const struct contender *c)
{
    enum queue_place_spares spares = c->place ? c->place->spares : SPARES_NOTHING;
    bool found = !c->leaving.stake.sent && !c->downgrade.node;
    if (spares == SPARES_ALL)
        return false;
    return !(found && (spares == SPARES_FOUND || (c->leaving.failed && c->acquire.trying)));
}

void clave__contender_give_up_node(struct contender *c)
{
    if (contender_may_remove(c))
        clave__contender_remove_node(c, c->node.watch.path);
    else if (c->place)
        c->place->spared = true;
}

static void contender_begin_leaving(struct contender *c, bool remove)
{
    assert(c->state >= CONTENDER_LOOKING && c->state <= CONTENDER_HELD);
    bool has_node = c->state >= CONTENDER_WAITING;
    clave__contender_enter(c, CONTENDER_LEAVING);
    if (remove && has_node)
        clave__contender_remove_node(c, c->node.watch.path);
}

static void contender_give_up(struct contender *c)
{
    bool has_node = c->state >= CONTENDER_WAITING;
    contender_begin_leaving(c, false);
    if (has_node)
        clave__contender_give_up_node(c);
}

/* Nobody wants the lock from here on; the caller has to tell the owner. */
static void *contender_forget_owner(struct contender *c)
{
    void *owner = c->owner;
    c->owner = NULL;
    c->spec = NULL;
    c->leaving.stake.unwanted = true;
    c->leaving.again = false;
    clave__client_timer_clear(c->client, &c->acquire.limit);
    return owner;
}

/* It has a place, or asks for one. */
static bool contender_has_begun(const struct contender *c)
{
    return c->state >= CONTENDER_LOOKING && c->state <= CONTENDER_HELD;
}

static void contender_fail(struct contender *c, clave_err err, bool remove)
{
    assert(c->owner && err != CLAVE_OK);
    void *owner = contender_forget_owner(c);
    c->leaving.failed = true;
    /* First the delete, then the event: an acquire made in the callback must queue behind the
     * delete. */
    if (contender_has_begun(c) && remove)
        contender_give_up(c);
    else if (contender_has_begun(c))
        contender_begin_leaving(c, false);
    c->events->ended(owner, err);
}

void clave__contender_fail(struct contender *c, clave_err err)
{
    contender_fail(c, err, true);
}

void clave__contender_fail_gone(struct contender *c, clave_err err)
{
    contender_fail(c, err, false);
}

void clave__contender_lose(struct contender *c, clave_err why, bool remove)
{
    assert(c->owner && c->state == CONTENDER_HELD);
    void *owner = contender_forget_owner(c);
    clave__client_note_loss(c->client, why);
    contender_begin_leaving(c, remove);
    c->events->lost(owner, why);
}

void clave__contender_start_over(struct contender *c, bool remove)
{
    assert(c->owner);
    c->leaving.again = true;
    contender_begin_leaving(c, remove);
}

void clave__contender_leave(struct contender *c, contender_left *left, void *arg)
{
    assert(c->owner);
    clave__contender_begin(c);
    contender_forget_owner(c);
    c->leaving.done = left;
    c->leaving.arg = arg;
    if (contender_has_begun(c))
        contender_give_up(c);
    clave__contender_end(c);
}

void clave__contender_spend(struct contender *c)
{
    assert(c->owner && c->state >= CONTENDER_WAITING && c->state <= CONTENDER_HELD);
    clave__contender_begin(c);
    contender_forget_owner(c);
    contender_begin_leaving(c, false);
    clave__contender_end(c);
}

static void contender_closed(struct contender *c)
{
    c->leaving.must_delete = false;
    if (!c->owner)
        return;
    if (c->state == CONTENDER_HELD) {
        clave__contender_lose(c, CLAVE_ECLOSED, false);
        return;
    }
    void *owner = contender_forget_owner(c);
    if (contender_has_begun(c))
        contender_begin_leaving(c, false);
    c->events->ended(owner, CLAVE_ECLOSED);
}
/* ---- events of session, connection and time -------------------------------------------------- */

static void contender_on_reconnected(struct contender *c)
{
    /* We were first, but a reconnect may have reordered events, so look again. */
    if (c->state == CONTENDER_CONFIRMING)
        clave__contender_enter(c, CONTENDER_WAITING);
    if (c->state == CONTENDER_WAITING) {
        list_remove(&c->grant.confirm.link);
        clave__contender_turn_check(c);
    }
    if (c->state == CONTENDER_STANDING_BY)
        clave__contender_race_look(c);
    /* From here on even a short hold watches its node. While connections are short, each moves the
     * deadline and ends before a heartbeat is due, so no heartbeat would notice that it is gone. */
    if (c->state == CONTENDER_HELD)
        clave__client_settle_hold(&c->grant.hold);
}

static void contender_on_session_lost(struct contender *c, clave_err why)
{
    c->leaving.must_delete = false;
    if (c->state == CONTENDER_HELD)
        clave__contender_lose(c, why == CLAVE_OK ? CLAVE_EEXPIRED : why, false);
    else if (c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING)
        clave__contender_start_over(c, false);
    /* the client reports the outcome of a pending create in whatever session */
    if (c->state == CONTENDER_STANDING_BY)
        clave__contender_join_again(c); /* the watch ended with the session */
}

static void contender_on_state(struct listener *l, clave_state state, clave_err why)
{
    struct contender *c = LIST_ENTRY(l, struct contender, listener);
    clave__contender_begin(c);
    switch (state) {
    case CLAVE_STATE_SUSPENDED:
        c->node.seen = false;
        if (c->acquire.trying && c->owner && c->state != CONTENDER_HELD)
            clave__contender_fail(c, clave__contender_not_in_time(c));
        break;
    case CLAVE_STATE_CONNECTED:
    case CLAVE_STATE_RECONNECTED:
    case CLAVE_STATE_READ_ONLY:
        contender_on_reconnected(c);
        break;
    case CLAVE_STATE_LOST:
        contender_on_session_lost(c, why);
        break;
    case CLAVE_STATE_CLOSED:
        contender_closed(c);
        break;
    case CLAVE_STATE_LATENT:
        break;
    }
    clave__contender_end(c);
}

static void contender_on_pause(struct timer *t, int64_t now)
{
    (void)now;
    struct contender *c = LIST_ENTRY(t, struct contender, acquire.pause);
    clave__contender_begin(c);
    if (c->state == CONTENDER_LEAVING && c->leaving.must_delete)
        clave__contender_remove_node(c, c->node.watch.path);
    else if (c->state == CONTENDER_WAITING)
        clave__contender_turn_check(c);
    else if (c->state == CONTENDER_HELD)
        clave__contender_turn_look(c);
    else if (c->state == CONTENDER_IDLE || c->state == CONTENDER_STANDING_BY)
        clave__contender_join_again(c);
    clave__contender_end(c);
}

static void contender_on_limit(struct timer *t, int64_t now)
{
    (void)now;
    struct contender *c = LIST_ENTRY(t, struct contender, acquire.limit);
    clave__contender_begin(c);
    if (c->state == CONTENDER_HELD)
        clave__contender_lose(c, CLAVE_EMAXHOLD, true);
    else
        clave__contender_fail(c, clave__contender_not_in_time(c));
    clave__contender_end(c);
}

void clave__contender_limit(struct contender *c, int64_t max)
{
    assert(max >= 0);
    int64_t now = clave__client_now(c->client);
    c->grant.end = max > 0 ? deadline_after(now, max) : CLAVE_NEVER;
    if (c->grant.end != CLAVE_NEVER)
        clave__client_timer_set(c->client, &c->acquire.limit, c->grant.end);
    else
        clave__client_timer_clear(c->client, &c->acquire.limit);
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

/* ---- creating and freeing -------------------------------------------------------------------- */

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
    c->listener.on_state = contender_on_state;
    clave__timer_init(&c->acquire.limit, contender_on_limit);
    clave__timer_init(&c->acquire.pause, contender_on_pause);
    clave__deadlock_schedule_init(&c->deadlock_schedule, client, contender_on_deadlock);
    clave_err err = clave__contender_turn_init(c);
    if (err != CLAVE_OK) {
        clave__contender_free(c);
        return err;
    }
    clave__client_listen(client, &c->listener);
    *out = c;
    return CLAVE_OK;
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

/* ---- queries --------------------------------------------------------------------------------- */

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
