/* guarded_write.h - guarded writes: one multi that checks nodes first, so that the write is done
 * only while the grants of those nodes are valid at the server. */
#ifndef CLAVE_RECIPE_CONTENDER_GUARDED_WRITE_H
#define CLAVE_RECIPE_CONTENDER_GUARDED_WRITE_H

#include <stdbool.h>

#include "clave/async/client.h"

/* What must still exist. */
struct write_guard {
    const char *const *nodes;
    size_t n;
    bool kept; /* by no session: the end of ours says nothing of them */
};

/* As clave_async_multi; res.err ELOST: a node is gone, or its session, and nothing was done. _one:
 * a single operation, and the result is that of it; _multi: res.ops are those of the caller. */
clave_err clave__guarded_write_one(clave_async_client *c, struct write_guard guard,
                                   const clave_op *op, clave_result_cb *cb, void *arg);
clave_err clave__guarded_write_multi(clave_async_client *c, struct write_guard guard,
                                     const clave_op *ops, size_t nops, clave_result_cb *cb,
                                     void *arg);

#endif
