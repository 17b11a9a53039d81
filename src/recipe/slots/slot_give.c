/* slot_give.c - a give, and a break, which is a give that leaves a record. Implements the public
 * API.
 *
 *     WITHDRAWING ──> FINDING ──> DELETING or PROVING ──> ENDED (from every state)
 *          ^             ^         │  ^ │
 *          └── PAUSING ──┴─────────┘  └─┴ RECORDING
 *
 * First, waiting takes of the id are withdrawn; then the slot that the id owns is read. So a take
 * that is on its way is either found, or fails because its place is gone. If a token was given,
 * only takes older than that token are withdrawn, because a caller that repeats a give by token may
 * already have begun to take again.
 *
 * A leader that was deposed and does not know it answers syncs and reads with the state before its
 * successor. So what was read counts only if a transaction was committed after it on the same
 * connection: the delete, or a check that changes nothing. Otherwise everything is read again. If
 * the id then owns another slot than the one whose delete was in doubt, nobody can tell whether it
 * took that slot before the give began, and should have given it back, or after the delete, and
 * should keep it. The slot stays, and the outcome is unknown.
 *
 * What must stay true: only the node of one particular take is deleted, whose name no other take
 * has, and the slot above it at the version that was read. So a delete whose answer was lost can be
 * repeated without harm, and one that arrives late does none. */
#include <assert.h>
#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "client/client_for_recipes.h"
#include "recipe/queue/participant_list.h"
#include "recipe/slots/slot_node.h"
#include "recipe/slots/slots_internal.h"

enum { TRIES = 16 };

enum slot_give_state {
    GIVE_WITHDRAWING, /* deleting the places of the id in the queue */
    GIVE_FINDING,     /* reading what the id owns */
    GIVE_DELETING,
    GIVE_PROVING,   /* committing a check, because nothing was found */
    GIVE_RECORDING, /* creating the node of the record */
    GIVE_PAUSING,   /* waiting before another attempt */
    GIVE_ENDED,
};

struct slot_give {
    struct list link; /* in the slots' list until it is answered */
    clave_async_slots *slots;
    enum slot_give_state state;
    int64_t token; /* 0: any */
    bool breaks;
    char *node;       /* path of the slot */
    bool is_strange;  /* it is not a slot but a node of exactly this name, to be broken */
    uint64_t read_on; /* the connection on which the most recent sync was answered */
    unsigned busy;    /* number of requests under way */
    clave_err err;    /* the first error of the withdrawals */
    /* The deletes, with their paths in the same block; NULL: nothing was found yet. */
    clave_op *ops;
    size_t nops;
    struct slot_copy *found;
    char *record; /* for a break: the content of the record */
    size_t nrecord;
    int tries;
    bool doubt; /* a delete may have succeeded */
    bool given;
    bool presumed; /* in a give without a token: its slot is gone, whoever deleted it */
    struct timer pause, limit;
    struct listener listener; /* notices the end of the client during a pause */
    struct client_task due;
    clave_err verdict;
    clave_async_slots_give_cb *cb;
    void *arg;
    char id[CLAVE_SLOT_ID_MAX + 1];
    char *by, *reason; /* for a break */
};

static void slot_give_withdraw(struct slot_give *g);
static void slot_give_find(struct slot_give *g);
static void slot_give_delete(struct slot_give *g);

/* ---- states ---------------------------------------------------------------------------------- */

#define TO(state) (1U << GIVE_##state)
static const unsigned moves[] = {
    [GIVE_WITHDRAWING] = TO(FINDING) | TO(PAUSING) | TO(ENDED),
    [GIVE_FINDING] = TO(FINDING) | TO(DELETING) | TO(PROVING) | TO(PAUSING) | TO(ENDED),
    [GIVE_DELETING] = TO(WITHDRAWING) | TO(FINDING) | TO(RECORDING) | TO(PAUSING) | TO(ENDED),
    [GIVE_PROVING] = TO(WITHDRAWING) | TO(PAUSING) | TO(ENDED),
    [GIVE_RECORDING] = TO(DELETING) | TO(PAUSING) | TO(ENDED),
    [GIVE_PAUSING] = TO(WITHDRAWING) | TO(DELETING) | TO(ENDED),
    [GIVE_ENDED] = 0,
};
#undef TO

