/* slot_take.c - a take: finds out whether the id already owns a slot, gets a place in the queue,
 * checks whether there is room, and takes the slot in one transaction. Implements the public API.
 *
 *     LOOKING ──> QUEUEING <──> COUNTING <──> FULL
 *      │  ^ ^         │            │
 *      │  │ │         v            │
 *      │  │ └────── TAKING <───────┘
 *      │  └──> PREPARING (and from COUNTING)
 *      v
 *     FINDING ──> RENEWING ──> ENDED (from every state)
 *
 * Room. A place may take a slot if the owned slots and the places before it together are fewer than
 * the limit. The places before it need not have taken their slots yet: when one of them does, both
 * numbers change by one and the sum stays. So nobody is kept waiting for a slot that nobody else
 * can take, and the limit is never exceeded: among all owners, the one whose place was created last
 * has counted all the others, as owners or as places before it. This requires that the owners were
 * counted after the place was created. An earlier count is good as long as nobody has taken since,
 * which the version of <path>/owners proves.
 *
 * If a place before it takes between the two reads, it could be counted twice or not at all. It is
 * never missed, since the queue is read first. Counting it twice would wrongly refuse a
 * non-blocking take, so such a take reads the queue once more, and counts again if fewer places are
 * before it.
 *
 * What must stay true: the take's node gets its name once, so whatever becomes of the transaction,
 * a read after a sync tells whether it succeeded. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "client/client_for_recipes.h"
#include "recipe/contender/contender.h"
#include "recipe/slots/slot_node.h"
#include "recipe/slots/slots_internal.h"

enum slot_take_state {
    TAKE_LOOKING,   /* does the id own a slot, and is there a limit? */
    TAKE_PREPARING, /* creating the missing nodes */
    TAKE_QUEUEING,  /* its place is being created, or others are before it */
    TAKE_COUNTING,  /* it has a place: is there room? */
    TAKE_FULL,      /* it is the first, but there is no room: an event will show when there is */
    TAKE_TAKING,    /* the transaction is under way */
    TAKE_FINDING,   /* the id owns a slot: reading what it says */
    TAKE_RENEWING,  /* writing that slot again: see slots_internal.h */
    TAKE_ENDED,
};

/* A count: the limit and the owners, read once. */
struct slot_count {
    unsigned pending;
    clave_err err; /* the first error; a missing node is not one */
    int64_t limit; /* as in clave_slots_view */
    int32_t limit_version;
    bool owners_missing;
    int32_t owners_version;
    size_t owned;
    bool own;      /* the id has a node among them */
    char *strange; /* path of a node that is not a slot; NULL: there is none */
    bool watched;
    /* The czxid of the place after whose creation it was read; 0: there was no place. */
    int64_t place;
    size_t before,
        now; /* places before it when the count began and, for a non-blocking take, since then */
};

struct slot_take {
    struct list link; /* in the slots' list until it is answered */
    clave_async_slots *slots;
    uint64_t request;
    enum slot_take_state state;
    clave_slot as; /* its texts follow in the same block */
    char *own;     /* path of the id's slot */
    char *node;    /* path of the node below it that this take creates */
    char *data;    /* content of the slot */
    size_t ndata;
    int64_t deadline;
    bool trying;
    bool canceled;   /* canceled, or its place was deleted: ends as soon as its outcome is known */
    bool again;      /* something has changed, or may have, since it was counted */
    clave_err doubt; /* the error of a transaction that may nevertheless have succeeded; CLAVE_OK:
                        there is none */
    struct slot_count count;
    uint64_t full_on; /* the connection of the newest count, if that found no room; otherwise 0 */
    clave_async_watch *owners_watch, *limit_watch, *own_watch;
    struct client_task news;
    bool news_of_own;
    struct slots_prepare prepare;
    struct contender *place; /* NULL: there is none, or it was lost */
    int64_t spends;          /* the czxid of the place that the transaction deletes */
    struct timer limit;
    struct timer pause;
    struct listener listener;
    unsigned busy;           /* requests of its own under way, not counting those of the count */
    clave_slot slot;         /* the slot that it owns at the end: the one that it took, or */
    struct slot_copy *found; /* one that the id already owned */
    char *below;             /* name of that one's node */
    bool is_mine;            /* that one is ours after all */
    struct client_task due;
    clave_err verdict;
    clave_async_slots_take_cb *cb;
    void *arg;
    char texts[];
};

static void slot_take_look(struct slot_take *t);
static void slot_take_count(struct slot_take *t);

/* ---- states ---------------------------------------------------------------------------------- */

#define TO(state) (1U << TAKE_##state)
static const unsigned moves[] = {
    [TAKE_LOOKING] = TO(PREPARING) | TO(QUEUEING) | TO(COUNTING) | TO(FINDING) | TO(ENDED),
    [TAKE_PREPARING] = TO(LOOKING) | TO(ENDED),
    [TAKE_QUEUEING] = TO(LOOKING) | TO(COUNTING) | TO(TAKING) | TO(ENDED),
    [TAKE_COUNTING] = TO(LOOKING) | TO(PREPARING) | TO(QUEUEING) | TO(COUNTING) | TO(FULL) |
                      TO(TAKING) | TO(FINDING) | TO(ENDED),
    [TAKE_FULL] = TO(LOOKING) | TO(COUNTING) | TO(ENDED),
    [TAKE_TAKING] = TO(LOOKING) | TO(COUNTING) | TO(FINDING) | TO(ENDED),
    [TAKE_FINDING] = TO(LOOKING) | TO(RENEWING) | TO(ENDED),
    [TAKE_RENEWING] = TO(LOOKING) | TO(ENDED),
    [TAKE_ENDED] = 0,
};
#undef TO

