/* participant_list.c - lists who is in a queue: one listing, then the data of all nodes at the same
 * time. What must stay true: the callback runs exactly once, later. */
#include "recipe/queue/participant_list.h"

#include "client/client_for_recipes.h"
#include "recipe/queue/priority_tag.h"
#include "recipe/queue/queue_nodes.h"

struct participant_list {
    clave_async_client *client;
    const struct clave_mem *mem;
    const struct queue_order_rule *rule;
    queue_nodes_filter *filter;
    clave_async_participants_cb *cb;
    void *arg;
    struct queue_nodes nodes;
    size_t pending; /* reads that are not answered yet */
    clave_err err;  /* the first error that counts */
};

static void participant_list_free(struct participant_list *l)
{
    clave__queue_nodes_fini(&l->nodes);
    clave__mem_free(l->mem, l);
}

static void participant_list_report(struct participant_list *l)
{
    clave_participant *list = NULL;
    size_t n = 0;
    if (l->err == CLAVE_OK && l->nodes.n > 0) {
        list = clave__mem_zalloc(l->mem, l->nodes.n * sizeof *list);
        if (!list)
            l->err = CLAVE_ENOMEM;
    }
    for (size_t i = 0; list && i < l->nodes.n; i++) {
        const struct queue_node *node = &l->nodes.list[i];
        if (node->there)
            list[n++] =
                (clave_participant){.node = node->name,
                                    .identity = node->identity,
                                    .stat = node->stat,
                                    .priority = clave__priority_of(node->name),
                                    .left_over = clave__queue_node_is_left_over(&node->stat)};
    }
    l->cb(l->client, l->err, list, n, l->arg);
    clave__mem_free(l->mem, list);
    participant_list_free(l);
}

static void participant_list_fail(struct participant_list *l, clave_err err)
{
    if (l->err == CLAVE_OK)
        l->err = err;
}

static void participant_list_on_data(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct queue_node *node = arg;
    struct participant_list *l = node->reader;
    if (res->err == CLAVE_OK)
        participant_list_fail(l, clave__queue_node_take(node, l->mem, res));
    else if (res->err == CLAVE_ENOAUTH)
        node->there = true; /* we may not read it, but it has its place in the queue */
    else if (res->err != CLAVE_ENONODE)
        participant_list_fail(l, res->err);
    if (--l->pending == 0)
        participant_list_report(l);
}

bool clave__participant_is_own_kind(const struct queue_order_rule *rule, const char *name,
                                    const char *first)
{
    (void)first;
    return clave__queue_order_is_kind(rule, name);
}

bool clave__participant_takes_part(const struct queue_order_rule *rule, const char *name,
                                   const char *first)
{
    return clave__queue_order_key(rule, name).contender ||
           !clave__queue_order_key(rule, first).contender;
}

static void participant_list_on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct participant_list *l = arg;
    if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE)
        l->err = res->err;
    else if (res->err == CLAVE_OK && res->nnames > 0)
        l->err = clave__queue_nodes_init(&l->nodes, l->mem, l->rule, l->filter, res, l);
    for (size_t i = 0; l->err == CLAVE_OK && i < l->nodes.n; i++) {
        struct queue_node *node = &l->nodes.list[i];
        l->err = clave_async_get(l->client, node->path, NULL, participant_list_on_data, node);
        if (l->err == CLAVE_OK)
            l->pending++;
    }
    if (l->pending == 0)
        participant_list_report(l);
}

clave_err clave__participant_list(clave_async_client *c, const char *path,
                                  const struct queue_order_rule *rule, bool own_kind,
                                  clave_async_participants_cb *cb, void *arg)
{
    const struct clave_mem *mem = clave__client_mem(c);
    struct participant_list *l = clave__mem_zalloc(mem, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    *l = (struct participant_list){.client = c, .mem = mem, .rule = rule, .cb = cb, .arg = arg};
    l->filter = own_kind ? clave__participant_is_own_kind : clave__participant_takes_part;
    clave_err err = clave_async_children(c, path, NULL, participant_list_on_names, l);
    if (err != CLAVE_OK)
        participant_list_free(l);
    return err;
}

clave_err clave_async_participants(clave_async_client *c, const char *path,
                                   clave_async_participants_cb *cb, void *arg)
{
    return clave__participant_list(c, path, &clave__queue_order_mutex, false, cb, arg);
}