/* Changes the state; nothing else does. */
static void slot_give_enter(struct slot_give *g, enum slot_give_state to)
{
    bool allowed = moves[g->state] & (1U << to);
    assert(allowed);
    (void)allowed;
    g->state = to;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void slot_give_free(struct slot_give *g)
{
    const struct clave_mem *mem = g->slots->mem;
    assert(g->busy == 0);
    clave__client_timer_clear(g->slots->client, &g->pause);
    clave__client_timer_clear(g->slots->client, &g->limit);
    clave__client_unlisten(&g->listener);
    clave__mem_free(mem, g->node);
    clave__mem_free(mem, g->ops);
    clave__mem_free(mem, g->found);
    clave__mem_free(mem, g->record);
    clave__mem_free(mem, g->by);
    clave__mem_free(mem, g->reason);
    clave__mem_free(mem, g);
}

/* Called after an answer that came too late: frees a give that has ended, unless more answers are
 * to come. */
static void slot_give_settle(struct slot_give *g)
{
    if (g->state != GIVE_ENDED || g->busy > 0 || g->due.run)
        return;
    clave_async_slots *s = g->slots;
    slot_give_free(g);
    clave__slots_drop(s);
}

/* Ends the give. The callback runs after this call, and nothing more is sent. A refusal by the
 * server settles a doubt about an earlier delete; a cancellation, which is the caller's, does not.
 */
static void slot_give_answer(struct slot_give *g, clave_err err)
{
    clave_async_client *c = g->slots->client;
    bool doubt = g->doubt || (g->state == GIVE_DELETING && g->busy > 0);
    slot_give_enter(g, GIVE_ENDED);
    clave__client_timer_clear(c, &g->pause);
    clave__client_timer_clear(c, &g->limit);
    clave__client_unlisten(&g->listener);
    bool refused = clave_err_classify(err) == CLAVE_CLASS_FINAL && err != CLAVE_ECANCELED;
    bool certain = err == CLAVE_OK || refused;
    g->verdict = certain || !doubt ? err : CLAVE_ECONNLOSS;
    clave__client_later(c, &g->due);
}

static void slot_give_on_due(struct client_task *task)
{
    struct slot_give *g = LIST_ENTRY(task, struct slot_give, due);
    list_remove(&g->link);
    bool given = g->verdict == CLAVE_OK && g->given;
    g->busy++;
    if (g->cb)
        g->cb(g->slots, g->verdict, given ? &g->found->slot : NULL, g->arg);
    g->busy--;
    g->due.run = NULL;
    slot_give_settle(g);
}

/* An attempt failed: tries again a little later, or ends. */
static void slot_give_retry_or_fail(struct slot_give *g, clave_err err)
{
    clave_async_client *c = g->slots->client;
    bool again = clave__err_passes(err) && ++g->tries < TRIES &&
                 clave_async_client_state(c) != CLAVE_STATE_CLOSED;
    if (!again) {
        slot_give_answer(g, err);
        return;
    }
    slot_give_enter(g, GIVE_PAUSING);
    clave__client_timer_set(c, &g->pause, clave__client_now(c) + SLOTS_PAUSE_MS);
    clave__client_listen(c, &g->listener);
}

/* A request was answered. Returns false if nobody is waiting for the answer any more. */
static bool slot_give_expected(struct slot_give *g, enum slot_give_state state)
{
    g->busy--;
    if (g->state == state)
        return true;
    slot_give_settle(g);
    return false;
}

static void slot_give_submitted(struct slot_give *g, clave_err err)
{
    if (err == CLAVE_OK)
        g->busy++;
    else
        slot_give_retry_or_fail(g, err);
}

/* A transaction was committed, or failed at the leader: ends the give if everything was read on
 * this connection. */
static void slot_give_committed(struct slot_give *g)
{
    if (clave_async_client_connection(g->slots->client) == g->read_on) {
        slot_give_answer(g, CLAVE_OK);
        return;
    }
    clave__mem_free(g->slots->mem, g->ops);
    g->ops = NULL;
    if (g->given) /* the id may have taken again since */
        g->token = g->found->slot.token;
    if (++g->tries < TRIES) {
        slot_give_enter(g, GIVE_WITHDRAWING);
        slot_give_withdraw(g);
    } else {
        slot_give_answer(g, CLAVE_ECONNLOSS);
    }
}

/* ---- the delete ------------------------------------------------------------------------------ */

static void slot_give_on_record(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_give *g = arg;
    if (!slot_give_expected(g, GIVE_RECORDING))
        return;
    if (res->err == CLAVE_OK || res->err == CLAVE_ENODEEXISTS)
        slot_give_delete(g);
    else
        slot_give_retry_or_fail(g, res->err);
}

/* Creates the missing node of the record. */
static void slot_give_make_record(struct slot_give *g)
{
    const clave_async_slots *s = g->slots;
    const clave_create_options o = {
        .size = sizeof o, .acls = s->queue.spec.acls, .nacls = s->queue.spec.nacls};
    slot_give_enter(g, GIVE_RECORDING);
    slot_give_submitted(
        g, clave_async_create(s->client, s->paths.broken, "", 0, &o, slot_give_on_record, g));
}

/* True if a take has written the slot since it was found, or has created a node below it. */
static bool slot_give_has_changed(const struct slot_give *g, const clave_result *res)
{
    size_t last = g->nops - 1 - g->breaks;
    return res->err == CLAVE_EBADVERSION ||
           (res->err == CLAVE_ENOTEMPTY && !g->is_strange && res->nops == g->nops &&
            res->ops[last].err == CLAVE_ENOTEMPTY);
}

static void slot_give_on_deleted(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_give *g = arg;
    clave_err err = res->err;
    if (!slot_give_expected(g, GIVE_DELETING))
        return;
    bool no_record =
        g->breaks && res->nops == g->nops && res->ops[g->nops - 1].err == CLAVE_ENONODE;
    if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN || err == CLAVE_ECLOSED)
        g->doubt = true;
    if (no_record) {
        slot_give_make_record(g);
    } else if (err == CLAVE_OK || err == CLAVE_ENONODE) {
        g->given =
            err == CLAVE_OK || g->doubt; /* if there is no doubt, somebody else gave it back */
        g->presumed |= err != CLAVE_OK && g->doubt && g->token == 0;
        g->doubt = g->given;
        slot_give_committed(g);
    } else if (slot_give_has_changed(g, res) && ++g->tries < TRIES) {
        clave__mem_free(g->slots->mem, g->ops);
        g->ops = NULL;
        slot_give_find(g);
    } else {
        slot_give_retry_or_fail(g, err);
    }
}

