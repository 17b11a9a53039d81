/* lock_replay.c - reconstructs the locks of a tree from its transactions (lock_replay.h). What must
 * stay true: model, history and elections are what web/observe/observe.c would have made of the
 * same nodes, apart from what only a log knows. */
#include "observe/lock_replay.h"

#include <assert.h>

#include "base/memory.h"

static enum lock_cause replay_cause(const struct lock_replay *r, const struct lock_node *p)
{
    if (p->kept)
        return LOCK_RELEASED;
    if (p->left_over)
        return LOCK_BROKEN;
    if (r->ends != LOCK_UNKNOWN || !p->session)
        return r->ends;
    return p->session->id == r->txn.session ? LOCK_RELEASED : LOCK_BROKEN;
}

static void replay_on_change(void *arg, enum lock_change what, const struct lock_node *p,
                             int64_t at)
{
    struct lock_replay *r = arg;
    const char *path = clave__lock_told_path(what, p);
    if (!path)
        return;
    clave__election_note(&r->elections, what, at, p);
    uint64_t n = clave__history_add(&r->history, at, r->txn.zxid, what, p, path);
    if (what != LOCK_ENDED)
        return;
    clave__history_set_cause(&r->history, n, replay_cause(r, p));
    clave__election_set_cause(&r->elections, path, p->token, replay_cause(r, p));
    if (p->kept) {
        r->slot = p->token;
        r->slot_entry = n;
    }
}

/* A break deletes the slot and then records whose it was, all in one transaction. */
static void replay_see_broken(struct lock_replay *r, const char *path, const void *data, size_t len)
{
    int64_t token = clave__lock_broken_slot(path, data, len);
    if (token && token == r->slot)
        clave__history_set_cause(&r->history, r->slot_entry, LOCK_BROKEN);
}

clave_err clave__lock_replay_new(struct lock_replay **out, const struct clave_mem *mem,
                                 uint64_t seed)
{
    struct lock_replay *r = *out = clave__mem_zalloc(mem, sizeof *r);
    if (!r)
        return CLAVE_ENOMEM;
    r->mem = *mem;
    clave__history_init(&r->history, &r->mem, seed);
    clave__election_model_init(&r->elections, &r->mem, seed);
    clave_err err = clave__lock_model_init(&r->model, &r->mem, seed, LOCK_MODEL_BYTES);
    r->model.changed = replay_on_change;
    r->model.arg = r;
    if (err != CLAVE_OK) {
        clave__lock_replay_free(r);
        *out = NULL;
    }
    return err;
}

void clave__lock_replay_free(struct lock_replay *r)
{
    if (!r)
        return;
    struct clave_mem mem = r->mem;
    clave__history_fini(&r->history);
    clave__election_model_fini(&r->elections);
    clave__lock_model_fini(&r->model);
    clave__mem_free(&mem, r);
}

/* Settles all changes at once, since nobody needs them one by one. */
static void replay_settle(struct lock_replay *r)
{
    for (struct lock_queue *q; (q = clave__lock_model_take_dirty(&r->model));)
        clave__lock_model_settle(&r->model, q);
    for (struct election *e; (e = clave__election_take_changed(&r->elections));)
        clave__election_settle(&r->elections, e,
                               clave__lock_model_get(&r->model, e->path, false) != NULL);
}

void clave__lock_replay_node(struct lock_replay *r, const char *path, const clave_stat *stat,
                             const void *data, size_t len)
{
    assert(r->model.loading);
    clave__lock_model_node(&r->model, stat->ctime, path, stat, data, len);
}

void clave__lock_replay_loaded(struct lock_replay *r)
{
    clave__lock_model_loaded(&r->model);
    clave__election_begin(&r->elections, &r->model, r->txn.time);
    replay_settle(r);
}

void clave__lock_replay_txn(struct lock_replay *r, const struct lock_replay_txn *txn)
{
    r->txn = *txn;
    r->ends = LOCK_UNKNOWN;
}

void clave__lock_replay_created(struct lock_replay *r, const char *path, bool ephemeral,
                                const void *data, size_t len)
{
    assert(!r->model.loading);
    clave_stat stat = {.czxid = r->txn.zxid,
                       .mzxid = r->txn.zxid,
                       .ctime = r->txn.time,
                       .ephemeral_owner = ephemeral ? r->txn.session : 0};
    clave__lock_model_node(&r->model, r->txn.time, path, &stat, data, len);
    clave__election_set_over(&r->elections, path, false);
    replay_settle(r);
}

void clave__lock_replay_written(struct lock_replay *r, const char *path, int32_t version,
                                const void *data, size_t len)
{
    clave__lock_model_written(&r->model, r->txn.time, path, version, data, len);
    replay_see_broken(r, path, data, len);
    replay_settle(r);
}

void clave__lock_replay_deleted(struct lock_replay *r, const char *path)
{
    clave__lock_model_gone(&r->model, r->txn.time, path);
    clave__election_set_over(&r->elections, path, true);
    replay_settle(r);
}

void clave__lock_replay_closed(struct lock_replay *r, bool expired)
{
    assert(!r->model.loading);
    r->ends = expired ? LOCK_EXPIRED : LOCK_CLOSED;
    clave__lock_model_session_gone(&r->model, r->txn.time, r->txn.session);
    replay_settle(r);
}

static void replay_date_holders(const struct lock_queue *known, struct lock_model *m,
                                struct lock_queue *q)
{
    for (const struct lock_node *k = NULL; (k = clave__lock_holder_after(known, k));) {
        struct lock_key key = clave__lock_key(k);
        struct ordered_node *node = clave__ordered_find(&q->places, &key);
        struct lock_node *p = node ? ORDERED_ENTRY(node, struct lock_node, node) : NULL;
        if (!p || p->token != k->token || !p->held_before || k->held_before)
            continue;
        p->held = k->held;
        p->held_before = false;
        clave__lock_model_set_dirty(m, q);
    }
}

void clave__lock_replay_date(const struct lock_replay *r, struct lock_model *m)
{
    struct lock_queue_key key = {"", 0, false};
    for (struct ordered_node *n; (n = clave__ordered_after(&r->model.queues, &key, ORDERED_ANY));) {
        const struct lock_queue *known = ORDERED_ENTRY(n, struct lock_queue, node);
        key = (struct lock_queue_key){known->path, known->len, known->leases};
        struct lock_queue *q = clave__lock_queue_at(m, &key);
        if (q)
            replay_date_holders(known, m, q);
    }
}

bool clave__lock_replay_is_complete(const struct lock_replay *r)
{
    return r->model.left_out == 0;
}
