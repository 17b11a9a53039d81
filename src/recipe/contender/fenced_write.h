/* fenced_write.h - guarded writes: one multi that checks a node first, so that the write is done
 * only while the grant of that node is valid at the server. */
#ifndef CLAVE_RECIPE_CONTENDER_FENCED_WRITE_H
#define CLAVE_RECIPE_CONTENDER_FENCED_WRITE_H

#include "clave/async/client.h"

/* As clave_async_multi; res.err ELOST: the node is gone, or its session, and nothing was done.
 * _one: a single operation, and the result is that of it; _multi: res.ops are those of the caller.
 */
clave_err clave__fenced_write_one(clave_async_client *c, const char *node, const clave_op *op,
                                  clave_result_cb *cb, void *arg);
clave_err clave__fenced_write_multi(clave_async_client *c, const char *node, const clave_op *ops,
                                    size_t nops, clave_result_cb *cb, void *arg);

#endif