static void slot_give_delete(struct slot_give *g)
{
    slot_give_enter(g, GIVE_DELETING);
    slot_give_submitted(
        g, clave_async_multi(g->slots->client, g->ops, g->nops, slot_give_on_deleted, g));
}

/* ---- finding what the id owns ---------------------------------------------------------------- */

/* Plans the deletes of the nodes below the slot and of the slot itself and, for a break, the
 * record. */
static clave_err slot_give_plan(struct slot_give *g, const clave_result *res)
{
    size_t n = g->is_strange ? 0 : res->nnames, bytes = 0, nnode = strlen(g->node);
    for (size_t i = 0; i < n; i++)
        bytes += nnode + strlen(res->names[i]) + 2;
    clave__mem_free(g->slots->mem, g->ops);
    g->ops = clave__mem_zalloc(g->slots->mem, (n + 2) * sizeof *g->ops + bytes);
    if (!g->ops)
        return CLAVE_ENOMEM;
    char *at = (char *)(g->ops + n + 2);
    for (size_t i = 0; i < n; i++) {
        g->ops[i] = (clave_op){.kind = CLAVE_OP_DELETE, .path = at, .version = -1};
        memcpy(at, g->node, nnode);
        at[nnode] = '/';
        size_t len = strlen(res->names[i]) + 1;
        memcpy(at + nnode + 1, res->names[i], len);
        at += nnode + 1 + len;
    }
    g->ops[n] = (clave_op){.kind = CLAVE_OP_DELETE, .path = g->node, .version = res->stat->version};
    g->nops = n + 1;
    return CLAVE_OK;
}

