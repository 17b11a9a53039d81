/* contender_turn.c - decides whether it is our turn: what a waiting contender concludes from
 * listings, events and confirmations. P1 to P6 are the rewrites of Curator's steps that
 * docs/evidence/queues.md derives. What must stay true: nothing is granted because of an event or a
 * listing of an earlier attempt. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/deadline.h"
#include "base/path.h"
#include "recipe/contender/contender.h"
#include "recipe/queue/identity.h"
#include "recipe/queue/kazoo.h"
#include "recipe/queue/queue_nodes.h"

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

/* any error other than ENOMEM ends the hold by itself */
void clave__contender_turn_look(struct contender *c)
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
        clave__contender_turn_look(c);
}

static void contender_turn_grant(struct contender *c)
{
    assert(c->owner && c->node.session_id != 0);
    clave__contender_enter(c, CONTENDER_HELD);
    clave__contender_limit(c, c->spec->max_hold_ms);
    /* Watch at once: somebody may have asked for it before we held it, or, in a race, another
     * contender may create the name as soon as it is free, and the check in a heartbeat would
     * notice nothing. */
    if (c->spec->revocable || c->acquire.race)
        clave__contender_turn_look(c);
    else
        contender_turn_watch_own(c);
    c->events->held(c->owner);
}

/* By the queue it is our turn. It remains to check that the session is still that of our node, and
 * that its deadline is far enough away. */
void clave__contender_turn_has_come(struct contender *c)
{
    assert(c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING);
    if (clave_async_client_session_id(c->client) != c->node.session_id) {
        clave__contender_start_over(c, false);
        return;
    }
    contender_turn_start_hold(c);
    int64_t enough = clave__client_now(c->client) + contender_turn_min_valid_ms(c);
    if (clave_async_client_hold_deadline(c->client) >= enough) {
        contender_turn_grant(c);
        return;
    }
    if (c->state != CONTENDER_CONFIRMING)
        clave__contender_enter(c, CONTENDER_CONFIRMING);
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
        clave__contender_turn_has_come(c);
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
            clave__contender_start_over(
                c, false); /* the parent, a container, was removed by the server */
        else if (res->err != CLAVE_OK)
            clave__contender_retry_or_fail(c, res->err);
        else if (c->node.seen)
            clave__contender_turn_by_listing(c, res->names, res->nnames);
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

static void contender_turn_list_again(struct contender *c)
{
    clave_err err = contender_turn_list(c);
    if (err != CLAVE_OK)
        clave__contender_fail(c, err);
}

void clave__contender_turn_check(struct contender *c)
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
         * found (semaphore_acquire.c), only those before it and those without a number count, since
         * a later one may be waiting for this one, or be a try that is refused because of it. Of
         * those that hold, the one created last has then counted all others. */
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
    if (c->spec->owner_decides || (c->place && c->place->final))
        clave__contender_fail_gone(c, CLAVE_ENONODE);
    else
        clave__contender_start_over(c, false);
}

/* Warns once per recipe object. At a path of leases all children count, whatever their names, so
 * there it does not matter. */
static void contender_turn_warn_of_kazoo(const struct contender *c, const char *const *names,
                                         size_t n)
{
    bool *warned = c->spec->warned_of_kazoo;
    if (warned && !*warned && !c->spec->counted)
        *warned = clave__kazoo_warn(clave__client_log(c->client), c->spec->path, names, n);
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

void clave__contender_turn_by_listing(struct contender *c, const char *const *names, size_t n)
{
    assert(c->state == CONTENDER_WAITING && c->node.seen && !c->acquire.race);
    struct queue_order_place at = contender_turn_find_place(c, names, n);
    contender_turn_warn_of_kazoo(c, names, n);
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
        clave__contender_turn_has_come(c);
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
        clave__contender_lose(c, CLAVE_ENONODE, false);
    else if (c->state == CONTENDER_WAITING || c->state == CONTENDER_CONFIRMING)
        contender_turn_anew(c);
}

static void contender_turn_own_found(struct contender *c, const clave_stat *stat)
{
    if (!stat || stat->ephemeral_owner != c->node.session_id) {
        clave__contender_start_over(c, false); /* it is another client's, or about to vanish */
        return;
    }
    bool news = !c->node.seen;
    c->node.seen = true;
    c->node.token = stat->czxid;
    if (c->acquire.race)
        clave__contender_turn_has_come(c);
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
        clave__contender_retry_or_fail(c, res->err);
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
        clave__contender_turn_look(c);
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
            clave__contender_turn_has_come(c);
        else
            contender_turn_list_again(c);
    }
    clave__contender_end(c);
}

bool clave__contender_predecessor_left_over(struct contender *c, const clave_stat *stat)
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
 * already gone. What it means that a node is gone is decided by a listing. */
static void contender_turn_predecessor_replied(struct contender *c, const clave_result *res)
{
    clave__contender_begin(c);
    if (c->state == CONTENDER_WAITING && res->err == CLAVE_ENONODE)
        contender_turn_list_again(c);
    else if (c->state == CONTENDER_WAITING && res->err != CLAVE_OK)
        clave__contender_retry_or_fail(c, res->err);
    clave__contender_end(c);
}

/* A listing does not tell whose the nodes are, and costs one request however long the queue is. The
 * read that sets the watch tells it for the predecessor. */
static void contender_turn_on_predecessor_reply(struct node_watch *w, const clave_result *res)
{
    struct contender *c = LIST_ENTRY(w, struct contender, queue.predecessor);
    clave__contender_begin(c);
    if (c->state == CONTENDER_WAITING && res->err == CLAVE_OK &&
        clave__contender_predecessor_left_over(c, res->stat))
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

/* ---- creating and freeing -------------------------------------------------------------------- */

clave_err clave__contender_turn_init(struct contender *c)
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
        c->acquire.race ? clave__contender_race_rival_reply : contender_turn_on_predecessor_reply;
    c->queue.predecessor.on_event =
        c->acquire.race ? clave__contender_race_rival_event : contender_turn_on_predecessor_event;
    c->queue.before_predecessor.on_reply = contender_turn_on_before_predecessor_reply;
    c->queue.before_predecessor.on_event = contender_turn_on_before_predecessor_event;
    c->grant.hold.on_missing = contender_turn_on_node_missing;
    c->grant.hold.on_settled = contender_turn_on_hold_settled;
    c->grant.confirm.on_confirmed = contender_turn_on_confirmed;
    return err;
}
