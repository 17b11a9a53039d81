/* queue_nodes.c - see queue_nodes.h. What must stay true: the nodes do not move, so a request may
 * have one as its argument. */
#include "recipe/queue/queue_nodes.h"

#include "base/path.h"
#include "recipe/queue/identity.h"

/* Where ephemeral nodes have their session, ZooKeeper puts markers for containers
 * (0x8000000000000000) and for nodes with a TTL (0xff, two zero bytes, five bytes of milliseconds).
 * A server with the id 255 makes session ids that begin with 0xff, too, but the following bytes are
 * its clock. */
bool clave__queue_node_is_left_over(const clave_stat *stat)
{
    enum { TTL_MARK = 0xff0000, TTL_BITS = 40 };
    uint64_t owner = (uint64_t)stat->ephemeral_owner;
    bool session = owner != 0 && owner != UINT64_C(1) << 63 && owner >> TTL_BITS != TTL_MARK;
    return stat->czxid != 0 && !session;
}

clave_err clave__queue_nodes_init(struct queue_nodes *q, const struct clave_mem *mem,
                                  const struct queue_order_rule *rule, queue_nodes_filter *filter,
                                  const clave_result *listing, void *reader)
{
    size_t n = listing->nnames;
    size_t *order = clave__mem_alloc(mem, n * sizeof *order);
    *q = (struct queue_nodes){.mem = mem, .list = clave__mem_zalloc(mem, n * sizeof *q->list)};
    clave_err err = order && q->list ? CLAVE_OK : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        err = clave__queue_order_sort(rule, mem, listing->names, n, order);
    for (size_t i = 0; err == CLAVE_OK && i < n; i++) {
        const char *name = listing->names[order[i]];
        if (!filter(rule, name, listing->names[order[0]]))
            continue;
        struct queue_node *node = &q->list[q->n++];
        node->reader = reader;
        node->path = clave__path_child(mem, listing->path, name);
        node->name = node->path ? clave__path_name(node->path) : NULL;
        err = node->path ? CLAVE_OK : CLAVE_ENOMEM;
    }
    clave__mem_free(mem, order);
    return err;
}

void clave__queue_nodes_fini(struct queue_nodes *q)
{
    for (size_t i = 0; i < q->n; i++) {
        clave__mem_free(q->mem, q->list[i].path);
        clave__mem_free(q->mem, q->list[i].data);
    }
    if (q->mem)
        clave__mem_free(q->mem, q->list);
}

clave_err clave__queue_node_take(struct queue_node *node, const struct clave_mem *mem,
                                 const clave_result *res)
{
    node->there = true;
    node->stat = *res->stat;
    node->data = clave__mem_strndup(mem, res->len ? res->data : "", res->len);
    if (!node->data)
        return CLAVE_ENOMEM;
    clave__identity_parse(node->data, res->len, &node->identity);
    return CLAVE_OK;
}