/* Plans the record, which says whose slot it was and who broke it. */
static clave_err slot_give_plan_record(struct slot_give *g)
{
    const clave_slot record = {.id = g->id,
                               .host = g->found->slot.host,
                               .by = g->by,
                               .reason = g->reason,
                               .token = g->found->slot.token};
    clave__mem_free(g->slots->mem, g->record);
    g->record = clave__slot_data_format(g->slots->mem, &record, &g->nrecord);
    if (!g->record)
        return CLAVE_ENOMEM;
    g->ops[g->nops++] = (clave_op){.kind = CLAVE_OP_SET,
                                   .path = g->slots->paths.broken,
                                   .data = g->record,
                                   .len = g->nrecord,
                                   .version = -1};
    return CLAVE_OK;
}

/* An operator may name a node that is not a slot by its own name. */
static bool slot_give_try_strange(struct slot_give *g)
{
    char id[CLAVE_SLOT_ID_MAX + 1];
    bool may_be = g->breaks && !g->is_strange && g->token == 0 && !strchr(g->id, '/') &&
                  !clave__slot_name_parse(g->id, id);
    char *node = may_be ? clave__path_child(g->slots->mem, g->slots->paths.owners, g->id) : NULL;
    if (!node || clave__path_fault(node, strlen(node), false)) {
        clave__mem_free(g->slots->mem, node);
        return false;
    }
    clave__mem_free(g->slots->mem, g->node);
    g->node = node;
    g->is_strange = true;
    slot_give_find(g);
    return true;
}

/* A caller that may not read <path>/owners cannot prove anything, nor could it see a slot. */
static void slot_give_on_proved(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_give *g = arg;
    if (!slot_give_expected(g, GIVE_PROVING))
        return;
    if (res->err == CLAVE_OK || clave_err_classify(res->err) == CLAVE_CLASS_FINAL)
        slot_give_committed(g);
    else
        slot_give_retry_or_fail(g, res->err);
}

/* The slot is gone, or belongs to somebody else. The answer is that there was none, unless we may
 * have deleted it ourselves. */
static void slot_give_found_none(struct slot_give *g)
{
    if (slot_give_try_strange(g))
        return;
    const clave_op check = {.kind = CLAVE_OP_CHECK, .path = g->slots->paths.owners, .version = -1};
    clave__mem_free(g->slots->mem, g->ops);
    g->ops = NULL;
    g->given = g->doubt && g->found;
    slot_give_enter(g, GIVE_PROVING);
    slot_give_submitted(g, clave_async_multi(g->slots->client, &check, 1, slot_give_on_proved, g));
}

static void slot_give_on_found(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_give *g = arg;
    clave_err err = res->err;
    if (!slot_give_expected(g, GIVE_FINDING))
        return;
    bool is_other = err == CLAVE_OK && g->token && g->token != res->stat->czxid;
    if (is_other && g->presumed) {
        slot_give_answer(g, CLAVE_ECONNLOSS);
        return;
    }
    if (err == CLAVE_ENONODE || is_other) {
        slot_give_found_none(g);
        return;
    }
    if (err == CLAVE_OK && !g->ops)
        err = CLAVE_ECONNLOSS; /* the answer to the other read was lost */
    if (err == CLAVE_OK) {
        clave__mem_free(g->slots->mem, g->found);
        g->found = clave__slot_data_parse(g->slots->mem, res, NULL);
        err = g->found ? CLAVE_OK : CLAVE_ENOMEM;
    }
    if (err == CLAVE_OK && g->breaks)
        err = slot_give_plan_record(g);
    if (err == CLAVE_OK) {
        slot_give_delete(g);
        return;
    }
    clave__mem_free(g->slots->mem, g->ops);
    g->ops = NULL;
    slot_give_retry_or_fail(g, err);
}

