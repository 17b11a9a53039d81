/* guarded_write.h - guarded writes: a multi that first checks some nodes, so that the write is done
 * only if the grants of those nodes are still valid at the server. */
#ifndef CLAVE_RECIPE_CONTENDER_GUARDED_WRITE_H
#define CLAVE_RECIPE_CONTENDER_GUARDED_WRITE_H

#include <stdbool.h>

#include "clave/async/client.h"

/* A node that must still exist. */
struct write_guard {
    const char *const *nodes;
    size_t n;
    bool kept; /* no session keeps it, so the end of ours says nothing about it */
};

/* Like clave_async_multi. ELOST in res.err means that a node or its session is gone, and nothing
 * was done. _one is for a single operation, and its result is that operation's; with _multi,
 * res.ops are the caller's. */
clave_err clave__guarded_write_one(clave_async_client *c, struct write_guard guard,
                                   const clave_op *op, clave_result_cb *cb, void *arg);
clave_err clave__guarded_write_multi(clave_async_client *c, struct write_guard guard,
                                     const clave_op *ops, size_t nops, clave_result_cb *cb,
                                     void *arg);

#endif
