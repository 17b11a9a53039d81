/* slot_take_steps.c - what a take does: reads, queues, counts, and takes. Called by slot_take.c. */
#include <assert.h>
#include <string.h>

#include "recipe/slots/slot_take.h"

/* ---- what an id owns ------------------------------------------------------------------------- */

/* Without memory: what was taken must not be reported as an error. */
static void slot_take_own(struct slot_take *t, int64_t token, int64_t since)
{
    t->slot = t->as;
    t->slot.node = t->node;
    t->slot.token = token;
    t->slot.since = since;
    clave__slot_take_answer(t, CLAVE_OK);
}

static void slot_take_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_take *t = arg;
    t->busy--;
    if (t->state != TAKE_READING) {
        clave__slot_take_settle(t);
        return;
    }
    if (res->err != CLAVE_OK) {
        clave__slot_take_enter(
            t, TAKE_LOOKING); /* it was given back meanwhile, or the answer was lost */
        if (res->err == CLAVE_ENONODE)
            clave__slot_take_look(t);
        else
            clave__slot_take_retry_or_fail(t, res->err);
        return;
    }
    if (strcmp(res->path, t->node) == 0) {
        slot_take_own(t, res->stat->czxid, res->stat->ctime);
        return;
    }
    t->found = clave__slot_data_parse(t->slots->mem, res, false);
    if (t->found)
        t->slot = t->found->slot;
    clave__slot_take_answer(t, t->found ? CLAVE_OK : CLAVE_ENOMEM);
}

static void slot_take_read(struct slot_take *t, const char *node)
{
    clave__slot_take_enter(t, TAKE_READING);
    clave_err err = clave_async_get(t->slots->client, node, NULL, slot_take_on_read, t);
    if (err == CLAVE_OK)
        t->busy++;
    else
        clave__slot_take_answer(t, err);
}

/* ---- the nodes ------------------------------------------------------------------------------- */

static void slot_take_on_prepared(struct slots_prepare *p, clave_err err)
{
    struct slot_take *t = LIST_ENTRY(p, struct slot_take, prepare);
    t->busy--;
    if (t->state == TAKE_ENDED) {
        clave__slot_take_settle(t);
        return;
    }
    clave__slot_take_enter(t, TAKE_LOOKING);
    if (err == CLAVE_OK)
        clave__slot_take_look(t);
    else
        clave__slot_take_retry_or_fail(t, err);
}

static void slot_take_prepare(struct slot_take *t)
{
    clave_async_slots *s = t->slots;
    if (t->count.limit_missing && s->seed == 0) {
        clave__client_fault(s->client,
                            "no limit of slots is set in %s: set one (clave slot limit PATH N)",
                            s->paths.limit);
        clave__slot_take_answer(t, CLAVE_ENONODE);
        return;
    }
    clave__slot_take_enter(t, TAKE_PREPARING);
    t->prepare = (struct slots_prepare){
        .slots = s, .limit = s->seed ? (int64_t)s->seed : -1, .done = slot_take_on_prepared};
    clave_err err = clave__slots_prepare(&t->prepare);
    if (err == CLAVE_OK)
        t->busy++;
    else
        clave__slot_take_answer(t, err);
}

/* ---- the transaction ------------------------------------------------------------------------- */

static void slot_take_taken(struct slot_take *t, const clave_result *res)
{
    const clave_stat *counted = res->nops == 4 ? res->ops[2].stat : NULL;
    if (!counted) { /* the server tells no times in a transaction */
        t->doubt = CLAVE_ECONNLOSS;
        slot_take_read(t, t->node);
        return;
    }
    clave__slot_take_leave(t, true);
    slot_take_own(t, res->zxid, counted->mtime);
}

/* It may have been done, and there is no time to find out. */
static bool slot_take_must_end_in_doubt(const struct slot_take *t)
{
    return t->doubt != CLAVE_OK &&
           (clave__slot_take_is_late(t) ||
            (t->trying && !clave_async_client_is_connected(t->slots->client)));
}