/* This answer comes before the answer to the other read, which was sent after this one. */
static void slot_give_on_below(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_give *g = arg;
    if (!slot_give_expected(g, GIVE_FINDING) || res->err != CLAVE_OK)
        return;
    clave_err err = slot_give_plan(g, res);
    if (err != CLAVE_OK)
        slot_give_retry_or_fail(g, err);
}

static void slot_give_find(struct slot_give *g)
{
    clave_async_client *c = g->slots->client;
    slot_give_enter(g, GIVE_FINDING);
    clave_err err = clave_async_children(c, g->node, NULL, slot_give_on_below, g);
    if (err == CLAVE_OK) {
        g->busy++;
        err = clave_async_get(c, g->node, NULL, slot_give_on_found, g);
    }
    slot_give_submitted(g, err);
}

/* ---- withdrawing takes that wait ------------------------------------------------------------- */

static void slot_give_withdrew(struct slot_give *g, clave_err err)
{
    if (!slot_give_expected(g, GIVE_WITHDRAWING))
        return;
    if (err != CLAVE_OK && err != CLAVE_ENONODE && g->err == CLAVE_OK)
        g->err = err;
    if (g->busy > 0)
        return;
    if (g->err == CLAVE_OK)
        slot_give_find(g);
    else
        slot_give_retry_or_fail(g, g->err);
}

static void slot_give_on_place(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    slot_give_withdrew(arg, res->err);
}

static clave_err slot_give_delete_place(struct slot_give *g, const char *name)
{
    char *path = clave__path_child(g->slots->mem, g->slots->paths.queue, name);
    if (!path)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_delete(g->slots->client, path, -1, slot_give_on_place, g);
    g->busy += err == CLAVE_OK;
    clave__mem_free(g->slots->mem, path);
    return err;
}

static void slot_give_on_queue(clave_async_client *c, clave_err err, const clave_participant *list,
                               size_t n, void *arg)
{
    (void)c;
    struct slot_give *g = arg;
    for (size_t i = 0; g->state == GIVE_WITHDRAWING && err == CLAVE_OK && i < n; i++) {
        const char *name = list[i].identity.name;
        bool is_older = g->token == 0 || list[i].stat.czxid < g->token;
        if (name && strcmp(name, g->id) == 0 && is_older)
            err = slot_give_delete_place(g, list[i].node);
    }
    slot_give_withdrew(g, err);
}

static void slot_give_on_sync(clave_async_client *c, const clave_result *res, void *arg)
{
    struct slot_give *g = arg;
    g->read_on = clave_async_client_connection(c);
    slot_give_withdrew(g, res->err);
}

static void slot_give_withdraw(struct slot_give *g)
{
    const clave_async_slots *s = g->slots;
    g->err = CLAVE_OK;
    clave_err err = clave_async_sync(s->client, s->paths.queue, slot_give_on_sync, g);
    if (err == CLAVE_OK) {
        g->busy++;
        err = clave__participant_list(s->client, s->paths.queue, &clave__queue_order_mutex, true,
                                      slot_give_on_queue, g);
    }
    slot_give_submitted(g, err);
}

/* ---- time, and the end of the client --------------------------------------------------------- */

static void slot_give_on_pause(struct timer *timer, int64_t now)
{
    (void)now;
    struct slot_give *g = LIST_ENTRY(timer, struct slot_give, pause);
    clave__client_unlisten(&g->listener);
    if (g->ops) {
        slot_give_delete(g);
        return;
    }
    slot_give_enter(g, GIVE_WITHDRAWING);
    slot_give_withdraw(g);
}

