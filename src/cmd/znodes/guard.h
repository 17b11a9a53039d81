/* guard.h - guarded writes, for --guard of `clave create` and `clave set`: the write and the check
 * that the lock is still held are always one transaction. */
#ifndef CLAVE_CMD_ZNODES_GUARD_H
#define CLAVE_CMD_ZNODES_GUARD_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

/* The path of the lock's node, from CLAVE_NODE, which `clave lock` sets for its command. NULL,
 * after a message: it is not set or not valid. */
const char *guard_node(struct options *o);
/* Performs the operations in one multi whose first operation checks that the guard's node exists.
 * At most GUARDED_WRITE_MAX_OPS operations. ELOST: the node is gone, and nothing was done; any
 * other error is that of the first of `ops` that failed. */
enum { GUARDED_WRITE_MAX_OPS = 64 };
clave_err guard_multi(clave_client *c, const char *node, const clave_op *ops, size_t nops,
                      int64_t timeout_ms);
/* Creates the node that `op` describes, under the guard, together with its missing parents. */
clave_err guard_create_deep(clave_client *c, const char *node, const clave_op *op,
                            int64_t timeout_ms);
/* Like diag_err; for ELOST explains that the lock was lost. */
int guard_tell(struct options *o, const char *path, clave_err err, clave_client *c);

#endif
