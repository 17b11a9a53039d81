/* node_data.h - the bytes that `clave create` and `clave set` write to a node. */
#ifndef CLAVE_CMD_ZNODES_NODE_DATA_H
#define CLAVE_CMD_ZNODES_NODE_DATA_H

#include "cmd/cli/cmd_options.h"

struct node_data {
    const void *p;
    size_t n;
    void *owned;
};

/* Gets the bytes: none if `arg` is NULL, standard input to its end if it is "-", otherwise the
 * characters of `arg`. Returns EXIT_OK, or an exit code after a message. Call node_data_fini() in
 * either case. */
int node_data_read(struct options *o, const char *arg, struct node_data *out);
void node_data_fini(struct node_data *d);

#endif
