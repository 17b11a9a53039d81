/* container_ttl.c - sweeps: removing containers that have become empty and nodes whose time to live
 * has passed. clave__server_tick starts one when sweep.next has come. A sweep looks at every node
 * that was in the list when it began, over as many turns as that takes. Each removal is a
 * transaction of its own. */
#include "server/request/request.h"

#include <assert.h>

/* The cost of removing a node, in looks. */
enum { LOOKS_A_REMOVAL = 20 };
enum { MINUTE_MS = 60000, BATCHES_A_MINUTE = 600 };

static bool container_is_over(const struct server *s, const struct node *n)
{
    assert(clave__owner_kind(n->stat.owner) == NODE_CONTAINER ||
           clave__owner_kind(n->stat.owner) == NODE_TTL);
    if (n->stat.num_children > 0)
        return false;
    const int64_t unchanged_ms = s->wall - n->stat.mtime;
    if (clave__owner_kind(n->stat.owner) != NODE_CONTAINER)
        return unchanged_ms > clave__owner_ttl_ms(n->stat.owner);
    if (n->stat.cversion > 0)
        return true;
    /* It never had children; perhaps its client is just about to create the first. */
    return s->limits.never_used_ms > 0 && unchanged_ms > s->limits.never_used_ms;
}

static clave_err container_sweep_one(struct server *s, struct node *n)
{
    clave__write_begin(s, 0, 0, OP_DELETE_CONTAINER);
    struct change *c = clave__txn_add(&s->txn, OP_DELETE_CONTAINER, clave__node_path_bytes(n));
    if (!c)
        return CLAVE_ENOMEM;
    c->node = n;
    clave__txn_make(&s->txn);
    clave_err err = clave__write_commit(s);
    if (err == CLAVE_OK)
        clave__txn_end(&s->txn);
    return err;
}

/* How many nodes one turn removes at most: a tenth of what may be removed in a second, so that few
 * syncs are needed. */
static int32_t container_sweep_batch(const struct server *s)
{
    int32_t n = s->limits.container_rate / BATCHES_A_MINUTE;
    return n < 1 ? 1 : n;
}

static void container_sweep_go_on_after(struct server *s, int64_t ms)
{
    s->sweep.next = s->now + (ms > 0 ? ms : 1);
}

void clave__sweep(struct server *s)
{
    struct list *swept = &s->tree.swept;
    const int32_t batch = container_sweep_batch(s);
    int32_t removed = 0;
    int looks = LOOKS_A_TURN;
    if (list_empty(&s->sweep.end))
        list_push_back(swept, &s->sweep.end);
    for (; swept->next != &s->sweep.end; looks--) {
        if (removed == batch || looks <= 0) {
            int64_t share_ms = (int64_t)removed * MINUTE_MS / s->limits.container_rate;
            container_sweep_go_on_after(s, share_ms);
            return;
        }
        struct list *e = swept->next;
        struct node *n = &LIST_ENTRY(e, struct owned_node, link)->node;
        list_remove(e);
        list_push_back(swept, e);
        if (!container_is_over(s, n))
            continue;
        const uint64_t sent = s->counts.packets_sent;
        if (container_sweep_one(s, n) != CLAVE_OK)
            break; /* out of memory: the next sweep will do */
        removed++;
        looks -= LOOKS_A_REMOVAL + LOOKS_AN_EVENT * (int)(s->counts.packets_sent - sent);
    }
    list_remove(&s->sweep.end);
    container_sweep_go_on_after(s, s->limits.container_check_ms);
}
