/* contender.c - a place in a queue: how it gets its node, whether its turn has come, how it comes
 * to an end, and how it reacts when the connection, the session or the time is over. contender.h
 * explains its purpose and draws the states.
 *
 * What must stay true is checked by contender_check, which runs at both ends of every call from the
 * engine. Besides: only contender_enter changes the state. A reply, event or listing of an earlier
 * attempt never reaches a later one, because LEAVING lasts until nothing is pending. A create that
 * may have left a node whose name is unknown is never sent again. When a place is given up, its
 * owner is forgotten first and told last, after the delete was sent, so an acquire made in that
 * callback queues behind it. */
#include "recipe/contender/contender.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "base/err_class.h"
#include "base/path.h"
#include "client/client_metrics.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/queue_kind.h"
#include "recipe/queue/queue_nodes.h"

static void contender_free(struct contender *c);
static void contender_turn_by_listing(struct contender *c, const char *const *names, size_t n);
static void contender_join_again(struct contender *c);

enum { PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 1000, LET_OTHERS_MS = 100 };

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

/* Changes the state; nothing else does. */
static void contender_enter(struct contender *c, enum contender_state to)
{
    bool allowed = moves[c->state] & (1u << to);
    assert(allowed);
    (void)allowed;
    const char *path = c->node.watch.path;
    if (path[0] == '\0' && c->spec)
        path = c->spec->path;
    clave__log(clave__client_log(c->client), CLAVE_LOG_DEBUG, "contender %s -> %s %s",
               state_names[c->state], state_names[to], path);
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

void clave__contender_check_later(struct contender *c)
{
    c->acquire.failures++;
    contender_retry_later(c);
}

/* A request failed: tries again after a pause if the error may pass, otherwise fails. */
static void contender_retry_or_fail(struct contender *c, clave_err err)
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
void clave__contender_end(struct contender *c)
{
    assert(c->busy > 0);
    contender_check(c);
    c->busy--;
    if (c->state == CONTENDER_LEAVING && !contender_has_pending_requests(c)) {
        contender_enter(c, CONTENDER_IDLE);
        if (c->leaving.again && contender_pause_ms(c) > 0)
            contender_retry_later(c);
        else if (c->leaving.again)
            contender_join_again(c);
    }
    if (c->state != CONTENDER_IDLE || c->owner || contender_has_pending_requests(c))
        return;
    contender_enter(c, CONTENDER_ENDED);
    contender_left *left = c->leaving.done;
    void *left_arg = c->leaving.arg;
    clave_err left_err = c->leaving.err;
    contender_free(c);
    if (left)
        left(left_arg, left_err);
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* A try has failed in a place that another process with the session may have. */
static bool contender_deletes_once(const struct contender *c)
{
    return c->place && c->place->is_shared && c->leaving.failed && c->acquire.trying;
}

static void contender_on_deleted(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    /* the session has ended, and its nodes with it */
    bool gone =
        res->err == CLAVE_ENONODE || res->err == CLAVE_EEXPIRED || res->err == CLAVE_ENOTSENT;
    c->leaving.err = gone ? CLAVE_OK : res->err;
    if (contender_deletes_once(c) && res->err == CLAVE_ECONNLOSS)
        c->place->spared = true;
    clave__contender_end(c);
}

/* Deletes the node. Its watch stays armed: its event comes before the answer, and costs the server
 * less than a request to forget it. In a race, and in a place whose name another process knows, the
 * name may come again if the queue's parent was made anew: the czxid tells the nodes apart. */
static void contender_remove_node(struct contender *c, const char *path)
{
    int64_t czxid = c->acquire.race || c->place ? c->node.token : 0;
    clave_err err = CLAVE_OK;
    if (!contender_deletes_once(c))
        err = clave__client_delete_node(c->client, path, czxid, contender_on_deleted, c);
    else if (c->place->spares != SPARES_ALL)
        err = clave_async_delete(c->client, path, -1, contender_on_deleted, c);
    else
        err = CLAVE_ECONNLOSS;
    c->leaving.must_delete = err == CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        c->busy++;
    else if (err == CLAVE_ENOMEM)
        clave__contender_check_later(c);
    else
        c->leaving.err = err; /* ECLOSED: the node goes with the session */
    if (err == CLAVE_ECONNLOSS)
        c->place->spared = true;
}

/* False if the node must stay, because another process with the session may have been granted it:
 * either a failed try only found the node, or the place says to spare it. */
static bool contender_may_remove(const struct contender *c)
{
    enum queue_place_spares spares = c->place ? c->place->spares : SPARES_NOTHING;
    bool found = !c->leaving.stake.sent && !c->downgrade.node;
    if (spares == SPARES_ALL)
        return false;
    return !(found && (spares == SPARES_FOUND || (c->leaving.failed && c->acquire.trying)));
}

/* The place was given up: deletes our node, or leaves it to another process that may hold it. */
static void contender_give_up_node(struct contender *c)
{
    if (contender_may_remove(c))
        contender_remove_node(c, c->node.watch.path);
    else if (c->place)
        c->place->spared = true;
}

static void contender_begin_leaving(struct contender *c, bool remove)
{
    assert(c->state >= CONTENDER_LOOKING && c->state <= CONTENDER_HELD);
    bool has_node = c->state >= CONTENDER_WAITING;
    contender_enter(c, CONTENDER_LEAVING);
    if (remove && has_node)
        contender_remove_node(c, c->node.watch.path);
}

static void contender_give_up(struct contender *c)
{
    bool has_node = c->state >= CONTENDER_WAITING;
    contender_begin_leaving(c, false);
    if (has_node)
        contender_give_up_node(c);
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

/* True if it has a place or is asking for one. */
static bool contender_has_begun(const struct contender *c)
{
    return c->state >= CONTENDER_LOOKING && c->state <= CONTENDER_HELD;
}

static void contender_fail_with(struct contender *c, clave_err err, bool remove)
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
    contender_fail_with(c, err, true);
}

/* The grant is lost. */
static void contender_lose(struct contender *c, clave_err why, bool remove)
{
    assert(c->owner && c->state == CONTENDER_HELD);
    void *owner = contender_forget_owner(c);
    clave__client_note_loss(c->client, why);
    contender_begin_leaving(c, remove);
    if (why == CLAVE_ESILENT) {
        c->leaving.must_delete = true;
        clave__client_timer_set(c->client, &c->acquire.pause, clave__contender_silence_over(c));
    }
    c->events->lost(owner, why);
}

/* The place is gone, or belonged to another session (pass `remove` to delete the node): joins
 * again. */
static void contender_start_over(struct contender *c, bool remove)
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
    if (c->owner && c->state == CONTENDER_HELD)
        contender_lose(c, CLAVE_ECLOSED, false);
    else if (c->owner)
        contender_fail_with(c, CLAVE_ECLOSED, false);
}

/* ---- our turn ---------------------------------------------------------------------------------
 *
 * What a waiting contender concludes from listings, events and confirmations. P1 to P6 are the
 * rewrites of Curator's steps that docs/evidence/queues.md derives. */

/* Room for "_c_" + uuid + "-" before the given name, and for the number after it. */
enum { PROTECTED_LEN = 40, NUMBER_LEN = 11, FOREIGN_NAME_LEN = 64 };

static int64_t contender_turn_min_valid_ms(const struct contender *c)
{
    int64_t timeout = clave_async_client_session_timeout(c->client);
    int64_t ms = c->spec->min_valid_ms ? c->spec->min_valid_ms : timeout / 8;
    /* More than half of what a fresh proof yields cannot be promised for long. */
    int64_t most = clave__client_best_hold(c->client) / 2;
    most = most > 1 ? most : 1;
    return ms < most ? ms : most;
}

/* From when we are next in line, heartbeats have to pass the leader, so that the deadline is fresh
 * when our turn comes. */
static void contender_turn_start_hold(struct contender *c)
{
    if (c->grant.holding)
        return;
    c->grant.hold.path = c->node.watch.path;
    c->grant.holding = true;
    clave__client_hold(c->client, &c->grant.hold);
}

/* In HELD: reads our node, and watches it. Any error other than ENOMEM means that the hold
 * has ended already. */
static void contender_turn_look(struct contender *c)
{
    if (clave__node_watch_read(&c->node.watch) == CLAVE_ENOMEM)
        clave__contender_check_later(c);
}

/* Makes a holder watch its node once it has held for a while, since on a standalone server nothing
 * else would report that the node is gone. */
static void contender_turn_watch_own(struct contender *c)
{
    if (c->state == CONTENDER_HELD && c->grant.hold.settled &&
        !clave__node_watch_is_armed(&c->node.watch))
        contender_turn_look(c);
}

static void contender_turn_grant(struct contender *c)
{
    assert(c->owner && c->node.session_id != 0);
    contender_enter(c, CONTENDER_HELD);
    clave__contender_limit(c, c->spec->max_hold_ms);
    /* Watch at once: somebody may have asked for it before we held it, or, in a race, another
     * contender may create the name as soon as it is free, and the check in a heartbeat would
     * notice nothing. */
    if (c->spec->revocable || c->acquire.race)
        contender_turn_look(c);
    else
        contender_turn_watch_own(c);
    c->events->held(c->owner);
}

/* By the queue it is our turn, or there is no queue. It remains to check that the session is still
 * that of our node, and that its deadline is far enough away. */
static void contender_turn_has_come(struct contender *c)
{
    assert(c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING);
    if (clave_async_client_session_id(c->client) != c->node.session_id) {
        contender_start_over(c, false);
        return;
    }
    if (clave__contender_must_write_handed(c))
        return;
    contender_turn_start_hold(c);
    int64_t enough = clave__client_now(c->client) + contender_turn_min_valid_ms(c);
    if (clave_async_client_hold_deadline(c->client) >= enough) {
        contender_turn_grant(c);
        return;
    }
    if (c->state != CONTENDER_CONFIRMING)
        contender_enter(c, CONTENDER_CONFIRMING);
    list_remove(&c->grant.confirm.link);
    clave__client_await_confirm(c->client, &c->grant.confirm);
    clave__client_confirm(c->client);
}

static void contender_turn_on_confirmed(struct confirm_waiter *w)
{
    struct contender *c = LIST_ENTRY(w, struct contender, grant.confirm);
    clave__contender_begin(c);
    list_remove(&w->link);
    /* if it was not seen, a reconnect has moved the deadline, and its RECONNECTED is still to come
     */
    if (c->state == CONTENDER_CONFIRMING && c->node.seen)
        contender_turn_has_come(c);
    clave__contender_end(c);
}

/* ---- listings -------------------------------------------------------------------------------- */

static void contender_turn_on_listed(clave_async_client *client, const clave_result *res, void *arg)
{
    struct contender *c = arg;
    c->queue.listing = false;
    if (c->state == CONTENDER_WAITING) {
        c->queue.listed_on = clave_async_client_connection(client);
        if (res->err == CLAVE_ENONODE)
            contender_start_over(c, false); /* the parent, a container, was removed by the server */
        else if (res->err != CLAVE_OK)
            contender_retry_or_fail(c, res->err);
        else if (c->node.seen)
            contender_turn_by_listing(c, res->names, res->nnames);
    }
    clave__contender_end(c);
}

/* The watch to set with a listing; only a contender that waits for others needs one. */
static clave_async_watch *contender_turn_children_watch(const struct contender *c)
{
    bool waits =
        c->queue.children && !c->acquire.trying && !clave_async_watch_is_armed(c->queue.children);
    return waits ? c->queue.children : NULL;
}

static clave_err contender_turn_list(struct contender *c)
{
    /* An event arrives before any reply that shows a later state, so a pending listing will show
     * what we have just learnt. */
    if (c->queue.listing)
        return CLAVE_OK;
    clave_err err = clave_async_children(c->client, c->spec->path, contender_turn_children_watch(c),
                                         contender_turn_on_listed, c);
    if (err != CLAVE_OK)
        return err;
    c->queue.listing = true;
    c->busy++;
    return CLAVE_OK;
}

/* The place may have changed since the newest listing: requests another one. */
static void contender_turn_list_again(struct contender *c)
{
    clave_err err = contender_turn_list(c);
    if (c->place)
        c->place->listed_on = 0;
    if (err != CLAVE_OK)
        clave__contender_fail(c, err);
}

static void contender_turn_check(struct contender *c)
{
    assert(c->state == CONTENDER_WAITING);
    clave_err err = c->node.seen ? CLAVE_OK : clave__node_watch_read(&c->node.watch);
    if (err == CLAVE_OK && !c->acquire.race)
        err = contender_turn_list(c);
    if (err != CLAVE_OK)
        clave__contender_fail(c, err);
}

/* P3, P4: watches three nodes at the same time: our predecessor (its end means our turn), our own
 * node (its end must not be missed), and the node before the predecessor (its end makes the
 * predecessor the holder; a listing off the critical path then shows that the predecessor is the
 * only one before us). */
static clave_err contender_turn_watch_predecessors(struct contender *c,
                                                   const struct queue_order_place *at)
{
    const char *dir = c->spec->path;
    clave_err err = clave__node_watch_move(&c->queue.predecessor, dir, at->predecessor);
    if (err == CLAVE_OK)
        err = clave__node_watch_move(&c->node.watch, dir, clave__path_name(c->node.watch.path));
    if (err == CLAVE_OK && at->before_predecessor)
        err = clave__node_watch_move(&c->queue.before_predecessor, dir, at->before_predecessor);
    else
        clave__node_watch_clear(&c->queue.before_predecessor);
    return err;
}

/* For a counted one: the listing itself sets the watch on the children, so that no change in
 * between goes unseen. The listing sent with the create sets none, because few contenders have to
 * wait. */
static clave_err contender_turn_watch_children(struct contender *c)
{
    clave_err err =
        clave__node_watch_move(&c->node.watch, c->spec->path, clave__path_name(c->node.watch.path));
    return err == CLAVE_OK && contender_turn_children_watch(c) ? contender_turn_list(c) : err;
}

static struct queue_order_place contender_turn_find_place(const struct contender *c,
                                                          const char *const *names, size_t n)
{
    const struct contender_spec *spec = c->spec;
    struct queue_order_place at =
        clave__queue_order_locate(spec->rule, names, n, clave__path_name(c->node.watch.path));
    if (spec->counted) {
        /* Every child counts, contender or not, in any order. For a try, and for a place that was
         * found (semaphore.c), only those before it and those without a number count, since
         * a later one may be waiting for this one, or be a try that is refused because of it. So
         * the holder that was created last has counted every other holder. */
        bool ranked = (spec->only_found || c->acquire.trying) && !at.exhausted;
        size_t inside = ranked ? at.ahead + at.unnumbered + 1 : at.contenders;
        at.ahead = inside > spec->limit ? inside - spec->limit : 0;
        at.exhausted = false;
    }
    return at;
}

/* Our node is gone while we wait. */
static void contender_turn_anew(struct contender *c)
{
    if (!clave__contender_handed_is_over(c) &&
        (c->spec->owner_decides || (c->place && c->place->final)))
        contender_fail_with(c, CLAVE_ENONODE, false);
    else
        contender_start_over(c, false);
}

void clave__contender_explain_busy(clave_async_client *c, const char *path, size_t len,
                                   size_t owners, size_t before)
{
    char what[CLIENT_FAULT_CAP];
    snprintf(what, sizeof what,
             "%.*s was not acquired: ", (int)(len < sizeof what ? len : sizeof what), path);
    clave__client_fault_of(c, CLAVE_EBUSY, what, "%zu %s, %zu before it", owners,
                           owners == 1 ? "owner" : "owners", before);
}

/* Forgets that the predecessor was left over if another node is now before us. Returns true if that
 * has changed. */
static bool contender_turn_forget_left_over(struct contender *c, const struct queue_order_place *at)
{
    bool same = at->predecessor &&
                clave__path_is_child(c->queue.predecessor.path, c->spec->path, at->predecessor);
    if (same || !c->queue.left_over)
        return false;
    c->queue.left_over = false;
    return true;
}

/* In WAITING: decides from this listing whether it is our turn; contender_turn_check requests a new
 * listing. */
static void contender_turn_by_listing(struct contender *c, const char *const *names, size_t n)
{
    assert(c->state == CONTENDER_WAITING && c->node.seen && !c->acquire.race);
    struct queue_order_place at = contender_turn_find_place(c, names, n);
    /* Once per recipe object. At a path of leases all children count, whatever their names. */
    bool *warned = c->spec->warned_of_kazoo;
    if (warned && !*warned && !c->spec->counted)
        *warned = clave__kazoo_warn(clave__client_log(c->client), c->spec->path, names, n);
    if (!at.found) {
        c->acquire.failures++;
        contender_turn_anew(c);
        return;
    }
    if (at.exhausted) {
        clave__client_fault(c->client,
                            "the sequence counter of %s is used up: use another path, or "
                            "delete it when nobody queues there",
                            c->spec->path);
        clave__contender_fail(c, CLAVE_ESEQUENCE);
        return;
    }
    c->acquire.failures = 0;
    bool moved = contender_turn_forget_left_over(c, &at) || at.ahead != c->queue.ahead;
    if (c->place && c->place->listed_on != c->queue.listed_on) {
        c->place->listed_on = c->queue.listed_on;
        moved = true; /* another process may have had the session since the previous listing */
    }
    c->queue.ahead = at.ahead;
    c->queue.others_seen_on = at.ahead > 0 ? c->queue.listed_on : 0;
    c->queue.plain = at.plain;
    if (at.ahead == 0) {
        contender_turn_has_come(c);
        return;
    }
    if (c->acquire.trying && !c->spec->owner_decides) {
        if (!c->queue.children)
            clave__contender_explain_busy(c->client, c->spec->path, strlen(c->spec->path),
                                          at.owners, at.before);
        clave__contender_fail(c, CLAVE_EBUSY);
        return;
    }
    clave_err err = CLAVE_OK;
    if (c->queue.children && !c->acquire.trying)
        err = contender_turn_watch_children(c);
    else if (!c->acquire.trying) /* a try whose owner decides requests nothing more */
        err = contender_turn_watch_predecessors(c, &at);
    if (err != CLAVE_OK) {
        clave__contender_fail(c, err);
        return;
    }
    if (at.ahead == 1)
        contender_turn_start_hold(c);
    if (moved)
        c->events->moved(c->owner);
}

/* ---- our own node ---------------------------------------------------------------------------- */

static void contender_turn_node_gone(struct contender *c)
{
    if (c->state == CONTENDER_HELD)
        contender_lose(c, CLAVE_ENONODE, false);
    else if (c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING)
        contender_turn_anew(c);
}

static void contender_turn_own_found(struct contender *c, const clave_stat *stat)
{
    if (!stat || stat->ephemeral_owner != c->node.session_id) {
        contender_start_over(c, false); /* it is another client's, or about to vanish */
        return;
    }
    bool news = !c->node.seen;
    c->node.seen = true;
    c->node.token = stat->czxid;
    if (c->acquire.race)
        contender_turn_has_come(c);
    else if (news)
        contender_turn_list_again(c);
}

/* Curator's request has replaced what our node says about its owner: writes that again, with a mark
 * that it was asked to release. */
static void contender_turn_restore(struct contender *c, int32_t version)
{
    const clave_identity asked = {.asked = true};
    size_t n;
    const void *data = clave__contender_data(c, &n);
    char *more = NULL;
    if (clave__identity_is_form(data, n) && !c->spec->rule->unprotected)
        data = more = clave__identity_extend(c->mem, data, n, &asked, &n);
    if (data && n > 0 && !clave__identity_is_request(data, n) &&
        clave_async_set(c->client, c->node.watch.path, data, n, version, NULL, NULL) == CLAVE_OK)
        c->grant.restored = version + 1;
    clave__mem_free(c->mem, more);
}

/* Our node was read while held. A write to it by another client can only be a request to release:
 * Curator's is "__REVOKE__" for a lock; clave's keeps the data, for a leader unchanged, so that
 * others still see its id. */
static void contender_turn_held_seen(struct contender *c, const clave_result *res)
{
    int32_t version = res->stat ? res->stat->version : 0;
    bool request = clave__identity_is_request(res->data, res->len);
    bool asked = c->grant.asked_before;
    c->acquire.failures = 0;
    c->grant.asked_before = false;
    if (!asked && (version == 0 || (version == c->grant.restored && !request)))
        return;
    if (request)
        contender_turn_restore(c, version);
    if (c->spec->revocable)
        c->events->asked(c->owner);
}

static void contender_turn_on_own_reply(struct node_watch *w, const clave_result *res)
{
    struct contender *c = LIST_ENTRY(w, struct contender, node.watch);
    clave__contender_begin(c);
    bool rival = c->acquire.race && res->err == CLAVE_OK && res->stat->czxid != c->node.token;
    if (res->err == CLAVE_ENONODE || rival)
        contender_turn_node_gone(c);
    else if (c->state == CONTENDER_WAITING && res->err == CLAVE_OK)
        contender_turn_own_found(c, res->stat);
    else if (c->state == CONTENDER_WAITING)
        contender_retry_or_fail(c, res->err);
    else if (c->state == CONTENDER_HELD && res->err == CLAVE_OK)
        contender_turn_held_seen(c, res);
    else if (c->state == CONTENDER_HELD && clave_err_classify(res->err) != CLAVE_CLASS_FINAL)
        clave__contender_check_later(c);
    clave__contender_end(c);
}

/* The watch fired but the node still exists: somebody wrote to it. Watch it again. */
static void contender_turn_watch_again(struct contender *c, struct node_watch *w)
{
    clave_err err = clave__node_watch_read(w);
    if (err != CLAVE_OK && c->state == CONTENDER_WAITING)
        clave__contender_fail(c, err);
}

static void contender_turn_on_own_event(struct node_watch *w, const clave_event *ev)
{
    struct contender *c = LIST_ENTRY(w, struct contender, node.watch);
    clave__contender_begin(c);
    if (ev->type == CLAVE_EVENT_DELETED)
        contender_turn_node_gone(c);
    else if (c->state == CONTENDER_HELD)
        contender_turn_look(c);
    else if (c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING)
        contender_turn_watch_again(c, w);
    clave__contender_end(c);
}

static void contender_turn_on_node_missing(struct hold *h)
{
    struct contender *c = LIST_ENTRY(h, struct contender, grant.hold);
    clave__contender_begin(c);
    contender_turn_node_gone(c);
    clave__contender_end(c);
}

static void contender_turn_on_hold_settled(struct hold *h)
{
    struct contender *c = LIST_ENTRY(h, struct contender, grant.hold);
    clave__contender_begin(c);
    contender_turn_watch_own(c);
    clave__contender_end(c);
}

/* ---- the nodes before us --------------------------------------------------------------------- */

/* P3: true if the end of the only known predecessor makes it our turn without a listing. Sequence
 * numbers only grow, so nobody can have come in before us since, and the end of our own node would
 * have been reported earlier. All of this holds only within one connection. */
static bool contender_turn_may_take_over(const struct contender *c, const clave_event *ev)
{
    uint64_t connection = clave_async_client_connection(c->client);
    return c->queue.ahead == 1 && c->queue.plain && !c->spec->strict && !c->spec->rule->overtaken &&
           c->node.seen && clave__node_watch_is_armed(&c->node.watch) &&
           ev->connection == connection && c->queue.listed_on == connection &&
           c->node.watch.connection == connection &&
           c->queue.predecessor.connection == connection &&
           clave_async_client_session_id(c->client) == c->node.session_id;
}

static void contender_turn_on_predecessor_event(struct node_watch *w, const clave_event *ev)
{
    struct contender *c = LIST_ENTRY(w, struct contender, queue.predecessor);
    clave__contender_begin(c);
    if (c->state == CONTENDER_WAITING) {
        if (ev->type != CLAVE_EVENT_DELETED)
            contender_turn_watch_again(c, w);
        else if (contender_turn_may_take_over(c, ev))
            contender_turn_has_come(c);
        else
            contender_turn_list_again(c);
    }
    clave__contender_end(c);
}

/* Handles the answer to a read of the predecessor: is its node left over? Returns true if that has
 * changed. */
static bool contender_predecessor_left_over(struct contender *c, const clave_stat *stat)
{
    bool was = c->queue.left_over;
    c->queue.left_over = clave__queue_node_is_left_over(stat);
    return c->queue.left_over != was;
}

const char *clave__contender_left_over(const struct contender *c)
{
    return c->queue.left_over ? c->queue.predecessor.path : NULL;
}

/* As in Curator, watch with getData rather than exists, so that no watch remains on a node that is
 * already gone. A listing decides what it means that a node is gone. */
static void contender_turn_predecessor_replied(struct contender *c, const clave_result *res)
{
    clave__contender_begin(c);
    if (c->state == CONTENDER_WAITING && res->err == CLAVE_ENONODE)
        contender_turn_list_again(c);
    else if (c->state == CONTENDER_WAITING && res->err != CLAVE_OK)
        contender_retry_or_fail(c, res->err);
    clave__contender_end(c);
}

/* A listing costs one request however long the queue is, but does not tell whose the nodes are. For
 * the predecessor, the read that sets the watch tells. */
static void contender_turn_on_predecessor_reply(struct node_watch *w, const clave_result *res)
{
    struct contender *c = LIST_ENTRY(w, struct contender, queue.predecessor);
    clave__contender_begin(c);
    if (c->state == CONTENDER_WAITING && res->err == CLAVE_OK &&
        contender_predecessor_left_over(c, res->stat))
        c->events->moved(c->owner);
    else
        contender_turn_predecessor_replied(c, res);
    clave__contender_end(c);
}

static void contender_turn_on_before_predecessor_reply(struct node_watch *w,
                                                       const clave_result *res)
{
    contender_turn_predecessor_replied(LIST_ENTRY(w, struct contender, queue.before_predecessor),
                                       res);
}

static void contender_turn_on_before_predecessor_event(struct node_watch *w, const clave_event *ev)
{
    struct contender *c = LIST_ENTRY(w, struct contender, queue.before_predecessor);
    clave__contender_begin(c);
    if (c->state == CONTENDER_WAITING) {
        if (ev->type == CLAVE_EVENT_DELETED)
            contender_turn_list_again(c);
        else
            contender_turn_watch_again(c, w);
    }
    clave__contender_end(c);
}

static void contender_turn_on_children_event(clave_async_client *client, clave_async_watch *w,
                                             const clave_event *ev, void *arg)
{
    (void)client;
    (void)w;
    struct contender *c = arg;
    /* CLAVE_EVENT_LOST is handled by the state listener */
    if (ev->type == CLAVE_EVENT_LOST || c->state != CONTENDER_WAITING)
        return;
    clave__contender_begin(c);
    contender_turn_list_again(c);
    clave__contender_end(c);
}

/* ---- no queue: another contender's node exists ----------------------------------------------- */

/* In STANDING_BY: reads and watches the other contender's node. */
static void contender_race_look(struct contender *c)
{
    assert(c->state == CONTENDER_STANDING_BY);
    clave_err err = clave__node_watch_read(&c->queue.predecessor);
    if (err != CLAVE_OK)
        clave__contender_fail(c, err);
}

static void race_stand_by(struct contender *c)
{
    assert(c->acquire.race);
    if (c->acquire.trying) {
        clave__contender_fail(c, CLAVE_EBUSY);
        return;
    }
    contender_enter(c, CONTENDER_STANDING_BY);
    c->queue.others_seen_on = clave_async_client_connection(c->client);
    clave_err err = clave__node_watch_set(&c->queue.predecessor, c->spec->stem, NULL);
    if (err == CLAVE_OK)
        contender_race_look(c);
    else
        clave__contender_fail(c, err);
}

static void contender_race_rival_reply(struct node_watch *w, const clave_result *res)
{
    struct contender *c = LIST_ENTRY(w, struct contender, queue.predecessor);
    clave__contender_begin(c);
    if (c->state != CONTENDER_STANDING_BY) {
        /* it was requested in an earlier state, or the contender was given up */
    } else if (res->err == CLAVE_ENONODE) {
        contender_join_again(c);
    } else if (res->err != CLAVE_OK) {
        contender_retry_or_fail(c, res->err);
    } else {
        c->acquire.failures = 0;
        bool news = contender_predecessor_left_over(c, res->stat) || c->queue.ahead != 1;
        c->queue.ahead = 1; /* all others wait as we do, in no order */
        c->queue.others_seen_on = clave_async_client_connection(c->client);
        if (news)
            c->events->moved(c->owner);
    }
    clave__contender_end(c);
}

/* The rival's node has changed: tries again if it was deleted, otherwise looks again. */
static void contender_race_rival_event(struct node_watch *w, const clave_event *ev)
{
    struct contender *c = LIST_ENTRY(w, struct contender, queue.predecessor);
    clave__contender_begin(c);
    if (c->state == CONTENDER_STANDING_BY && ev->type == CLAVE_EVENT_DELETED) {
        contender_join_again(c);
    } else if (c->state == CONTENDER_STANDING_BY) {
        /* it was written to, or it was deleted and created again while we were not connected */
        contender_race_look(c);
    }
    clave__contender_end(c);
}

void clave__contender_race_delay(struct contender *c)
{
    if (c->acquire.race)
        clave__client_timer_set(c->client, &c->acquire.pause,
                                clave__client_now(c->client) + LET_OTHERS_MS);
}

/* ---- the answers to JOINING's create --------------------------------------------------------- */

static void contender_join_failed(struct contender *c, clave_err err)
{
    assert(c->state == CONTENDER_JOINING && err != CLAVE_OK);
    if (c->acquire.race && err == CLAVE_ENODEEXISTS) {
        race_stand_by(c);
        return;
    }
    /* A server with a restored directory gives out no places yet. A try does not wait for that, and
     * nobody knows who holds the lock. */
    if (c->acquire.trying && err == CLAVE_EOPTIMEOUT) {
        clave__contender_fail(c, clave__contender_not_in_time(c));
        return;
    }
    /* The session ended during the request, or the server removed the parent between its creation
     * and ours; in either case it is proven that there is no node. After any other error of class
     * UNKNOWN, trying again could leave a node whose name we do not know. */
    bool handed = err == CLAVE_ENONODE && clave__contender_handed_is_over(c);
    bool only_found = c->spec->only_found || (c->place && c->place->at);
    bool anew = handed || (err == CLAVE_ENONODE && !only_found) ||
                clave_err_classify(err) == CLAVE_CLASS_RETRY;
    if (!anew) {
        clave__contender_fail(c, err);
        return;
    }
    c->acquire.failures++;
    contender_start_over(c, false);
}

static void contender_joined(struct contender *c, const clave_stat *stat, const char *const *names,
                             size_t n)
{
    assert(c->state == CONTENDER_JOINING);
    c->node.session_id = clave_async_client_session_id(c->client);
    c->node.seen = stat && stat->ephemeral_owner == c->node.session_id;
    c->node.token = stat ? stat->czxid : 0;
    contender_enter(c, CONTENDER_WAITING);
    /* CURATOR-604: a node of a session that is over is about to vanish, and is never ours */
    if (stat && !c->node.seen)
        contender_start_over(c, !c->acquire.race);
    else if (c->acquire.race)
        contender_turn_has_come(c);
    else if (c->node.seen && names) {
        c->queue.listed_on = clave_async_client_connection(c->client);
        contender_turn_by_listing(c, names, n);
    } else
        contender_turn_check(c);
}

/* ---- the create in a queue, or of the single node -------------------------------------------- */

static void contender_on_created(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    bool created = res->err == CLAVE_OK;
    if (created && clave__node_watch_set(&c->node.watch, res->path, NULL) != CLAVE_OK) {
        /* the name is longer than any that ZooKeeper makes, and there is no memory for it */
        contender_remove_node(c, res->path);
        c->leaving.must_delete = false;
        created = false;
        if (c->state == CONTENDER_JOINING)
            clave__contender_fail(c, CLAVE_ENOMEM);
    } else if (c->state == CONTENDER_JOINING) {
        if (created)
            contender_joined(c, res->stat, res->names, res->nnames);
        else
            contender_join_failed(c, res->err);
    } else if (created) {
        c->node.token = res->stat->czxid;
        contender_give_up_node(c);
    }
    clave__contender_end(c);
}

static clave_err contender_submit_create(struct contender *c)
{
    const struct contender_spec *spec = c->spec;
    clave_create_options o = {
        .size = sizeof o,
        .mode = c->acquire.race ? CLAVE_EPHEMERAL : CLAVE_EPHEMERAL_SEQUENTIAL,
        .flags = CLAVE_CREATE_PARENTS |
                 (spec->rule->unprotected ? CLAVE_CREATE_CERTAIN : CLAVE_CREATE_PROTECTED),
        .acls = spec->acls,
        .nacls = spec->nacls,
        .with_names = !c->acquire.race,
    };
    size_t len;
    const void *data = clave__contender_data(c, &len);
    struct queue_place *place = spec->rule->unprotected ? NULL : c->place;
    const char *chosen = place ? place->uuid : c->uuid;
    char uuid[CLAVE_UUID_TEXT + 1];
    if (chosen) { /* if there are several, each has a name of its own that is derived from the
                     chosen one */
        memcpy(uuid, chosen, sizeof uuid);
        clave__uuid_mix(uuid, c->nth, 0);
    }
    struct client_named_create n = {.path = spec->stem,
                                    .data = data,
                                    .len = len,
                                    .o = &o,
                                    .uuid = chosen ? uuid : NULL,
                                    .search = place && place->search,
                                    .only_found = place && spec->only_found,
                                    .at = place ? place->at : NULL,
                                    .once = c->acquire.trying,
                                    .below = place ? place->below : NULL,
                                    .excludes = place ? place->excludes : NULL,
                                    .excludes_arg = place,
                                    .stake = &c->leaving.stake};
    c->leaving.stake = (struct create_stake){0};
    return clave__client_create_named(c->client, &n, contender_on_created, c);
}

/* ---- a downgrade ----------------------------------------------------------------------------- */

clave_err clave__contender_downgrade(struct contender *c, const char *node)
{
    assert(!c->downgrade.node);
    const struct contender_spec *spec = c->spec;
    const char *number = clave__queue_order_key(spec->rule, clave__path_name(node)).text;
    char prefix[CLAVE_PROTECTED_PREFIX + 1];
    size_t dir = (size_t)(clave__path_name(spec->stem) - spec->stem);
    size_t nnode = strlen(node) + 1;
    size_t nown = strlen(spec->stem) + CLAVE_PROTECTED_PREFIX + strlen(number) + 1;
    c->downgrade.node = clave__mem_alloc(c->mem, nnode + nown);
    if (!c->downgrade.node) {
        contender_free(c);
        return CLAVE_ENOMEM;
    }
    clave__client_protect(c->client, prefix);
    memcpy(c->downgrade.node, node, nnode);
    snprintf(c->downgrade.node + nnode, nown, "%.*s%s%s%s", (int)dir, spec->stem, prefix,
             spec->stem + dir, number);
    c->downgrade.own = c->downgrade.node + nnode;
    return CLAVE_OK;
}

static void downgrade_created(struct contender *c, int64_t zxid)
{
    c->node.session_id = clave_async_client_session_id(c->client);
    c->node.seen = true;
    c->node.token = zxid;
    contender_enter(c, CONTENDER_WAITING);
    contender_turn_has_come(c);
}

/* The node may exist. Reading it tells whether it does, and whose it is. */
static void downgrade_unknown(struct contender *c, clave_err err)
{
    c->node.session_id = clave_async_client_session_id(c->client);
    contender_enter(c, CONTENDER_WAITING);
    if (err == CLAVE_ENODEEXISTS)
        contender_turn_check(c);
    else
        contender_retry_or_fail(c, err);
}

static void downgrade_on_created(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    bool may_stand = res->err == CLAVE_OK || res->err == CLAVE_ENODEEXISTS ||
                     clave_err_classify(res->err) == CLAVE_CLASS_UNKNOWN;
    if (c->state != CONTENDER_JOINING) {
        if (may_stand)
            contender_remove_node(c, c->node.watch.path); /* it was given up in the meantime */
    } else if (res->err == CLAVE_OK) {
        downgrade_created(c, res->zxid);
    } else if (may_stand) {
        downgrade_unknown(c, res->err);
    } else {
        if (res->err == CLAVE_ENONODE) {
            /* the write node is gone: join with a place of our own at the end of the queue */
            clave__mem_free(c->mem, c->downgrade.node);
            c->downgrade.node = NULL;
            c->downgrade.own = NULL;
        }
        contender_join_failed(c, res->err);
    }
    clave__contender_end(c);
}

static clave_err downgrade_submit(struct contender *c)
{
    assert(c->downgrade.node && c->downgrade.own);
    const struct contender_spec *spec = c->spec;
    size_t len;
    const void *data = clave__contender_data(c, &len);
    /* The create comes first: if both fail, its error is the one we need. */
    const clave_op ops[] = {
        {.kind = CLAVE_OP_CREATE,
         .path = c->downgrade.own,
         .data = data,
         .len = len,
         .mode = CLAVE_EPHEMERAL,
         .acls = spec->acls,
         .nacls = spec->nacls},
        {.kind = CLAVE_OP_CHECK, .path = c->downgrade.node, .version = -1},
    };
    clave_err err = clave__node_watch_set(&c->node.watch, c->downgrade.own, NULL);
    return err == CLAVE_OK ? clave_async_multi(c->client, ops, 2, downgrade_on_created, c) : err;
}

/* ---- a look before a try to write ------------------------------------------------------------ */

static void contender_look_failed(struct contender *c, clave_err err)
{
    assert(c->state == CONTENDER_LOOKING);
    clave__contender_fail(c, clave__err_passes(err) ? clave__contender_not_in_time(c) : err);
}

static void contender_on_synced(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    clave_err err = res->err == CLAVE_OK ? c->acquire.unlisted : res->err;
    if (c->state == CONTENDER_LOOKING && err != CLAVE_OK)
        contender_look_failed(c, err);
    clave__contender_end(c);
}

static void contender_looked(struct contender *c, const char *const *names, size_t n)
{
    const char *path = c->spec->path;
    struct queue_order_place end = clave__queue_order_at_end(c->spec->rule, names, n);
    if (end.ahead == 0) {
        contender_join_again(c);
        return;
    }
    c->queue.others_seen_on = clave_async_client_connection(c->client);
    clave__contender_explain_busy(c->client, path, strlen(path), end.owners, end.before);
    clave__contender_fail(c, CLAVE_EBUSY);
}

static void contender_on_looked(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct contender *c = arg;
    if (c->state == CONTENDER_LOOKING && res->err != CLAVE_OK && res->err != CLAVE_ENONODE)
        contender_look_failed(c, res->err);
    else if (c->state == CONTENDER_LOOKING)
        contender_looked(c, res->names, res->nnames);
    clave__contender_end(c);
}

/* Lists the queue behind a sync, since a lagging member might still list a node that is gone. */
static clave_err contender_submit_look(struct contender *c)
{
    clave_err err = clave_async_sync(c->client, c->spec->path, contender_on_synced, c);
    if (err != CLAVE_OK)
        return err;
    c->busy++;
    contender_enter(c, CONTENDER_LOOKING);
    err = clave_async_children(c->client, c->spec->path, NULL, contender_on_looked, c);
    c->acquire.unlisted = err;
    c->busy += err == CLAVE_OK;
    return CLAVE_OK; /* contender_on_synced reports why the listing was not sent */
}

/* ---- joining --------------------------------------------------------------------------------- */

static clave_err contender_submit_join(struct contender *c)
{
    assert(c->owner);
    if (clave__client_is_handing_over(c->client))
        return CLAVE_ECLOSED;
    const struct contender_spec *spec = c->spec;
    /* A place that may exist already is searched for: a look would find that place itself. */
    bool found = spec->only_found || (c->place && (c->place->search || c->place->at));
    if (c->state == CONTENDER_IDLE && c->acquire.trying && spec->rule->overtaken &&
        !c->downgrade.node && !found)
        return contender_submit_look(c);
    clave_err err = c->downgrade.node ? downgrade_submit(c) : contender_submit_create(c);
    if (err != CLAVE_OK)
        return err;
    c->busy++;
    contender_enter(c, CONTENDER_JOINING);
    return CLAVE_OK;
}

/* Goes to JOINING from a state without a node of ours; fails if the create
 * cannot be submitted. */
static void contender_join_again(struct contender *c)
{
    clave_err err = contender_submit_join(c);
    if (err != CLAVE_OK)
        clave__contender_fail(c, err);
}

clave_err clave__contender_join(struct contender *c, int64_t deadline)
{
    c->acquire.joined = clave__client_now(c->client);
    c->acquire.trying = deadline <= c->acquire.joined;
    /* the pause of _race_delay lets others come first */
    clave_err err = c->acquire.pause.armed ? CLAVE_OK : contender_submit_join(c);
    if (err != CLAVE_OK) {
        contender_free(c);
        return err;
    }
    if (!c->acquire.trying && deadline != CLAVE_NEVER)
        clave__client_timer_set(c->client, &c->acquire.limit, deadline);
    return CLAVE_OK;
}

/* ---- events of session, connection and time -------------------------------------------------- */

static void contender_on_reconnected(struct contender *c)
{
    /* We were first, but a reconnect may have reordered events, so look again. */
    if (c->state == CONTENDER_CONFIRMING)
        contender_enter(c, CONTENDER_WAITING);
    if (c->state == CONTENDER_WAITING) {
        list_remove(&c->grant.confirm.link);
        contender_turn_check(c);
    }
    if (c->state == CONTENDER_STANDING_BY)
        contender_race_look(c);
    /* From here on even a short hold watches its node. While connections are short, each moves the
     * deadline and ends before a heartbeat is due, so no heartbeat would notice that it is gone. */
    if (c->state == CONTENDER_HELD)
        clave__client_settle_hold(&c->grant.hold);
}

static void contender_on_session_lost(struct contender *c, clave_err why)
{
    c->leaving.must_delete = false;
    if (c->state == CONTENDER_HELD)
        contender_lose(c, why == CLAVE_OK ? CLAVE_EEXPIRED : why, false);
    else if (c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING)
        contender_start_over(c, false);
    /* a create that is pending is still answered, in whatever session the client has by then */
    if (c->state == CONTENDER_STANDING_BY)
        contender_join_again(c); /* the watch ended with the session */
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
        contender_remove_node(c, c->node.watch.path);
    else if (c->state == CONTENDER_WAITING)
        contender_turn_check(c);
    else if (c->state == CONTENDER_HELD)
        contender_turn_look(c);
    else if (c->state == CONTENDER_IDLE || c->state == CONTENDER_STANDING_BY)
        contender_join_again(c);
    clave__contender_end(c);
}

static void contender_on_limit(struct timer *t, int64_t now)
{
    (void)now;
    struct contender *c = LIST_ENTRY(t, struct contender, acquire.limit);
    clave__contender_begin(c);
    clave_err why = clave__contender_limit_cause(c);
    if (c->state == CONTENDER_HELD)
        contender_lose(c, why, why == CLAVE_EMAXHOLD);
    else
        clave__contender_fail(c, clave__contender_not_in_time(c));
    clave__contender_end(c);
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

/* Frees it; nothing of it may be left at the server or under way. */
static void contender_free(struct contender *c)
{
    assert(list_empty(&c->grant.watchers));
    clave__contender_drop_handed(c);
    struct queue_place *place = c->place;
    list_remove(&c->in_client);
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

/* Allocates the watches, with room for all names that waiting and holding will need, and listens to
 * them. */
static clave_err contender_watches_init(struct contender *c)
{
    size_t own = strlen(c->spec->stem) + PROTECTED_LEN + NUMBER_LEN + 1;
    size_t other = strlen(c->spec->path) + PROTECTED_LEN + FOREIGN_NAME_LEN;
    clave_err err = clave__node_watch_init(&c->node.watch, c->client, c->mem, own);
    if (err == CLAVE_OK)
        err = clave__node_watch_init(&c->queue.predecessor, c->client, c->mem, other);
    if (err == CLAVE_OK)
        err = clave__node_watch_init(&c->queue.before_predecessor, c->client, c->mem, other);
    if (err == CLAVE_OK && c->spec->counted)
        err = clave_async_watch_new(&c->queue.children, c->client, contender_turn_on_children_event,
                                    c);
    c->node.watch.on_reply = contender_turn_on_own_reply;
    c->node.watch.on_event = contender_turn_on_own_event;
    c->queue.predecessor.on_reply =
        c->acquire.race ? contender_race_rival_reply : contender_turn_on_predecessor_reply;
    c->queue.predecessor.on_event =
        c->acquire.race ? contender_race_rival_event : contender_turn_on_predecessor_event;
    c->queue.before_predecessor.on_reply = contender_turn_on_before_predecessor_reply;
    c->queue.before_predecessor.on_event = contender_turn_on_before_predecessor_event;
    c->grant.hold.on_missing = contender_turn_on_node_missing;
    c->grant.hold.on_settled = contender_turn_on_hold_settled;
    c->grant.confirm.on_confirmed = contender_turn_on_confirmed;
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
    list_init(&c->in_client);
    list_init(&c->listener.link);
    list_init(&c->grant.hold.link);
    list_init(&c->grant.confirm.link);
    list_init(&c->grant.watchers);
    c->listener.on_state = contender_on_state;
    clave__timer_init(&c->acquire.limit, contender_on_limit);
    clave__timer_init(&c->acquire.pause, contender_on_pause);
    clave__deadlock_schedule_init(&c->deadlock_schedule, client, contender_on_deadlock);
    clave_err err = contender_watches_init(c);
    if (err == CLAVE_OK)
        err = clave__contender_take_handed(c);
    if (err != CLAVE_OK) {
        contender_free(c);
        return err;
    }
    clave__client_listen(client, &c->listener);
    clave__client_add_contender(client, &c->in_client);
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
    contender_free(c);
    return CLAVE_ENOMEM;
}

/* ---- queries --------------------------------------------------------------------------------- */

void clave__contender_recount(struct contender *c)
{
    clave__contender_begin(c);
    if (c->state == CONTENDER_WAITING)
        contender_turn_check(c);
    clave__contender_end(c);
}

clave_err clave__contender_not_in_time(const struct contender *c)
{
    bool first = c->state == CONTENDER_CONFIRMING || c->state == CONTENDER_HELD;
    return clave__client_not_in_time(c->client, first ? 0 : c->queue.others_seen_on);
}
