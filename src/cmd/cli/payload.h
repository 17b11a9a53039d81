/* payload.h - the bytes that a verb writes, and guarded writes (--guard). */
#ifndef CLAVE_CMD_CLI_PAYLOAD_H
#define CLAVE_CMD_CLI_PAYLOAD_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

struct data {
    const void *p;
    size_t n;
    void *owned;
};

/* `arg` NULL: no bytes; "-": standard input to its end; otherwise its own characters. EXIT_OK, or
 * the exit code after a message. Call data_fini() in either case. */
int data_read(struct options *o, const char *arg, struct data *out);
void data_fini(struct data *d);

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
