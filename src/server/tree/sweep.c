/* sweep.c - removes containers that have become empty and nodes whose time to live has passed.
 * clave__server_tick calls it every container_check_ms. Each removal is a transaction of its own.
 */
#include "server/request/write.h"

/* At most this many at once, as in Apache. */
enum { MOST = 10000 };

static bool is_over(const struct server *s, const struct node *n)
{
    if (n->stat.num_children > 0)
        return false;
    if (clave__owner_kind(n->stat.owner) == NODE_CONTAINER)
        return n->stat.cversion > 0; /* one that never had children may be about to get some */
    return s->wall - n->stat.mtime > clave__owner_ttl_ms(n->stat.owner);
}

static clave_err sweep_one(struct server *s, struct node *n)
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

void clave__sweep(struct server *s)
{
    int left = MOST;
    for (struct list *e = s->tree.swept.next, *next; e != &s->tree.swept && left > 0; e = next) {
        struct node *n = &LIST_ENTRY(e, struct owned_node, link)->node;
        next = e->next;
        if (!is_over(s, n))
            continue;
        left--;
        if (sweep_one(s, n) != CLAVE_OK)
            return; /* out of memory: the next sweep is soon enough */
    }
}