/* A reading tells what there is now. The place is given up if it is gone. */
static void slot_take_refused(struct slot_take *t, const clave_result *res)
{
    clave_err err = res->err;
    bool place_gone = res->nops == 4 && res->ops[3].err == CLAVE_ENONODE;
    if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN)
        t->doubt = err;
    if (err == CLAVE_ECLOSED) /* it was on its way when the client was closed */
        t->doubt = CLAVE_ECONNLOSS;
    if (err == CLAVE_EBADVERSION && t->place) {
        clave__slot_take_count(t);
        return;
    }
    bool changed = err == CLAVE_EBADVERSION || err == CLAVE_ENONODE || err == CLAVE_ENODEEXISTS;
    if (place_gone)
        clave__slot_take_leave(t, true);
    clave__slot_take_enter(t, TAKE_LOOKING);
    if (slot_take_must_end_in_doubt(t))
        clave__slot_take_answer(t, t->doubt);
    else if (changed || t->doubt != CLAVE_OK)
        clave__slot_take_look(t);
    else
        clave__slot_take_retry_or_fail(t, err);
}

static void slot_take_on_done(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_take *t = arg;
    t->busy--;
    if (t->state != TAKE_TAKING)
        clave__slot_take_settle(t);
    else if (res->err == CLAVE_OK)
        slot_take_taken(t, res);
    else
        slot_take_refused(t, res);
}

/* The slot comes before the count: a reader between the two sees a slot more, not one less. */
static void slot_take_submit(struct slot_take *t)
{
    clave_async_slots *s = t->slots;
    const struct contender_spec *spec = &s->queue.spec;
    const clave_op ops[4] = {
        {.kind = CLAVE_OP_CHECK, .path = s->paths.limit, .version = t->count.limit_version},
        {.kind = CLAVE_OP_CREATE,
         .path = t->node,
         .data = t->data,
         .len = t->ndata,
         .acls = spec->acls,
         .nacls = spec->nacls},
        {.kind = CLAVE_OP_SET,
         .path = s->paths.owners,
         .data = "",
         .version = t->count.owners_version},
        {.kind = CLAVE_OP_DELETE, .path = t->place->node.watch.path, .version = -1},
    };
    clave__slot_take_enter(t, TAKE_TAKING);
    clave_err err = clave_async_multi(s->client, ops, 4, slot_take_on_done, t);
    if (err == CLAVE_OK)
        t->busy++;
    else
        clave__slot_take_answer(t, err);
}

/* ---- the queue ------------------------------------------------------------------------------- */

static void slot_take_tell(struct slot_take *t, size_t ahead, const char *left_over)
{
    clave_async_slots *s = t->slots;
    const clave_slots_event ev = {.request = t->request, .ahead = ahead, .left_over = left_over};
    clave__slots_hold(s);
    if (s->event_cb)
        s->event_cb(s, &ev, s->event_arg);
    clave__slots_drop(s);
}

static void slot_take_on_moved(void *owner)
{
    struct slot_take *t = owner;
    if (t->state != TAKE_QUEUEING)
        return;
    t->again =
        t->again || t->place->queue.ahead > 0; /* those will have taken when it is our turn */
    slot_take_tell(t, t->place->queue.ahead, clave__contender_left_over(t->place));
}

static void slot_take_on_held(void *owner)
{
    struct slot_take *t = owner;
    if (t->state != TAKE_QUEUEING)
        return;
    /* If nobody was before us, what was read before we queued is as good as new: the transaction
     * proves it. */
    if (clave__slot_count_has_room(&t->count) && !t->again && !clave__slot_take_is_late(t))
        slot_take_submit(t);
    else
        clave__slot_take_count(t);
}

static void slot_take_on_ended(void *owner, clave_err err)
{
    struct slot_take *t = owner;
    t->place = NULL;
    assert(t->state != TAKE_ENDED);
    clave__slot_take_answer(t, err);
}

/* The transaction fails then, if it has not been done yet: its answer, or a reading, tells. */
static void slot_take_on_lost(void *owner, clave_err why)
{
    struct slot_take *t = owner;
    t->place = NULL;
    if (why == CLAVE_ECLOSED && t->state != TAKE_TAKING) {
        clave__slot_take_answer(t, why);
        return;
    }
    if (t->state != TAKE_FULL)
        return; /* answers are to come */
    clave__slot_take_enter(t, TAKE_LOOKING);
    clave__slot_take_look(t);
}

