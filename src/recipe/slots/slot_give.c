/* slot_give.c - a give, and what a break does (slot_break.c): finds the slot of an id, and deletes
 * it. Invariant: what is deleted is the node that was found, whose name no other slot ever has; so
 * a delete whose answer was lost is repeated without harm. */
#include "recipe/slots/slot_give.h"

#include <string.h>

#include "base/err_class.h"
#include "base/path.h"
#include "recipe/slots/slot_data.h"
#include "recipe/slots/slot_name.h"

enum { TRIES = 16, PAUSE_MS = 250 };

void clave__slot_give_free(struct slot_give *g)
{
    const struct clave_mem *mem = g->slots->mem;
    clave__client_timer_clear(g->slots->client, &g->pause);
    clave__client_unlisten(&g->listener);
    clave__slot_count_fini(&g->count);
    clave__mem_free(mem, g->record);
    clave__mem_free(mem, g->found);
    clave__mem_free(mem, g->by);
    clave__mem_free(mem, g->reason);
    clave__mem_free(mem, g);
}

static void slot_give_done(struct slot_give *g, clave_err err, bool given)
{
    clave_async_slots *s = g->slots;
    if (g->cb)
        g->cb(s, err, given ? &g->found->slot : NULL, g->arg);
    clave__slot_give_free(g);
    clave__slots_drop(s);
}

/* An attempt failed: again a little later, or this is the end. */
static void slot_give_retry_or_fail(struct slot_give *g, clave_err err)
{
    clave_async_client *c = g->slots->client;
    bool again = clave__err_passes(err) && ++g->tries < TRIES &&
                 clave_async_client_state(c) != CLAVE_STATE_CLOSED;
    if (again) {
        clave__client_timer_set(c, &g->pause, clave__client_now(c) + PAUSE_MS);
        clave__client_listen(c, &g->listener);
    } else
        slot_give_done(g, g->doubt && err != CLAVE_OK ? CLAVE_ECONNLOSS : err, false);
}

/* ---- the delete ------------------------------------------------------------------------------ */

static clave_err slot_give_delete(struct slot_give *g);

static void slot_give_on_record(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_give *g = arg;
    clave_err err = res->err == CLAVE_ENODEEXISTS ? CLAVE_OK : res->err;
    if (err == CLAVE_OK)
        err = slot_give_delete(g);
    if (err != CLAVE_OK)
        slot_give_retry_or_fail(g, err);
}

/* The node of the record is missing. */
static clave_err slot_give_make_record(struct slot_give *g)
{
    const clave_create_options o = {
        .size = sizeof o, .acls = g->slots->queue.spec.acls, .nacls = g->slots->queue.spec.nacls};
    return clave_async_create(g->slots->client, g->slots->paths.broken, "", 0, &o,
                              slot_give_on_record, g);
}

static void slot_give_on_deleted(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_give *g = arg;
    clave_err err = res->err;
    bool no_record = g->breaks && res->nops == 2 && res->ops[1].err == CLAVE_ENONODE;
    if (clave_err_classify(err) == CLAVE_CLASS_UNKNOWN || err == CLAVE_ECLOSED)
        g->doubt = true;
    if (no_record) {
        err = slot_give_make_record(g);
        if (err == CLAVE_OK)
            return;
    }
    if (err == CLAVE_OK || err == CLAVE_ENONODE) /* without a doubt it was somebody else's give */
        slot_give_done(g, CLAVE_OK, err == CLAVE_OK || g->doubt);
    else
        slot_give_retry_or_fail(g, err);
}

static clave_err slot_give_delete(struct slot_give *g)
{
    clave_async_slots *s = g->slots;
    const char *node = g->found->slot.node;
    if (!g->breaks)
        return clave_async_delete(s->client, node, -1, slot_give_on_deleted, g);
    const clave_op ops[2] = {
        {.kind = CLAVE_OP_DELETE, .path = node, .version = -1},
        {.kind = CLAVE_OP_SET,
         .path = s->paths.broken,
         .data = g->record,
         .len = g->nrecord,
         .version = -1},
    };
    return clave_async_multi(s->client, ops, 2, slot_give_on_deleted, g);
}

/* ---- the slot -------------------------------------------------------------------------------- */

