/* latch.c - one candidate: what its places in the queue, one after another, and the session
 * mean for its leadership. docs/elections.md has the rules. */
#include "recipe/latch.h"

#include <string.h>

#include "base/list.h"
#include "recipe/guard.h"
#include "recipe/stock.h"

enum { RETRY_MS = 1000 };

/* A callback that is due once: of an await, or of a close. */
struct note {
    struct list link; /* in awaits, then in due */
    struct timer limit;
    clave_latch *l;
    clave_latch_cb *cb;
    void *arg;
    clave_err verdict;
};

struct clave_latch {
    clave_client *client;
    const struct clave_mem *mem;
    struct stock stock;
    char *id;
    clave_latch_policy policy;
    clave_latch_event_cb *event_cb;
    void *event_arg;
    clave_latch_state state;
    struct contender *place; /* NULL: none, see `rests` */
    bool rests;              /* FAILED was told */
    bool leads;              /* LEADER was told, or is being */
    bool asked;              /* ASKED was told, since */
    int64_t published_token; /* of the leadership that has a value out */
    bool proving;            /* see prove */
    int64_t proved_token;
    bool calling;       /* one of our own calls runs: callbacks wait */
    bool owes_loss;     /* NOT_LEADER is to be told, before anything else */
    clave_err owed_why; /* of it */
    struct list awaits; /* notes */
    struct list due;    /* notes */
    struct timer soon;  /* what our own calls have left to tell */
    struct timer retry; /* what memory was short for */
    struct listener listener;
    unsigned refs; /* the user, notes, the proof, calls that run */
};

static void hold_latch(clave_latch *l)
{
    l->refs++;
}

static void drop_latch(clave_latch *l)
{
    if (--l->refs > 0)
        return;
    clave__client_timer_clear(l->client, &l->soon);
    clave__client_timer_clear(l->client, &l->retry);
    clave__client_unlisten(&l->listener);
    clave__stock_fini(&l->stock);
    clave__mem_free(l->mem, l->id);
    clave__mem_free(l->mem, l);
}

/* ---- telling --------------------------------------------------------------------------- */

static void emit(clave_latch *l, const clave_latch_event *ev)
{
    if (l->event_cb)
        l->event_cb(l, ev, l->event_arg);
}

static void tell_owed_loss(clave_latch *l)
{
    if (!l->owes_loss)
        return;
    l->owes_loss = false;
    emit(l, &(clave_latch_event){.kind = CLAVE_LATCH_NOT_LEADER, .why = l->owed_why});
}

static void tell(clave_latch *l, clave_latch_event ev)
{
    tell_owed_loss(l);
    emit(l, &ev);
}

static void tell_soon(clave_latch *l)
{
    clave__client_timer_set(l->client, &l->soon, clave__client_now(l->client));
}

static void try_later(clave_latch *l)
{
    clave__client_timer_set(l->client, &l->retry, clave__client_now(l->client) + RETRY_MS);
}

/* Frees the note, then runs its callback: whatever that does finds us consistent. */
static void deliver(struct note *n, clave_err verdict)
{
    clave_latch *l = n->l;
    clave_latch_cb *cb = n->cb;
    void *arg = n->arg;
    clave__client_timer_clear(l->client, &n->limit);
    list_remove(&n->link);
    clave__mem_free(l->mem, n);
    cb(l, verdict, arg);
    drop_latch(l);
}

static void on_limit(struct timer *t, int64_t now)
{
    (void)now;
    deliver(LIST_ENTRY(t, struct note, limit), CLAVE_EBUSY);
}

static clave_err note_new(struct note **out, clave_latch *l, clave_latch_cb *cb, void *arg)
{
    struct note *n = clave__mem_zalloc(l->mem, sizeof *n);
    *out = n;
    if (!n)
        return CLAVE_ENOMEM;
    list_init(&n->link);
    clave__timer_init(&n->limit, on_limit);
    n->l = l;
    n->cb = cb;
    n->arg = arg;
    hold_latch(l);
    return CLAVE_OK;
}

static void post(struct note *n, clave_err verdict)
{
    clave__client_timer_clear(n->l->client, &n->limit);
    list_remove(&n->link);
    n->verdict = verdict;
    list_push_back(&n->l->due, &n->link);
    tell_soon(n->l);
}

