/* transfer.c - hands leadership over: a listing; then a transaction that succeeds only while the
 * nodes of the leader and the target exist, and deletes the nodes between them; then the leader
 * resigns, on its own or because it is asked to. Called by the public API and latch.c.
 * What must stay true: no candidate can get in between leader and target, since sequence numbers
 * only grow. */
#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "client/client_for_recipes.h"
#include "recipe/election/latch_internal.h"
#include "recipe/queue/priority_tag.h"
#include "recipe/queue/queue_order.h"

/* A try fails if a candidate between leader and target has left in the meantime. */
enum { TRIES = 16 };

enum aim {
    AIM_TARGET, /* hand over to `target`; NULL: to whoever comes next */
    AIM_YIELD,  /* hand over to the candidate with the highest priority */
    AIM_CLAIM,  /* hand over to `target` if it has the highest priority and the leader has a lower
                   one */
};

struct transfer {
    clave_async_latch *l;    /* the leader's latch; NULL: another client leads */
    clave_async_latch *keep; /* the latch that asked for it and must stay alive; NULL: none */
    const struct clave_mem *mem;
    enum aim aim;
    char *path;
    char *target; /* name of its node */
    char *leader; /* full path; unless `l` is set, it comes from the listing */
    clave_async_transfer_cb *cb;
    void *arg;
    int tries;
    /* The transaction. */
    clave_op *ops;
    size_t nops;
    char *paths; /* of the operations */
};

static void transfer_forget_ops(struct transfer *t)
{
    clave__mem_free(t->mem, t->ops);
    clave__mem_free(t->mem, t->paths);
    t->ops = NULL;
    t->paths = NULL;
    t->nops = 0;
}

static void transfer_free(struct transfer *t)
{
    transfer_forget_ops(t);
    clave__mem_free(t->mem, t->path);
    clave__mem_free(t->mem, t->target);
    clave__mem_free(t->mem, t->leader);
    clave__mem_free(t->mem, t);
}

static void transfer_finish(clave_async_client *c, struct transfer *t, clave_err err)
{
    clave_async_latch *keep = t->keep;
    if (t->cb)
        t->cb(c, err, t->arg);
    transfer_free(t);
    if (keep)
        clave__latch_drop(keep);
}

static bool transfer_is_still_first(const struct transfer *t)
{
    return clave__latch_is_first(t->l) && strcmp(t->l->place->node.watch.path, t->leader) == 0;
}

/* Resigns. After a yield it queues again with its priority, otherwise without. */
static clave_err transfer_step_down(struct transfer *t)
{
    if (!transfer_is_still_first(t))
        return CLAVE_ELOST;
    if (t->aim != AIM_YIELD)
        return clave_async_latch_resign(t->l);
    clave_err err = clave__latch_rejoin(t->l, false);
    return err == CLAVE_OK ? CLAVE_ELOST : err;
}

static void transfer_on_names(clave_async_client *c, const clave_result *res, void *arg);

static clave_err transfer_list(clave_async_client *c, struct transfer *t)
{
    transfer_forget_ops(t);
    t->tries++;
    return clave_async_children(c, t->path, NULL, transfer_on_names, t);
}

/* ---- the transaction ------------------------------------------------------------------------- */

static void transfer_on_done(clave_async_client *c, const clave_result *res, void *arg)
{
    struct transfer *t = arg;
    clave_err err = res->err;
    /* Somebody else has written to the leader's node, which means that the leader has been asked.
     */
    if (err == CLAVE_EBADVERSION && !t->l && !t->target)
        err = CLAVE_OK;
    if ((err == CLAVE_ENONODE || err == CLAVE_EBADVERSION) && t->tries < TRIES) {
        err = transfer_list(c, t);
        if (err == CLAVE_OK)
            return;
    }
    if (err == CLAVE_OK && t->l)
        err = transfer_step_down(t);
    transfer_finish(c, t, err);
}

/* Asks the leader by writing back the data that is there, so that its id does not change. */
static void transfer_on_leader_data(clave_async_client *c, const clave_result *res, void *arg)
{
    struct transfer *t = arg;
    clave_err err = res->err;
    if (err == CLAVE_OK) {
        clave_op *ask = &t->ops[t->nops++];
        *ask = (clave_op){.kind = CLAVE_OP_SET, .path = t->leader, .data = res->data};
        ask->len = res->len;
        ask->version = res->stat->version;
        err = clave_async_multi(c, t->ops, t->nops, transfer_on_done, t);
    } else if (err == CLAVE_ENONODE && t->tries < TRIES) {
        err = transfer_list(c, t);
    }
    if (err != CLAVE_OK)
        transfer_finish(c, t, err);
}

/* ---- the listing ----------------------------------------------------------------------------- */

/* Keeps the nodes of the election's kind, in order; the leader's comes first. */
static size_t transfer_filter(const clave_result *res, size_t *order)
{
    size_t n = 0;
    for (size_t i = 0; i < res->nnames; i++)
        if (clave__queue_order_is_kind(&clave__queue_order_latch, res->names[order[i]]))
            order[n++] = order[i];
    return n;
}

static const char *transfer_add_path(struct transfer *t, char **at, const char *name)
{
    char *path = *at;
    *at += clave__path_put_child(path, t->path, name) + 1;
    return path;
}

/* Makes the operations: check the leader, delete the nodes in between, check the target; leaves
 * room for one more. */