/* Changes the state; nothing else does. */
static void slot_take_enter(struct slot_take *t, enum slot_take_state to)
{
    bool allowed = moves[t->state] & (1U << to);
    assert(allowed);
    (void)allowed;
    t->state = to;
}

/* True if what is under way decides how the take ends. */
static bool slot_take_is_committed(const struct slot_take *t)
{
    return t->state == TAKE_TAKING || t->state == TAKE_RENEWING;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void slot_take_free(struct slot_take *t)
{
    const struct clave_mem *mem = t->slots->mem;
    assert(!t->place && t->count.pending == 0);
    clave__client_unlisten(&t->listener);
    list_remove(&t->news.link);
    clave_async_watch_free(t->owners_watch);
    clave_async_watch_free(t->limit_watch);
    clave_async_watch_free(t->own_watch);
    clave__mem_free(mem, t->count.strange);
    clave__mem_free(mem, t->own);
    clave__mem_free(mem, t->node);
    clave__mem_free(mem, t->data);
    clave__mem_free(mem, t->below);
    clave__mem_free(mem, t->found);
    clave__mem_free(mem, t);
}

/* Called after an answer that came too late: frees a take that has ended, unless more answers are
 * to come. */
static void slot_take_settle(struct slot_take *t)
{
    if (t->state != TAKE_ENDED || t->cb || t->busy > 0 || t->count.pending > 0)
        return;
    clave_async_slots *s = t->slots;
    slot_take_free(t);
    clave__slots_drop(s);
}

/* Gives up the place. `spent`: its node is already gone. */
static void slot_take_leave(struct slot_take *t, bool spent)
{
    struct contender *place = t->place;
    t->place = NULL;
    if (place && spent)
        clave__contender_spend(place);
    else if (place)
        clave__contender_leave(place, NULL, NULL);
}

static void slot_take_unwatch(struct slot_take *t)
{
    clave_async_watch_disarm(t->owners_watch);
    clave_async_watch_disarm(t->limit_watch);
    clave_async_watch_disarm(t->own_watch);
    list_remove(&t->news.link);
}

/* Ends the take; the callback runs after this call. */
static void slot_take_answer(struct slot_take *t, clave_err err)
{
    clave_async_client *c = t->slots->client;
    slot_take_enter(t, TAKE_ENDED);
    clave__client_timer_clear(c, &t->limit);
    clave__client_timer_clear(c, &t->pause);
    clave__client_unlisten(&t->listener);
    slot_take_unwatch(t);
    slot_take_leave(t, false);
    bool done = err == CLAVE_OK;
    t->verdict = !done && t->doubt != CLAVE_OK ? t->doubt : err;
    clave__client_later(c, &t->due);
}

static void slot_take_on_due(struct client_task *task)
{
    struct slot_take *t = LIST_ENTRY(task, struct slot_take, due);
    clave_async_slots_take_cb *cb = t->cb;
    bool ok = t->verdict == CLAVE_OK;
    list_remove(&t->link);
    t->cb = NULL;
    t->busy++;
    cb(t->slots, t->verdict, ok ? &t->slot : NULL, ok && !t->found, t->arg);
    t->busy--;
    slot_take_settle(t);
}

/* True if the deadline has passed, perhaps unnoticed while the process was stopped. */
static bool slot_take_is_late(const struct slot_take *t)
{
    return !t->trying && t->deadline <= clave__client_now(t->slots->client);
}

/* The error of a take that ends without a slot. */
static clave_err slot_take_not_in_time(const struct slot_take *t)
{
    if (t->canceled)
        return CLAVE_ECANCELED;
    if (t->state == TAKE_QUEUEING && t->place &&
        clave__contender_not_in_time(t->place) == CLAVE_EBUSY)
        return CLAVE_EBUSY;
    return clave__client_not_in_time(t->slots->client, t->full_on);
}

/* A request failed: tries again a little later, or ends. */
static void slot_take_retry_or_fail(struct slot_take *t, clave_err err)
{
    clave_async_client *c = t->slots->client;
    bool again = clave__err_passes(err) && clave_async_client_state(c) != CLAVE_STATE_CLOSED;
    if (again && (t->canceled || slot_take_is_late(t)))
        slot_take_answer(t, slot_take_not_in_time(t));
    else if (again)
        clave__client_timer_set(c, &t->pause, clave__client_now(c) + SLOTS_PAUSE_MS);
    else
        slot_take_answer(t, err);
}

/* ---- a slot that the id owns ----------------------------------------------------------------- */

/* Ends with a slot. It must not need memory: a slot that was taken cannot be reported as an
 * error. */
static void slot_take_own(struct slot_take *t, int64_t token, int64_t since)
{
    t->slot = t->as;
    t->slot.node = t->node;
    t->slot.token = token;
    t->slot.since = since;
    slot_take_answer(t, CLAVE_OK);
}

static void slot_take_look_again(struct slot_take *t, clave_err why)
{
    clave__mem_free(t->slots->mem, t->found);
    t->found = NULL;
    slot_take_enter(t, TAKE_LOOKING);
    if (why == CLAVE_OK)
        slot_take_look(t);
    else
        slot_take_retry_or_fail(t, why);
}

/* A slot that may only be read counts as found too, and keeps what its owner wrote. */
static void slot_take_on_renewed(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_take *t = arg;
    clave_err err = res->err;
    t->busy--;
    if (t->state != TAKE_RENEWING) {
        slot_take_settle(t);
        return;
    }
    bool changed = err == CLAVE_EBADVERSION || err == CLAVE_ENONODE || err == CLAVE_ENODEEXISTS;
    bool refused = t->below && clave_err_classify(err) == CLAVE_CLASS_FINAL;
    if (changed)
        slot_take_look_again(t, CLAVE_OK);
    else if (err == CLAVE_OK || refused)
        slot_take_answer(t, CLAVE_OK);
    else
        slot_take_look_again(t, err);
}

/* Somebody may have created the slot's node without one below it. */
static clave_err slot_take_renew(struct slot_take *t, const clave_result *res)
{
    const clave_async_slots *s = t->slots;
    const struct contender_spec *spec = &s->queue.spec;
    const clave_op ops[2] = {
        {.kind = CLAVE_OP_SET,
         .path = t->own,
         .data = res->data,
         .len = res->len,
         .version = res->stat->version},
        {.kind = CLAVE_OP_CREATE,
         .path = t->node,
         .data = "",
         .acls = spec->acls,
         .nacls = spec->nacls},
    };
    t->found = clave__slot_data_parse(s->mem, res, t->below);
    if (!t->found)
        return CLAVE_ENOMEM;
    t->slot = t->found->slot;
    if (!t->below)
        t->slot.node = t->node;
    return clave_async_multi(s->client, ops, t->below ? 1 : 2, slot_take_on_renewed, t);
}

static void slot_take_on_found(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_take *t = arg;
    t->busy--;
    if (t->state != TAKE_FINDING) {
        slot_take_settle(t);
    } else if (res->err != CLAVE_OK) { /* it was given back meanwhile, or the answer was lost */
        slot_take_look_again(t, res->err == CLAVE_ENONODE ? CLAVE_OK : res->err);
    } else if (t->is_mine) {
        slot_take_own(t, res->stat->czxid, res->stat->ctime);
    } else {
        slot_take_enter(t, TAKE_RENEWING);
        clave_err err = slot_take_renew(t, res);
        if (err == CLAVE_OK)
            t->busy++;
        else
            slot_take_answer(t, err);
    }
}

/* This answer comes before the answer to the other read, which was sent after this one. */
static void slot_take_on_below(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_take *t = arg;
    t->busy--;
    if (t->state != TAKE_FINDING) {
        slot_take_settle(t);
        return;
    }
    if (res->err != CLAVE_OK) {
        slot_take_look_again(t, res->err == CLAVE_ENONODE ? CLAVE_OK : res->err);
        return;
    }
    for (size_t i = 0; i < res->nnames && !t->is_mine; i++)
        t->is_mine = strcmp(res->names[i], clave__path_name(t->node)) == 0;
    if (t->is_mine || res->nnames == 0)
        return;
    t->below = clave__mem_strdup(t->slots->mem, res->names[0]);
    if (!t->below)
        slot_take_answer(t, CLAVE_ENOMEM);
}

static void slot_take_find_own(struct slot_take *t)
{
    clave_async_client *c = t->slots->client;
    slot_take_enter(t, TAKE_FINDING);
    clave__mem_free(t->slots->mem, t->below);
    t->below = NULL;
    t->is_mine = false;
    clave_err err = clave_async_children(c, t->own, NULL, slot_take_on_below, t);
    if (err == CLAVE_OK) {
        t->busy++;
        err = clave_async_get(c, t->own, NULL, slot_take_on_found, t);
    }
    if (err == CLAVE_OK)
        t->busy++;
    else
        slot_take_answer(t, err);
}

/* ---- creating missing nodes ------------------------------------------------------------------ */

static void slot_take_on_prepared(struct slots_prepare *p, clave_err err)
{
    struct slot_take *t = LIST_ENTRY(p, struct slot_take, prepare);
    t->busy--;
    if (t->state == TAKE_ENDED) {
        slot_take_settle(t);
        return;
    }
    slot_take_enter(t, TAKE_LOOKING);
    if (err == CLAVE_OK)
        slot_take_look(t);
    else
        slot_take_retry_or_fail(t, err);
}

static void slot_take_prepare(struct slot_take *t)
{
    clave_async_slots *s = t->slots;
    if (t->count.limit == CLAVE_SLOTS_LIMIT_NONE && s->seed == 0) {
        clave__client_fault(s->client,
                            "no limit of slots is set in %s: set one (clave slot limit PATH N)",
                            s->paths.limit);
        slot_take_answer(t, CLAVE_ENONODE);
        return;
    }
    slot_take_enter(t, TAKE_PREPARING);
    t->prepare = (struct slots_prepare){
        .slots = s, .limit = s->seed ? (int64_t)s->seed : -1, .done = slot_take_on_prepared};
    clave_err err = clave__slots_prepare(&t->prepare);
    if (err == CLAVE_OK)
        t->busy++;
    else
        slot_take_answer(t, err);
}

/* ---- its place in the queue ------------------------------------------------------------------ */

/* True if its node was created; its session may have ended since. */
static bool slot_take_has_place(const struct slot_take *t)
{
    enum contender_state state = t->place ? t->place->state : CONTENDER_IDLE;
    return state == CONTENDER_WAITING || state == CONTENDER_CONFIRMING || state == CONTENDER_HELD;
}

static size_t slot_take_ahead(const struct slot_take *t)
{
    return t->place->state == CONTENDER_WAITING ? clave__contender_ahead(t->place) : 0;
}

/* ---- events for the user --------------------------------------------------------------------- */

static void slot_take_tell(struct slot_take *t, size_t ahead, bool refused)
{
    clave_async_slots *s = t->slots;
    const char *left_over = slot_take_has_place(t) ? clave__contender_left_over(t->place) : NULL;
    const clave_slots_event ev = {.request = t->request,
                                  .ahead = ahead == SIZE_MAX ? 0 : ahead,
                                  .left_over = left_over,
                                  .refused = refused,
                                  .owned = t->count.owned,
                                  .limit = t->count.limit,
                                  .strange = t->count.strange};
    clave__slots_hold(s);
    if (s->event_cb)
        s->event_cb(s, &ev, s->event_arg);
    clave__slots_drop(s);
}

static void slot_take_refuse(struct slot_take *t, size_t ahead)
{
    slot_take_answer(t, CLAVE_EBUSY);
    slot_take_tell(t, ahead, true);
}

/* ---- the transaction ------------------------------------------------------------------------- */

enum { OPS = 5, OP_OWNERS = 3, OP_PLACE = 4 };

static void slot_take_taken(struct slot_take *t, const clave_result *res)
{
    const clave_stat *counted = res->nops == OPS ? res->ops[OP_OWNERS].stat : NULL;
    if (!counted) { /* the server reports no times in a transaction */
        t->doubt = CLAVE_ECONNLOSS;
        slot_take_find_own(t);
        return;
    }
    slot_take_leave(t, true);
    slot_take_own(t, res->zxid, counted->mtime);
}

/* True if the transaction may have succeeded and there is no time left to find out. */
static bool slot_take_must_end_in_doubt(const struct slot_take *t)
{
    return t->doubt != CLAVE_OK &&
           (slot_take_is_late(t) ||
            (t->trying && !clave_async_client_is_connected(t->slots->client)));
}

/* If somebody deletes the place of a live session, they want its take to end. */
static void slot_take_note_place_gone(struct slot_take *t)
{
    bool deleted = slot_take_has_place(t) && t->place->node.token == t->spends &&
                   t->place->node.session_id == clave_async_client_session_id(t->slots->client);
    if (!deleted)
        return;
    t->canceled = true;
    slot_take_leave(t, true);
}

/* The transaction was refused; a read tells why. */
static void slot_take_refused(struct slot_take *t, const clave_result *res)
{
    clave_err err = res->err;
    if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN)
        t->doubt = err;
    if (err == CLAVE_ECLOSED) /* it was on its way when the client was closed */
        t->doubt = CLAVE_ECONNLOSS;
    if (err == CLAVE_EBADVERSION && t->place) {
        slot_take_count(t);
        return;
    }
    bool changed = err == CLAVE_EBADVERSION || err == CLAVE_ENONODE || err == CLAVE_ENODEEXISTS;
    if (res->nops == OPS && res->ops[OP_PLACE].err == CLAVE_ENONODE)
        slot_take_note_place_gone(t);
    slot_take_enter(t, TAKE_LOOKING);
    if (slot_take_must_end_in_doubt(t))
        slot_take_answer(t, t->doubt);
    else if (changed || t->doubt != CLAVE_OK)
        slot_take_look(t);
    else
        slot_take_retry_or_fail(t, err);
}