static void post_awaits(clave_latch *l, clave_err verdict)
{
    while (!list_empty(&l->awaits))
        post(LIST_ENTRY(l->awaits.next, struct note, link), verdict);
}

static void deliver_due(clave_latch *l)
{
    hold_latch(l);
    tell_owed_loss(l);
    /* What their callbacks add is for the next time. */
    struct list now;
    list_init(&now);
    list_splice(&now, &l->due);
    while (!list_empty(&now)) {
        struct note *n = LIST_ENTRY(now.next, struct note, link);
        deliver(n, n->verdict);
    }
    drop_latch(l);
}

static void on_soon(struct timer *t, int64_t now)
{
    (void)now;
    deliver_due(LIST_ENTRY(t, struct clave_latch, soon));
}

/* ---- leadership ------------------------------------------------------------------------ */

static void gain(clave_latch *l)
{
    if (l->leads || l->state != CLAVE_LATCH_STARTED)
        return;
    l->leads = true;
    l->asked = false;
    tell(l, (clave_latch_event){.kind = CLAVE_LATCH_LEADER});
    if (l->leads)
        post_awaits(l, CLAVE_OK);
    deliver_due(l);
}

static void lose(clave_latch *l, clave_err why)
{
    if (!l->leads)
        return;
    l->leads = false;
    tell(l, (clave_latch_event){.kind = CLAVE_LATCH_NOT_LEADER, .why = why});
}

/* By our own call: to be told later. */
static void give_up(clave_latch *l)
{
    if (!l->leads)
        return;
    l->leads = false;
    l->owes_loss = true;
    l->owed_why = CLAVE_OK;
    tell_soon(l);
}

static bool holds(const clave_latch *l)
{
    return l->place && l->place->state == CONTENDER_HELD;
}

/* The standard policy ended leadership with the connection, and the place is still ours by all
 * we know: a check of the node that passes the leader says so, and moves the hold deadline. */
static void on_proved(clave_client *c, const clave_result *res, void *arg)
{
    clave_latch *l = arg;
    (void)c;
    l->proving = false;
    if (holds(l) && l->place->token == l->proved_token) {
        if (res->err == CLAVE_OK)
            gain(l);
        else if (res->err == CLAVE_ENONODE)
            clave__turn_node_missing(&l->place->hold);
        else if (clave_err_classify(res->err) == CLAVE_CLASS_RETRY)
            try_later(l);
        /* A lost answer: there will be another RECONNECTED, or LOST. */
    }
    drop_latch(l);
}

static void prove(clave_latch *l)
{
    if (!holds(l) || l->leads || l->proving)
        return;
    clave_op check = {.kind = CLAVE_OP_CHECK, .path = l->place->own.path, .version = -1};
    clave_err err = clave_multi(l->client, &check, 1, on_proved, l);
    if (err == CLAVE_OK) {
        l->proving = true;
        l->proved_token = l->place->token;
        hold_latch(l);
    } else if (err == CLAVE_ENOMEM) {
        try_later(l);
    }
}

/* ---- the place ------------------------------------------------------------------------- */

static const struct contender_events events;

static void fail(clave_latch *l, clave_err err)
{
    if (err == CLAVE_ECLOSED) {
        l->state = CLAVE_LATCH_CLOSED;
    } else {
        l->rests = true;
        tell(l, (clave_latch_event){.kind = CLAVE_LATCH_FAILED, .why = err});
    }
    /* The callback may have had it stand again. */
    if (!l->place)
        post_awaits(l, err);
}

static clave_err stand(clave_latch *l)
{
    clave_err err = clave__contender_new(&l->place, l->client, &l->stock.spec, &events, l);
    if (err == CLAVE_OK)
        err = clave__contender_join(l->place, CLAVE_NEVER);
    if (err != CLAVE_OK)
        l->place = NULL;
    return err;
}

static void stand_again(clave_latch *l)
{
    if (l->state != CLAVE_LATCH_STARTED || l->place || l->rests)
        return;
    clave_err err = stand(l);
    if (err == CLAVE_ENOMEM)
        try_later(l);
    else if (err != CLAVE_OK)
        fail(l, err);
}

static void on_retry(struct timer *t, int64_t now)
{
    (void)now;
    clave_latch *l = LIST_ENTRY(t, struct clave_latch, retry);
    hold_latch(l);
    stand_again(l);
    if (clave_client_is_connected(l->client))
        prove(l);
    deliver_due(l);
    drop_latch(l);
}

