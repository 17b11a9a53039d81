/* queue_nodes.h - the nodes of a queue, taken from a listing, and the content of each once its data
 * was read. */
#ifndef CLAVE_RECIPE_QUEUE_QUEUE_NODES_H
#define CLAVE_RECIPE_QUEUE_QUEUE_NODES_H

#include "clave/async/mutex.h"
#include "recipe/queue/queue_order.h"

/* True if no session owns an existing node in a queue. Such a node was made by hand, or by a
 * program that copied the tree; it is persistent, a container, or has a TTL. It holds nothing,
 * keeps everybody behind it waiting, and does not go away with any session. */
bool clave__queue_node_is_left_over(const clave_stat *stat);

struct queue_node {
    void *reader; /* for the code that requests its data */
    char *path;
    const char *name; /* points into the path */
    char *data;       /* what the identity points into */
    clave_stat stat;
    clave_identity identity;
    bool there; /* it was read */
};

/* In queue order. */
struct queue_nodes {
    const struct clave_mem *mem;
    struct queue_node *list;
    size_t n;
};

/* True if a child of this name belongs to the queue. `first` is the name that the rule sorts
 * first. */
typedef bool queue_nodes_filter(const struct queue_order_rule *rule, const char *name,
                                const char *first);

/* Takes the nodes of a listing that pass the filter. ENOMEM: calling _fini is harmless then. */
clave_err clave__queue_nodes_init(struct queue_nodes *q, const struct clave_mem *mem,
                                  const struct queue_order_rule *rule, queue_nodes_filter *filter,
                                  const clave_result *listing, void *reader);
void clave__queue_nodes_fini(struct queue_nodes *q);
/* Copies the answer to a getData of the node. ENOMEM. */
clave_err clave__queue_node_take(struct queue_node *node, const struct clave_mem *mem,
                                 const clave_result *res);

#endif