static void slot_give_on_limit(struct timer *timer, int64_t now)
{
    (void)now;
    slot_give_answer(LIST_ENTRY(timer, struct slot_give, limit), CLAVE_ETIMEDOUT);
}

static void slot_give_on_state(struct listener *l, clave_state state, clave_err why)
{
    (void)why;
    struct slot_give *g = LIST_ENTRY(l, struct slot_give, listener);
    if (state == CLAVE_STATE_CLOSED)
        slot_give_answer(g, CLAVE_ECLOSED);
}

void clave__slots_cancel_gives(clave_async_slots *s)
{
    for (struct list *e = s->gives.next; e != &s->gives; e = e->next) {
        struct slot_give *g = LIST_ENTRY(e, struct slot_give, link);
        if (g->state != GIVE_ENDED)
            slot_give_answer(g, CLAVE_ECANCELED);
    }
}

/* ---- the public calls ------------------------------------------------------------------------ */

static clave_err slot_give_new(struct slot_give **out, clave_async_slots *s,
                               const clave_slot *which)
{
    char name[SLOT_NAME_CAP];
    *out = NULL;
    if (!clave__slot_id_is_valid(which->id) || which->token < 0)
        return CLAVE_EINVAL;
    if (clave_async_client_state(s->client) == CLAVE_STATE_CLOSED)
        return CLAVE_ECLOSED;
    struct slot_give *g = clave__mem_zalloc(s->mem, sizeof *g);
    if (!g)
        return CLAVE_ENOMEM;
    g->slots = s;
    g->token = which->token;
    memcpy(g->id, which->id, strlen(which->id) + 1);
    clave__slot_name_format(name, g->id);
    list_init(&g->link);
    list_init(&g->due.link);
    list_init(&g->listener.link);
    g->due.run = slot_give_on_due;
    g->listener.on_state = slot_give_on_state;
    clave__timer_init(&g->pause, slot_give_on_pause);
    clave__timer_init(&g->limit, slot_give_on_limit);
    g->node = clave__path_child(s->mem, s->paths.owners, name);
    if (!g->node) {
        slot_give_free(g);
        return CLAVE_ENOMEM;
    }
    *out = g;
    return CLAVE_OK;
}

static void slot_give_start(struct slot_give *g, int64_t deadline, clave_async_slots_give_cb *cb,
                            void *arg)
{
    clave_async_slots *s = g->slots;
    g->cb = cb;
    g->arg = arg;
    clave__slots_hold(s);
    list_push_back(&s->gives, &g->link);
    if (deadline != CLAVE_NEVER)
        clave__client_timer_set(s->client, &g->limit, deadline);
    slot_give_withdraw(g);
}

clave_err clave_async_slots_give(clave_async_slots *s, const char *id, int64_t token,
                                 int64_t deadline, clave_async_slots_give_cb *cb, void *arg)
{
    struct slot_give *g;
    clave_err err = slot_give_new(&g, s, &(clave_slot){.id = id, .token = token});
    if (err == CLAVE_OK)
        slot_give_start(g, deadline, cb, arg);
    return err;
}

clave_err clave_async_slots_break(clave_async_slots *s, const clave_slot *which, int64_t deadline,
                                  clave_async_slots_give_cb *cb, void *arg)
{
    const char *by = which->by, *reason = which->reason;
    struct slot_give *g;
    if (!reason || !*reason || !clave__slot_text_is_valid(reason) || !clave__slot_text_is_valid(by))
        return CLAVE_EINVAL;
    clave_err err = slot_give_new(&g, s, which);
    if (err != CLAVE_OK)
        return err;
    g->breaks = true;
    g->reason = clave__mem_strdup(s->mem, reason);
    g->by = by ? clave__mem_strdup(s->mem, by) : NULL;
    if (!g->reason || (by && !g->by)) {
        slot_give_free(g);
        return CLAVE_ENOMEM;
    }
    slot_give_start(g, deadline, cb, arg);
    return CLAVE_OK;
}