static void on_moved(void *owner)
{
    clave_latch *l = owner;
    const struct contender *place = l->place;
    clave_latch_event ev = {
        .kind = CLAVE_LATCH_QUEUED, .ahead = place->ahead, .predecessor = place->last.path};
    hold_latch(l);
    tell(l, ev);
    /* The callback may have given the place up. */
    if (l->place == place && place->ahead == 1) {
        ev.kind = CLAVE_LATCH_NEXT;
        tell(l, ev);
    }
    drop_latch(l);
}

static void on_held(void *owner)
{
    clave_latch *l = owner;
    hold_latch(l);
    gain(l);
    drop_latch(l);
}

static void on_ended(void *owner, clave_err err)
{
    clave_latch *l = owner;
    l->place = NULL;
    hold_latch(l);
    if (err == CLAVE_ENOMEM)
        try_later(l);
    else
        fail(l, err);
    deliver_due(l);
    drop_latch(l);
}

static void on_lost(void *owner, clave_err why)
{
    clave_latch *l = owner;
    l->place = NULL;
    hold_latch(l);
    if (why == CLAVE_ECLOSED)
        l->state = CLAVE_LATCH_CLOSED;
    lose(l, why);
    if (why == CLAVE_ECLOSED)
        post_awaits(l, CLAVE_ECLOSED);
    stand_again(l);
    deliver_due(l);
    drop_latch(l);
}

static void on_asked(void *owner)
{
    clave_latch *l = owner;
    if (!l->leads || l->asked)
        return;
    l->asked = true;
    hold_latch(l);
    tell(l, (clave_latch_event){.kind = CLAVE_LATCH_ASKED});
    drop_latch(l);
}

static const struct contender_events events = {
    .moved = on_moved,
    .held = on_held,
    .ended = on_ended,
    .lost = on_lost,
    .asked = on_asked,
};

static void on_left(void *arg, clave_err err)
{
    struct note *n = arg;
    if (n->l->calling)
        post(n, err);
    else
        deliver(n, err);
}

static void on_state(struct listener *listener, clave_state state, clave_err why)
{
    clave_latch *l = LIST_ENTRY(listener, struct clave_latch, listener);
    hold_latch(l);
    switch (state) {
    case CLAVE_STATE_SUSPENDED:
        if (l->policy == CLAVE_POLICY_STANDARD)
            lose(l, why == CLAVE_OK ? CLAVE_ECONNLOSS : why);
        break;
    case CLAVE_STATE_CONNECTED:
    case CLAVE_STATE_RECONNECTED:
        prove(l);
        break;
    case CLAVE_STATE_CLOSED:
        /* The place hears of it by itself. A closed client ticks no more. */
        if (!l->place && l->state == CLAVE_LATCH_STARTED)
            l->state = CLAVE_LATCH_CLOSED;
        if (!l->place)
            post_awaits(l, CLAVE_ECLOSED);
        deliver_due(l);
        break;
    case CLAVE_STATE_LOST:
    case CLAVE_STATE_READ_ONLY:
    case CLAVE_STATE_LATENT:
        break;
    }
    drop_latch(l);
}

/* ---- life ------------------------------------------------------------------------------ */

static clave_err check_options(const clave_latch_options *o)
{
    bool policy = o->policy == CLAVE_POLICY_STANDARD || o->policy == CLAVE_POLICY_SESSION;
    bool fine = o->size == sizeof *o && policy && o->max_term_ms >= 0 && o->min_valid_ms >= 0 &&
                (!o->acls || o->nacls > 0);
    return fine ? CLAVE_OK : CLAVE_EINVAL;
}

static clave_err copy_options(clave_latch *l, const clave_latch_options *o)
{
    const char *id = o->id ? o->id : "";
    l->policy = o->policy;
    l->event_cb = o->event_cb;
    l->event_arg = o->event_arg;
    l->stock.spec.max_hold_ms = o->max_term_ms;
    l->stock.spec.min_valid_ms = o->min_valid_ms;
    l->stock.spec.strict = o->strict;
    l->stock.spec.revocable = o->revocable;
    l->id = clave__mem_strdup(l->mem, id);
    if (!l->id)
        return CLAVE_ENOMEM;
    clave_err err = clave__stock_set_data(&l->stock, id, strlen(id));
    return err == CLAVE_OK ? clave__stock_set_acls(&l->stock, o->acls, o->nacls) : err;
}

