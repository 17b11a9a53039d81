/* latch_layout.h - the names of a latch's nodes, as its options say. */
#ifndef CLAVE_RECIPE_ELECTION_LATCH_LAYOUT_H
#define CLAVE_RECIPE_ELECTION_LATCH_LAYOUT_H

#include "clave/async/latch.h"
#include "recipe/queue/queue_order.h"

struct latch_layout {
    const struct queue_order_rule *rule;
    struct queue_order_rule own; /* if it is not Curator's */
    const char *path;            /* of the parent */
    char *parent;                /* its memory; NULL: it is the caller's */
};

/* EINVAL, EPATH, ENOMEM. What `o` and `path` point to must last as long. */
clave_err clave__latch_layout_init(struct latch_layout *l, clave_async_client *c, const char *path,
                                   const clave_latch_options *o);
void clave__latch_layout_fini(struct latch_layout *l, clave_async_client *c);

#endif
