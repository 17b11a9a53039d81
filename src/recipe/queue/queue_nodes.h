/* queue_nodes.h - the nodes of one queue, from a listing, and what each of them says, once its data
 * is read. */
#ifndef CLAVE_RECIPE_QUEUE_QUEUE_NODES_H
#define CLAVE_RECIPE_QUEUE_QUEUE_NODES_H

#include "clave/async/mutex.h"
#include "recipe/queue/queue_order.h"

/* Of a node in a queue that exists: no session owns it. It was made by hand, or by a program that
 * copied the tree, and is persistent, a container, or has a TTL; so it holds nothing, keeps
 * everybody behind it waiting, and does not end with a session. */
bool clave__queue_node_is_left_over(const clave_stat *stat);

struct queue_node {
    void *reader; /* whoever asks for its data */
    char *path;
    const char *name; /* in the path */
    char *data;       /* what the identity points into */
    clave_stat stat;
    clave_identity identity;
    bool there; /* it was read */
};

/* In the order of the queue. */
struct queue_nodes {
    const struct clave_mem *mem;
    struct queue_node *list;
    size_t n;
};

/* Is a child of this name part of the queue? `first` is the name that the rule sorts first. */
typedef bool queue_nodes_filter(const struct queue_order_rule *rule, const char *name,
                                const char *first);

/* Takes those of a listing that pass the filter. ENOMEM: _fini is harmless. */
clave_err clave__queue_nodes_init(struct queue_nodes *q, const struct clave_mem *mem,
                                  const struct queue_order_rule *rule, queue_nodes_filter *filter,
                                  const clave_result *listing, void *reader);
void clave__queue_nodes_fini(struct queue_nodes *q);
/* Copies the answer to a getData of the node. ENOMEM. */
clave_err clave__queue_node_take(struct queue_node *node, const struct clave_mem *mem,
                                 const clave_result *res);

#endif