clave_err clave_latch_new(clave_latch **out, clave_client *c, const char *path,
                          const clave_latch_options *o)
{
    static const clave_latch_options defaults = {.size = sizeof defaults};
    *out = NULL;
    if (!o)
        o = &defaults;
    if (check_options(o) != CLAVE_OK)
        return CLAVE_EINVAL;
    const struct clave_mem *mem = clave__client_mem(c);
    clave_latch *l = clave__mem_zalloc(mem, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    l->client = c;
    l->mem = mem;
    l->refs = 1;
    list_init(&l->awaits);
    list_init(&l->due);
    list_init(&l->listener.link);
    l->listener.on_state = on_state;
    clave__timer_init(&l->soon, on_soon);
    clave__timer_init(&l->retry, on_retry);
    clave_err err =
        clave__stock_init(&l->stock, c, path, &clave__queue_latch, "the election's path");
    if (err == CLAVE_OK)
        err = copy_options(l, o);
    if (err != CLAVE_OK) {
        drop_latch(l);
        return err;
    }
    clave__client_listen(c, &l->listener);
    *out = l;
    return CLAVE_OK;
}

clave_err clave_latch_start(clave_latch *l)
{
    if (l->state != CLAVE_LATCH_LATENT)
        return CLAVE_EINVAL;
    if (clave_client_state(l->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    clave_err err = stand(l);
    if (err == CLAVE_OK)
        l->state = CLAVE_LATCH_STARTED;
    return err;
}

/* From here on nobody hears of the place; `left` (may be NULL) when its node is gone. */
static void leave(clave_latch *l, struct contender *place, struct note *left)
{
    if (place && place->state == CONTENDER_HELD && place->token == l->published_token)
        clave__value_withdraw(
            &(struct latch_lead){l->client, l->stock.path, place->own.path, place->token});
    l->calling = true;
    if (place)
        clave__contender_leave(place, left ? on_left : NULL, left);
    else if (left)
        post(left, CLAVE_OK);
    l->calling = false;
}

static void close_latch(clave_latch *l, struct note *left)
{
    struct contender *place = l->place;
    l->state = CLAVE_LATCH_CLOSED;
    l->place = NULL;
    clave__client_timer_clear(l->client, &l->retry);
    give_up(l);
    post_awaits(l, CLAVE_ECLOSED);
    leave(l, place, left);
}

clave_err clave_latch_close(clave_latch *l, clave_latch_close_mode mode, clave_latch_cb *cb,
                            void *arg)
{
    struct note *left = NULL;
    if (l->state != CLAVE_LATCH_STARTED)
        return CLAVE_EINVAL;
    if (cb && note_new(&left, l, cb, arg) != CLAVE_OK)
        return CLAVE_ENOMEM;
    if (mode == CLAVE_CLOSE_SILENT)
        l->event_cb = NULL;
    close_latch(l, left);
    return CLAVE_OK;
}

void clave_latch_free(clave_latch *l)
{
    if (!l)
        return;
    l->event_cb = NULL;
    if (l->state == CLAVE_LATCH_STARTED)
        close_latch(l, NULL);
    l->state = CLAVE_LATCH_CLOSED;
    post_awaits(l, CLAVE_ECLOSED);
    drop_latch(l);
}

clave_err clave_latch_resign(clave_latch *l)
{
    struct contender *old = l->place, *next;
    if (l->state != CLAVE_LATCH_STARTED)
        return CLAVE_EINVAL;
    clave_err err = clave__contender_new(&next, l->client, &l->stock.spec, &events, l);
    if (err != CLAVE_OK)
        return err;
    l->rests = false;
    give_up(l);
    /* First the delete, then the create: behind everybody else. */
    leave(l, old, NULL);
    l->place = next;
    if (clave__contender_join(next, CLAVE_NEVER) != CLAVE_OK) {
        l->place = NULL;
        try_later(l);
    }
    return CLAVE_OK;
}

/* ---- waiting --------------------------------------------------------------------------- */

clave_err clave_latch_await(clave_latch *l, int64_t deadline, clave_latch_cb *cb, void *arg)
{
    struct note *n;
    if (!cb)
        return CLAVE_EINVAL;
    if (l->state == CLAVE_LATCH_CLOSED || clave_client_state(l->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    if (note_new(&n, l, cb, arg) != CLAVE_OK)
        return CLAVE_ENOMEM;
    if (l->leads) {
        post(n, CLAVE_OK);
        return CLAVE_OK;
    }
    list_push_back(&l->awaits, &n->link);
    if (deadline != CLAVE_NEVER)
        clave__client_timer_set(l->client, &n->limit, deadline);
    return CLAVE_OK;
}

clave_err clave_latch_cancel(clave_latch *l, clave_latch_cb *cb, void *arg)
{
    clave_err err = CLAVE_ENOTHELD;
    for (struct list *e = l->awaits.next, *next; e != &l->awaits; e = next) {
        struct note *n = LIST_ENTRY(e, struct note, link);
        next = e->next;
        if (n->cb != cb || n->arg != arg)
            continue;
        post(n, CLAVE_ECANCELED);
        err = CLAVE_OK;
    }
    return err;
}

/* ---- what is known --------------------------------------------------------------------- */

bool clave_latch_grant(const clave_latch *l, clave_grant *out)
{
    if (!l->leads || !holds(l))
        return false;
    *out = (clave_grant){
        .token = l->place->token,
        .session_id = l->place->session_id,
        .deadline = clave__contender_deadline(l->place),
        .node = l->place->own.path,
        .count = 1,
    };
    return true;
}

bool clave_latch_valid_for(const clave_latch *l, int64_t now, int64_t ms)
{
    clave_grant g;
    return clave_latch_grant(l, &g) && g.deadline >= now && g.deadline - now >= ms;
}

bool clave_latch_has_leadership(const clave_latch *l, int64_t now)
{
    return clave_latch_valid_for(l, now, 0);
}

clave_latch_state clave_latch_state_of(const clave_latch *l)
{
    return l->state;
}

const char *clave_latch_id(const clave_latch *l)
{
    return l->id;
}

const char *clave_latch_own_path(const clave_latch *l)
{
    const struct contender *p = l->place;
    bool stands = p && p->state >= CONTENDER_WAITING && p->state <= CONTENDER_HELD;
    return stands ? p->own.path : NULL;
}

bool clave__latch_lead(const clave_latch *l, struct latch_lead *out)
{
    if (!l->leads || !holds(l))
        return false;
    *out = (struct latch_lead){l->client, l->stock.path, l->place->own.path, l->place->token};
    return true;
}

void clave__latch_hold(clave_latch *l)
{
    hold_latch(l);
}

void clave__latch_drop(clave_latch *l)
{
    drop_latch(l);
}

bool clave__latch_has_published(const clave_latch *l, int64_t token)
{
    return l->published_token == token;
}

void clave__latch_set_published(clave_latch *l, int64_t token)
{
    l->published_token = token;
}

/* ---- guarded writes -------------------------------------------------------------------- */

static clave_err guard_one(clave_latch *l, const clave_op *op, clave_result_cb *cb, void *arg)
{
    if (!l->leads || !holds(l))
        return CLAVE_ENOTHELD;
    return clave__guard_one(l->client, l->place->own.path, op, cb, arg);
}

clave_err clave_latch_create(clave_latch *l, const char *path, const void *data, size_t len,
                             clave_create_mode mode, clave_result_cb *cb, void *arg)
{
    clave_op op = {.kind = CLAVE_OP_CREATE, .path = path, .data = data, .len = len, .mode = mode};
    return guard_one(l, &op, cb, arg);
}

clave_err clave_latch_set(clave_latch *l, const char *path, const void *data, size_t len,
                          int32_t version, clave_result_cb *cb, void *arg)
{
    clave_op op = {
        .kind = CLAVE_OP_SET, .path = path, .data = data, .len = len, .version = version};
    return guard_one(l, &op, cb, arg);
}

clave_err clave_latch_delete(clave_latch *l, const char *path, int32_t version, clave_result_cb *cb,
                             void *arg)
{
    clave_op op = {.kind = CLAVE_OP_DELETE, .path = path, .version = version};
    return guard_one(l, &op, cb, arg);
}

clave_err clave_latch_multi(clave_latch *l, const clave_op *ops, size_t nops, clave_result_cb *cb,
                            void *arg)
{
    if (!l->leads || !holds(l))
        return CLAVE_ENOTHELD;
    return clave__guard_multi(l->client, l->place->own.path, ops, nops, cb, arg);
}