static const struct contender_events slot_take_events = {
    .moved = slot_take_on_moved,
    .held = slot_take_on_held,
    .ended = slot_take_on_ended,
    .lost = slot_take_on_lost,
};

static void slot_take_join(struct slot_take *t)
{
    clave_async_slots *s = t->slots;
    clave__slot_take_enter(t, TAKE_QUEUEING);
    t->again = false;
    clave_err err =
        clave__contender_new(&t->place, s->client, &s->queue.spec, &slot_take_events, t);
    if (err == CLAVE_OK)
        err = clave__contender_add_identity(
            t->place,
            &(clave_identity){.host = t->as.host, .name = t->as.id, .text = t->as.reason});
    if (err == CLAVE_OK)
        err = clave__contender_join(t->place, t->deadline);
    if (err == CLAVE_OK)
        return;
    t->place = NULL;
    clave__slot_take_answer(t, err);
}

/* ---- reading, and what follows from it ------------------------------------------------------- */

static void slot_take_start_reading(struct slot_take *t, bool synced, bool watched)
{
    if (t->count.pending > 0) {
        t->again = true;
        return;
    }
    t->again = false;
    clave_err err = clave__slot_count_read(&t->count, synced, watched);
    if (err != CLAVE_OK)
        clave__slot_take_retry_or_fail(t, err);
}

void clave__slot_take_look(struct slot_take *t)
{
    assert(t->state == TAKE_LOOKING);
    slot_take_start_reading(t, true, false);
}

void clave__slot_take_count(struct slot_take *t)
{
    clave__slot_take_enter(t, TAKE_COUNTING);
    slot_take_start_reading(t, false, !t->trying);
}

/* First in the queue, and the count is known. */
static void slot_take_decide(struct slot_take *t)
{
    if (!t->place) {
        clave__slot_take_enter(t, TAKE_LOOKING);
        slot_take_join(t);
    } else if (t->canceled || clave__slot_take_is_late(t)) {
        clave__slot_take_answer(t, clave__slot_take_not_in_time(t));
    } else if (clave__slot_count_has_room(&t->count)) {
        slot_take_submit(t);
    } else if (t->trying) {
        clave__slot_take_answer(t, CLAVE_EBUSY);
    } else {
        clave__slot_take_enter(t, TAKE_FULL);
        slot_take_tell(t, 0, NULL);
    }
}

/* LOOKING, and the id owns nothing. If there was a doubt, it is over: nothing was done, and the
 * session that it was sent in has moved on since. */
static void slot_take_looked(struct slot_take *t)
{
    t->doubt = CLAVE_OK;
    if (t->canceled || clave__slot_take_is_late(t))
        clave__slot_take_answer(t, clave__slot_take_not_in_time(t));
    else if (t->place)
        clave__slot_take_count(t);
    else if (t->trying && !clave__slot_count_has_room(&t->count))
        clave__slot_take_answer(t, CLAVE_EBUSY);
    else
        slot_take_join(t);
}

void clave__slot_take_on_count(struct slot_count *c)
{
    struct slot_take *t = LIST_ENTRY(c, struct slot_take, count);
    if (t->state != TAKE_LOOKING && t->state != TAKE_COUNTING) {
        clave__slot_take_settle(t);
        return;
    }
    bool full = c->err == CLAVE_OK && !c->limit_missing && !clave__slot_count_has_room(c);
    t->full_on = full ? clave_async_client_connection(t->slots->client) : 0;
    if (c->err != CLAVE_OK)
        clave__slot_take_retry_or_fail(t, c->err);
    else if (t->again && t->state == TAKE_LOOKING)
        clave__slot_take_look(t);
    else if (c->own)
        slot_take_read(t, c->own);
    else if (c->limit_missing || c->owners_missing)
        slot_take_prepare(t);
    else if (t->state == TAKE_LOOKING)
        slot_take_looked(t);
    else if (t->again)
        clave__slot_take_count(t);
    else
        slot_take_decide(t);
}

void clave__slot_take_on_changed(struct slot_count *c)
{
    struct slot_take *t = LIST_ENTRY(c, struct slot_take, count);
    if (t->state == TAKE_FULL)
        clave__slot_take_count(t);
    else
        t->again = true;
}
