/* guard.h - guarded writes, --guard of `clave create` and `clave set`: a write and the check of the
 * lock are always one transaction. */
#ifndef CLAVE_CMD_ZNODES_GUARD_H
#define CLAVE_CMD_ZNODES_GUARD_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

/* The lock node named by CLAVE_NODE, which `clave lock` sets for its command; NULL after a message.
 */
const char *guard_node(struct options *o);
/* Performs the operations only while the guard's node exists: a multi that checks it first.
 * CLAVE_ELOST: it is gone, and nothing was done. Any other error is that of the first of `ops` that
 * failed. At most GUARDED_WRITE_MAX_OPS; `out` may be NULL, its op_errs are those of `ops`. */
enum { GUARDED_WRITE_MAX_OPS = 64 };
clave_err guard_multi(clave_client *c, const char *node, const clave_op *ops, size_t nops,
                      int64_t timeout_ms);
/* Creates the node that op describes under the guard, with its missing parents. */
clave_err guard_create_deep(clave_client *c, const char *node, const clave_op *op,
                            int64_t timeout_ms);
/* As diag_err; for CLAVE_ELOST it explains what that means here. */
int guard_tell(struct options *o, const char *path, clave_err err, clave_client *c);

#endif