static clave_err transfer_make_ops(struct transfer *t, const char *const *names,
                                   const size_t *order, size_t target)
{
    size_t room = 0;
    for (size_t i = 0; i <= target; i++)
        room += strlen(t->path) + strlen(names[order[i]]) + 2;
    t->ops = clave__mem_zalloc(t->mem, (target + 2) * sizeof *t->ops);
    t->paths = clave__mem_alloc(t->mem, room);
    if (!t->ops || !t->paths)
        return CLAVE_ENOMEM;
    char *at = t->paths;
    for (size_t i = 0; i <= target; i++)
        t->ops[t->nops++] = (clave_op){
            .kind = i == 0 || i == target ? CLAVE_OP_CHECK : CLAVE_OP_DELETE,
            .path = transfer_add_path(t, &at, names[order[i]]),
            .version = -1,
        };
    return CLAVE_OK;
}

static clave_err transfer_set_leader(struct transfer *t)
{
    assert(t->nops > 0);
    clave__mem_free(t->mem, t->leader);
    t->leader = clave__mem_strdup(t->mem, t->ops[0].path);
    return t->leader ? CLAVE_OK : CLAVE_ENOMEM;
}

/* The index in `order` of the candidate that is to lead next; n: it is not in the queue. *done:
 * nothing needs to be done. */
static size_t transfer_choose(const struct transfer *t, const char *const *names,
                              const size_t *order, size_t n, bool *done)
{
    size_t target = 0;
    if (n == 0 || (t->aim == AIM_TARGET && !t->target))
        return target;
    if (t->aim == AIM_TARGET)
        while (target < n && strcmp(names[order[target]], t->target) != 0)
            target++;
    else
        target = clave__priority_highest(names, order, n);
    *done = target == 0;
    if (t->aim == AIM_CLAIM)
        *done = *done || strcmp(names[order[target]], t->target) != 0;
    return target;
}

/* Decides what to do, given the listing. */
static clave_err transfer_plan(struct transfer *t, const clave_result *res, bool *done)
{
    size_t *order = clave__mem_alloc(t->mem, res->nnames * sizeof *order);
    if (!order)
        return CLAVE_ENOMEM;
    clave_err err =
        clave__queue_order_sort(&clave__queue_order_latch, t->mem, res->names, res->nnames, order);
    size_t n = err == CLAVE_OK ? transfer_filter(res, order) : 0;
    size_t target = transfer_choose(t, res->names, order, n, done);
    if (err == CLAVE_OK && target == n)
        err = CLAVE_ENONODE;
    if (err == CLAVE_OK)
        err = transfer_make_ops(t, res->names, order, target);
    clave__mem_free(t->mem, order);
    if (err == CLAVE_OK && !t->l)
        err = transfer_set_leader(t);
    else if (err == CLAVE_OK && strcmp(t->ops[0].path, t->leader) != 0)
        err = CLAVE_ELOST;
    return err;
}

static void transfer_on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    struct transfer *t = arg;
    bool done = false;
    clave_err err = res->err;
    if (err == CLAVE_OK)
        err = res->nnames > 0 ? transfer_plan(t, res, &done) : CLAVE_ENONODE;
    if (err == CLAVE_OK && !done && t->l)
        err = clave_async_multi(c, t->ops, t->nops, transfer_on_done, t);
    else if (err == CLAVE_OK && !done)
        err = clave_async_get(c, t->leader, NULL, transfer_on_leader_data, t);
    if (err != CLAVE_OK || done)
        transfer_finish(c, t, err);
}

/* ---- the public calls ------------------------------------------------------------------------ */

static clave_err transfer_begin(clave_async_client *c, const struct transfer *model,
                                const char *path, const char *target, const char *leader)
{
    const struct clave_mem *mem = clave__client_mem(c);
    struct transfer *t = clave__mem_alloc(mem, sizeof *t);
    if (!t)
        return CLAVE_ENOMEM;
    *t = *model;
    t->mem = mem;
    t->path = clave__mem_strdup(mem, path);
    t->target = target ? clave__mem_strdup(mem, target) : NULL;
    t->leader = leader ? clave__mem_strdup(mem, leader) : NULL;
    clave_err err = CLAVE_ENOMEM;
    if (t->path && (t->target || !target) && (t->leader || !leader))
        err = transfer_list(c, t);
    if (err != CLAVE_OK)
        transfer_free(t);
    else if (t->keep)
        clave__latch_hold(t->keep);
    return err;
}

clave_err clave_async_latch_transfer(clave_async_latch *l, const char *node,
                                     clave_async_transfer_cb *cb, void *arg)
{
    struct latch_lead lead;
    if (!node)
        return CLAVE_EINVAL;
    if (!clave__latch_lead(l, &lead))
        return CLAVE_ENOTHELD;
    struct transfer model = {.l = l, .keep = l, .cb = cb, .arg = arg};
    return transfer_begin(lead.client, &model, lead.path, node, lead.node);
}

clave_err clave_async_leader_transfer(clave_async_client *c, const char *path, const char *node,
                                      clave_async_transfer_cb *cb, void *arg)
{
    struct transfer model = {.cb = cb, .arg = arg};
    return transfer_begin(c, &model, path, node, NULL);
}

clave_err clave__transfer_yield(clave_async_latch *l, clave_async_transfer_cb *cb)
{
    struct transfer model = {.l = l, .keep = l, .aim = AIM_YIELD, .cb = cb, .arg = l};
    return transfer_begin(l->client, &model, l->config.path, NULL, l->place->node.watch.path);
}

clave_err clave__transfer_claim(clave_async_latch *l, clave_async_transfer_cb *cb)
{
    struct transfer model = {.keep = l, .aim = AIM_CLAIM, .cb = cb, .arg = l};
    return transfer_begin(l->client, &model, l->config.path,
                          clave__path_name(l->place->node.watch.path), NULL);
}