static void slot_take_on_done(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_take *t = arg;
    t->busy--;
    if (t->state != TAKE_TAKING)
        slot_take_settle(t);
    else if (res->err == CLAVE_OK)
        slot_take_taken(t, res);
    else
        slot_take_refused(t, res);
}

/* True if the count was read after the place was created. */
static bool slot_take_is_counted_in_line(const struct slot_take *t)
{
    return t->count.place != 0 && t->count.place == t->place->node.token;
}

/* Creates the slot before it changes the count, so that a reader in between sees one slot too many
 * rather than one too few. */
static void slot_take_submit(struct slot_take *t)
{
    const clave_async_slots *s = t->slots;
    const struct contender_spec *spec = &s->queue.spec;
    bool in_line = slot_take_is_counted_in_line(t);
    const clave_op ops[OPS] = {
        {.kind = CLAVE_OP_CHECK, .path = s->paths.limit, .version = t->count.limit_version},
        {.kind = CLAVE_OP_CREATE,
         .path = t->own,
         .data = t->data,
         .len = t->ndata,
         .acls = spec->acls,
         .nacls = spec->nacls},
        {.kind = CLAVE_OP_CREATE,
         .path = t->node,
         .data = "",
         .acls = spec->acls,
         .nacls = spec->nacls},
        [OP_OWNERS] = {.kind = CLAVE_OP_SET,
                       .path = s->paths.owners,
                       .data = "",
                       .version = in_line ? -1 : t->count.owners_version},
        [OP_PLACE] = {.kind = CLAVE_OP_DELETE, .path = t->place->node.watch.path, .version = -1},
    };
    t->spends = t->place->node.token;
    slot_take_enter(t, TAKE_TAKING);
    clave_err err = clave_async_multi(s->client, ops, OPS, slot_take_on_done, t);
    if (err == CLAVE_OK)
        t->busy++;
    else
        slot_take_answer(t, err);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static bool slot_take_has_room(const struct slot_take *t, size_t ahead)
{
    size_t owned = t->count.owned;
    uint64_t limit = t->count.limit > 0 ? (uint64_t)t->count.limit : 0;
    return owned < limit && ahead < limit - owned;
}

static void slot_take_on_own(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_take *t = arg;
    t->busy--;
    if (t->state == TAKE_QUEUEING && res->err == CLAVE_OK) {
        slot_take_enter(t, TAKE_LOOKING);
        slot_take_look(t);
    } else {
        slot_take_settle(t);
    }
}

/* Others are before it. In the meantime another process may take a slot for the same id. */
static void slot_take_wait(struct slot_take *t, size_t ahead)
{
    if (!clave_async_watch_is_armed(t->own_watch)) {
        clave_err err =
            clave_async_exists(t->slots->client, t->own, t->own_watch, slot_take_on_own, t);
        if (err != CLAVE_OK) {
            slot_take_answer(t, err);
            return;
        }
        t->busy++;
    }
    if (ahead != SIZE_MAX) /* if unknown, slot_take_on_moved will be called */
        slot_take_tell(t, ahead, false);
}

/* Its place was created, or has moved up. */
static void slot_take_on_moved(void *owner)
{
    struct slot_take *t = owner;
    if (t->state != TAKE_QUEUEING || !slot_take_has_place(t))
        return; /* what is under way will check the position again */
    size_t ahead = slot_take_ahead(t);
    /* a take that has just joined may use an earlier count, if nobody has taken since */
    bool just_joined = !t->again;
    t->again = true;
    if (just_joined && slot_take_has_room(t, ahead) && !slot_take_is_late(t))
        slot_take_submit(t);
    else if (ahead == 0 || t->trying || (!just_joined && (int64_t)ahead < t->count.limit))
        slot_take_count(t);
    else
        slot_take_wait(t, ahead);
}

static void slot_take_on_gone(void *owner, clave_err why)
{
    struct slot_take *t = owner;
    t->place = NULL;
    assert(t->state != TAKE_ENDED);
    t->canceled = t->canceled || why == CLAVE_ENONODE; /* somebody has deleted it */
    if (slot_take_is_committed(t))
        return; /* the transaction under way fails, unless it has already succeeded: its answer
                   tells */
    if (why != CLAVE_ENONODE) {
        slot_take_answer(t, why);
    } else if (t->state == TAKE_QUEUEING || t->state == TAKE_FULL) {
        slot_take_enter(t, TAKE_LOOKING);
        slot_take_look(t);
    }
}

/* The place was lost with its session, while it was the first. */
static void slot_take_on_lost(void *owner, clave_err why)
{
    struct slot_take *t = owner;
    if (why == CLAVE_ENONODE || why == CLAVE_ECLOSED) {
        slot_take_on_gone(t, why);
        return;
    }
    t->place = NULL;
    if (t->state != TAKE_FULL)
        return; /* answers are still to come */
    slot_take_enter(t, TAKE_LOOKING);
    slot_take_look(t);
}

static const struct contender_events slot_take_events = {
    .moved = slot_take_on_moved,
    .held = slot_take_on_moved,
    .ended = slot_take_on_gone,
    .lost = slot_take_on_lost,
};

static void slot_take_join(struct slot_take *t)
{
    clave_async_slots *s = t->slots;
    slot_take_enter(t, TAKE_QUEUEING);
    t->again = false;
    clave_err err =
        clave__contender_new(&t->place, s->client, &s->queue.spec, &slot_take_events, t);
    if (err == CLAVE_OK)
        err = clave__contender_add_identity(
            t->place,
            &(clave_identity){.host = t->as.host, .name = t->as.id, .text = t->as.reason});
    if (err == CLAVE_OK)
        err = clave__contender_join(t->place, t->trying ? CLAVE_TRY : CLAVE_NEVER);
    if (err == CLAVE_OK)
        return;
    t->place = NULL;
    slot_take_answer(t, err);
}

/* ---- counting, and what follows from it ------------------------------------------------------ */

static void slot_take_decide(struct slot_take *t)
{
    if (!t->place) {
        slot_take_enter(t, TAKE_LOOKING);
        slot_take_look(t);
        return;
    }
    if (t->canceled || slot_take_is_late(t)) {
        slot_take_answer(t, slot_take_not_in_time(t));
        return;
    }
    if (!slot_take_has_place(t)) { /* it is being created in another session */
        t->again = true;
        slot_take_enter(t, TAKE_QUEUEING);
        return;
    }
    /* Not c->now: see the top of the file. A count that was made before the place was created does
     * not show the queue. It is nevertheless good, together with the places that are before it now,
     * as long as nobody has taken since. */
    size_t ahead = slot_take_is_counted_in_line(t) ? t->count.before : slot_take_ahead(t);
    if (slot_take_has_room(t, ahead)) {
        slot_take_submit(t);
    } else if (t->trying && t->count.now < ahead) {
        slot_take_count(t);
    } else if (t->trying) {
        slot_take_refuse(t, ahead);
    } else if (t->place->state == CONTENDER_HELD &&
               !t->count.watched) { /* it has become the first since then */
        slot_take_count(t);
    } else if (t->place->state == CONTENDER_HELD) {
        slot_take_enter(t, TAKE_FULL);
        slot_take_tell(t, 0, false);
    } else {
        t->again = true;
        slot_take_enter(t, TAKE_QUEUEING);
        slot_take_wait(t, slot_take_ahead(t));
    }
}

/* LOOKING has found that the id owns nothing. That settles any doubt: nothing was done, and the
 * session in which the transaction was sent has moved on since. */
static void slot_take_looked(struct slot_take *t)
{
    t->doubt = CLAVE_OK;
    if (t->canceled || slot_take_is_late(t))
        slot_take_answer(t, slot_take_not_in_time(t));
    else if (t->place)
        slot_take_count(t);
    else if (t->trying && !slot_take_has_room(t, 0))
        slot_take_refuse(t, 0);
    else
        slot_take_join(t);
}

static void slot_take_counted(struct slot_take *t)
{
    struct slot_count *c = &t->count;
    if (t->state != TAKE_LOOKING && t->state != TAKE_COUNTING) {
        slot_take_settle(t);
        return;
    }
    bool full = c->err == CLAVE_OK && c->limit != CLAVE_SLOTS_LIMIT_NONE &&
                !slot_take_has_room(t, t->trying ? c->now : 0);
    t->full_on = full ? clave_async_client_connection(t->slots->client) : 0;
    if (c->err != CLAVE_OK)
        slot_take_retry_or_fail(t, c->err);
    else if (t->again && t->state == TAKE_LOOKING)
        slot_take_look(t);
    else if (c->own)
        slot_take_find_own(t);
    else if (c->limit == CLAVE_SLOTS_LIMIT_NONE || c->owners_missing)
        slot_take_prepare(t);
    else if (t->state == TAKE_LOOKING)
        slot_take_looked(t);
    else if (t->again)
        slot_take_count(t);
    else
        slot_take_decide(t);
}

static void slot_count_answered(struct slot_take *t, clave_err err)
{
    struct slot_count *c = &t->count;
    assert(c->pending > 0);
    if (err != CLAVE_OK && c->err == CLAVE_OK)
        c->err = err;
    if (--c->pending == 0)
        slot_take_counted(t);
}

static void slot_count_on_sync(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    slot_count_answered(arg, res->err);
}

static void slot_count_on_limit(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct slot_take *t = arg;
    bool known = res->err == CLAVE_OK || res->err == CLAVE_ENONODE;
    if (known)
        t->count.limit = clave__slots_limit_of(res);
    if (res->err == CLAVE_OK)
        t->count.limit_version = res->stat->version;
    slot_count_answered(t, known ? CLAVE_OK : res->err);
}

static void slot_count_on_owners(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct slot_take *t = arg;
    struct slot_count *c = &t->count;
    char id[CLAVE_SLOT_ID_MAX + 1];
    c->owners_missing = res->err == CLAVE_ENONODE;
    if (res->err == CLAVE_OK)
        c->owners_version = res->stat->version;
    c->owned = res->err == CLAVE_OK ? res->nnames : 0;
    for (size_t i = 0; i < c->owned; i++) {
        if (strcmp(res->names[i], clave__path_name(t->own)) == 0)
            c->own = true;
        else if (!c->strange &&
                 !clave__slot_name_parse(res->names[i], id)) /* NULL: nothing to report about it */
            c->strange = clave__path_child(t->slots->mem, t->slots->paths.owners, res->names[i]);
    }
    slot_count_answered(t, c->owners_missing ? CLAVE_OK : res->err);
}

/* For a non-blocking take: counts the places that are now before it. */
static void slot_count_on_queue(clave_async_client *client, const clave_result *res, void *arg)
{
    (void)client;
    struct slot_take *t = arg;
    if (res->err == CLAVE_OK && t->place) {
        struct queue_order_place at =
            clave__queue_order_locate(t->slots->queue.spec.rule, res->names, res->nnames,
                                      clave__path_name(t->place->node.watch.path));
        if (at.found) /* otherwise nothing is known about those before it */
            t->count.now = at.ahead;
        t->canceled = t->canceled || !at.found;
    }
    bool gone =
        res->err == CLAVE_ENONODE; /* the whole queue is gone; its place was the last one in it */
    t->canceled = t->canceled || gone;
    slot_count_answered(t, gone ? CLAVE_OK : res->err);
}

static void slot_count_submitted(struct slot_take *t, clave_err err)
{
    t->count.pending += err == CLAVE_OK;
    if (err != CLAVE_OK && t->count.err == CLAVE_OK)
        t->count.err = err;
}

/* A watch that is still armed reports the next change anyway. */
static clave_async_watch *slot_count_watch(clave_async_watch *w, bool watched)
{
    return watched && !clave_async_watch_is_armed(w) ? w : NULL;
}

/* Reads the count. If `synced`, it is at least what the leader had when this began. The order of
 * the reads matters: see the top of the file. */
static void slot_take_read_count(struct slot_take *t, bool synced, bool watched, bool queue)
{
    clave_async_client *client = t->slots->client;
    const struct slots_paths *paths = &t->slots->paths;
    struct slot_count *c = &t->count;
    if (c->pending > 0) {
        t->again = true;
        return;
    }
    t->again = false;
    clave__mem_free(t->slots->mem, c->strange);
    size_t before = t->place ? slot_take_ahead(t) : 0;
    if (queue && t->count.place != 0)
        before = c->now;
    *c = (struct slot_count){.limit = c->limit, .before = before, .now = before};
    c->watched = watched;
    c->place = slot_take_has_place(t) ? t->place->node.token : 0;
    if (synced)
        slot_count_submitted(t, clave_async_sync(client, paths->owners, slot_count_on_sync, t));
    slot_count_submitted(t, clave_async_get(client, paths->limit,
                                            slot_count_watch(t->limit_watch, watched),
                                            slot_count_on_limit, t));
    slot_count_submitted(t, clave_async_children(client, paths->owners,
                                                 slot_count_watch(t->owners_watch, watched),
                                                 slot_count_on_owners, t));
    if (queue)
        slot_count_submitted(
            t, clave_async_children(client, paths->queue, NULL, slot_count_on_queue, t));
    if (c->pending == 0)
        slot_take_retry_or_fail(t, c->err);
}

static void slot_take_look(struct slot_take *t)
{
    assert(t->state == TAKE_LOOKING);
    slot_take_read_count(t, true, false, false);
}

static void slot_take_count(struct slot_take *t)
{
    slot_take_enter(t, TAKE_COUNTING);
    bool first = slot_take_has_place(t) && slot_take_ahead(t) == 0;
    slot_take_read_count(t, false, first && !t->trying, t->trying && t->place);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* A watch can be used again only after all events of this call have arrived. */
static void slot_take_on_event(clave_async_client *client, clave_async_watch *w,
                               const clave_event *ev, void *arg)
{
    (void)ev;
    struct slot_take *t = arg;
    t->news_of_own = t->news_of_own || w == t->own_watch;
    list_remove(&t->news.link);
    clave__client_later(client, &t->news);
}

static void slot_take_on_news(struct client_task *task)
{
    struct slot_take *t = LIST_ENTRY(task, struct slot_take, news);
    bool own = t->news_of_own;
    t->news_of_own = false;
    if (t->state == TAKE_FULL) {
        slot_take_count(t);
    } else if (t->state == TAKE_QUEUEING && own) {
        slot_take_enter(t, TAKE_LOOKING);
        slot_take_look(t);
    } else {
        t->again = true;
    }
}

static void slot_take_on_pause(struct timer *timer, int64_t now)
{
    (void)now;
    struct slot_take *t = LIST_ENTRY(timer, struct slot_take, pause);
    if (t->state == TAKE_LOOKING)
        slot_take_look(t);
    else if (t->state == TAKE_COUNTING)
        slot_take_count(t);
}

static void slot_take_on_limit(struct timer *timer, int64_t now)
{
    (void)now;
    struct slot_take *t = LIST_ENTRY(timer, struct slot_take, limit);
    if (slot_take_is_committed(t))
        return;
    size_t ahead = slot_take_has_place(t) ? slot_take_ahead(t) : 0;
    clave_err err = slot_take_not_in_time(t);
    slot_take_answer(t, err);
    if (err == CLAVE_EBUSY)
        slot_take_tell(t, ahead, true);
}

/* After a reconnect the watches are armed again, but what they reported may be out of date. */
static void slot_take_on_state(struct listener *l, clave_state state, clave_err why)
{
    (void)why;
    struct slot_take *t = LIST_ENTRY(l, struct slot_take, listener);
    if (state == CLAVE_STATE_CLOSED && !slot_take_is_committed(t))
        slot_take_answer(t, CLAVE_ECLOSED);
    else if (state == CLAVE_STATE_SUSPENDED && t->trying && !slot_take_is_committed(t))
        slot_take_answer(t, slot_take_not_in_time(t));
    else if (state == CLAVE_STATE_RECONNECTED && t->state == TAKE_FULL)
        slot_take_count(t);
}

void clave__slot_take_cancel(struct slot_take *t, bool at_once)
{
    bool waits = !slot_take_is_committed(t) && t->state != TAKE_FINDING && t->doubt == CLAVE_OK;
    t->canceled = true;
    if (at_once && t->state == TAKE_TAKING)
        t->doubt = CLAVE_ECONNLOSS;
    if (at_once || waits)
        slot_take_answer(t, CLAVE_ECANCELED);
}

/* ---- creating and freeing -------------------------------------------------------------------- */

void clave__slots_cancel_takes(clave_async_slots *s)
{
    for (struct list *e = s->takes.next; e != &s->takes; e = e->next) {
        struct slot_take *t = LIST_ENTRY(e, struct slot_take, link);
        if (t->state != TAKE_ENDED)
            clave__slot_take_cancel(t, true);
    }
}

struct slot_take *clave__slot_take_find(const clave_async_slots *s, uint64_t request)
{
    for (struct list *e = s->takes.next; e != &s->takes; e = e->next) {
        struct slot_take *t = LIST_ENTRY(e, struct slot_take, link);
        if (t->request == request && t->state != TAKE_ENDED)
            return t;
    }
    return NULL;
}

static const char *slot_take_copy(char **at, const char *text)
{
    if (!text)
        return NULL;
    char *copy = *at;
    size_t n = strlen(text) + 1;
    memcpy(copy, text, n);
    *at += n;
    return copy;
}

static size_t slot_take_text_len(const clave_slot *as)
{
    return strlen(as->id) + (as->host ? strlen(as->host) : 0) + (as->by ? strlen(as->by) : 0) +
           (as->reason ? strlen(as->reason) : 0) + 4;
}

static clave_err slot_take_fill(struct slot_take *t, const clave_slot *as)
{
    clave_async_slots *s = t->slots;
    char *at = t->texts;
    char prefix[CLAVE_PROTECTED_PREFIX + 1]; /* "_c_<uuid>-" */
    char name[SLOT_NAME_CAP], below[SLOT_BELOW_CAP];
    t->as = (clave_slot){.id = slot_take_copy(&at, as->id),
                         .host = slot_take_copy(&at, as->host),
                         .by = slot_take_copy(&at, as->by),
                         .reason = slot_take_copy(&at, as->reason)};
    clave__client_protect(s->client, prefix);
    clave__slot_name_format(name, t->as.id);
    snprintf(below, sizeof below, "take-%.*s", CLAVE_UUID_TEXT, prefix + 3);
    t->own = clave__path_child(s->mem, s->paths.owners, name);
    t->node = t->own ? clave__path_child(s->mem, t->own, below) : NULL;
    t->data = clave__slot_data_format(s->mem, &t->as, &t->ndata);
    clave_async_watch **watches[] = {&t->owners_watch, &t->limit_watch, &t->own_watch};
    clave_err err = t->node && t->data ? CLAVE_OK : CLAVE_ENOMEM;
    for (size_t i = 0; i < 3 && err == CLAVE_OK; i++)
        err = clave_async_watch_new(watches[i], s->client, slot_take_on_event, t);
    return err;
}

static clave_err slot_take_new(struct slot_take **out, clave_async_slots *s, const clave_slot *as)
{
    struct slot_take *t = clave__mem_zalloc(s->mem, sizeof *t + slot_take_text_len(as));
    *out = t;
    if (!t)
        return CLAVE_ENOMEM;
    t->slots = s;
    list_init(&t->link);
    list_init(&t->due.link);
    list_init(&t->news.link);
    list_init(&t->listener.link);
    t->due.run = slot_take_on_due;
    t->news.run = slot_take_on_news;
    t->listener.on_state = slot_take_on_state;
    clave__timer_init(&t->limit, slot_take_on_limit);
    clave__timer_init(&t->pause, slot_take_on_pause);
    clave_err err = slot_take_fill(t, as);
    if (err != CLAVE_OK)
        slot_take_free(t);
    return err;
}

static void slot_take_start(struct slot_take *t)
{
    clave_async_slots *s = t->slots;
    t->trying = t->deadline <= clave__client_now(s->client);
    clave__slots_hold(s);
    list_push_back(&s->takes, &t->link);
    clave__client_listen(s->client, &t->listener);
    if (!t->trying && t->deadline != CLAVE_NEVER)
        clave__client_timer_set(s->client, &t->limit, t->deadline);
    /* A non-blocking take never waits, not even for a connection. */
    if (t->trying && !clave_async_client_is_connected(s->client))
        slot_take_answer(t, slot_take_not_in_time(t));
    else
        slot_take_look(t);
}

static bool slot_take_may_say(const clave_slot *as)
{
    return clave__slot_id_is_valid(as->id) && clave__slot_text_is_valid(as->host) &&
           clave__slot_text_is_valid(as->by) && clave__slot_text_is_valid(as->reason);
}

clave_err clave_async_slots_take(clave_async_slots *s, uint64_t request, const clave_slot *as,
                                 int64_t deadline, clave_async_slots_take_cb *cb, void *arg)
{
    struct slot_take *t;
    if (!cb || !slot_take_may_say(as) || clave__slot_take_find(s, request))
        return CLAVE_EINVAL;
    if (clave_async_client_state(s->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    clave_err err = slot_take_new(&t, s, as);
    if (err != CLAVE_OK)
        return err;
    t->request = request;
    t->deadline = deadline;
    t->cb = cb;
    t->arg = arg;
    slot_take_start(t);
    return CLAVE_OK;
}

clave_err clave_async_slots_cancel(clave_async_slots *s, uint64_t request)
{
    struct slot_take *t = clave__slot_take_find(s, request);
    if (!t)
        return CLAVE_ENOTHELD;
    clave__slot_take_cancel(t, false);
    return CLAVE_OK;
}