/* The record says whose slot it was, and who broke it. */
static clave_err slot_give_compose(struct slot_give *g)
{
    const clave_slot record = {.id = g->id,
                               .host = g->found->slot.host,
                               .by = g->by,
                               .reason = g->reason,
                               .token = g->found->slot.token};
    g->record = clave__slot_data_format(g->slots->mem, &record, &g->nrecord);
    return g->record ? CLAVE_OK : CLAVE_ENOMEM;
}

static void slot_give_on_read(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_give *g = arg;
    clave_err err = res->err;
    if (err == CLAVE_ENONODE || (err == CLAVE_OK && g->token && g->token != res->stat->czxid)) {
        slot_give_done(g, CLAVE_OK, false);
        return;
    }
    if (err == CLAVE_OK) {
        clave__mem_free(g->slots->mem, g->found); /* there was no memory for what followed */
        g->found = clave__slot_data_parse(g->slots->mem, res, false);
        err = g->found ? CLAVE_OK : CLAVE_ENOMEM;
    }
    if (err == CLAVE_OK && g->breaks)
        err = slot_give_compose(g);
    if (err == CLAVE_OK)
        err = slot_give_delete(g);
    if (err != CLAVE_OK)
        slot_give_retry_or_fail(g, err);
}

static void slot_give_on_count(struct slot_count *count)
{
    struct slot_give *g = LIST_ENTRY(count, struct slot_give, count);
    clave_err err = count->err;
    if (err == CLAVE_OK && !count->own) {
        slot_give_done(g, CLAVE_OK, false);
        return;
    }
    if (err == CLAVE_OK)
        err = clave_async_get(g->slots->client, count->own, NULL, slot_give_on_read, g);
    if (err != CLAVE_OK)
        slot_give_retry_or_fail(g, err);
}

static clave_err slot_give_attempt(struct slot_give *g)
{
    bool known = g->found && (!g->breaks || g->record);
    return known ? slot_give_delete(g) : clave__slot_count_read(&g->count, true, false);
}

static void slot_give_on_pause(struct timer *timer, int64_t now)
{
    (void)now;
    struct slot_give *g = LIST_ENTRY(timer, struct slot_give, pause);
    clave__client_unlisten(&g->listener);
    clave_err err = slot_give_attempt(g);
    if (err != CLAVE_OK)
        slot_give_retry_or_fail(g, err);
}

static void slot_give_on_state(struct listener *l, clave_state state, clave_err why)
{
    (void)why;
    struct slot_give *g = LIST_ENTRY(l, struct slot_give, listener);
    if (state == CLAVE_STATE_CLOSED)
        slot_give_retry_or_fail(g, CLAVE_ECLOSED);
}

/* ---- the calls ------------------------------------------------------------------------------- */

clave_err clave__slot_give_new(struct slot_give **out, clave_async_slots *s, const char *id,
                               int64_t token)
{
    *out = NULL;
    if (!clave__slot_id_is_valid(id) || token < 0)
        return CLAVE_EINVAL;
    struct slot_give *g = clave__mem_zalloc(s->mem, sizeof *g);
    if (!g)
        return CLAVE_ENOMEM;
    g->slots = s;
    g->token = token;
    memcpy(g->id, id, strlen(id) + 1);
    clave__timer_init(&g->pause, slot_give_on_pause);
    list_init(&g->listener.link);
    g->listener.on_state = slot_give_on_state;
    (void)clave__slot_count_init(&g->count, s, g->id, slot_give_on_count, NULL);
    *out = g;
    return CLAVE_OK;
}

clave_err clave__slot_give_start(struct slot_give *g, clave_async_slots_give_cb *cb, void *arg)
{
    g->cb = cb;
    g->arg = arg;
    clave_err err = slot_give_attempt(g);
    if (err == CLAVE_OK)
        clave__slots_hold(g->slots);
    else
        clave__slot_give_free(g);
    return err;
}

clave_err clave_async_slots_give(clave_async_slots *s, const char *id, int64_t token,
                                 clave_async_slots_give_cb *cb, void *arg)
{
    struct slot_give *g;
    clave_err err = clave__slot_give_new(&g, s, id, token);
    return err == CLAVE_OK ? clave__slot_give_start(g, cb, arg) : err;
}
