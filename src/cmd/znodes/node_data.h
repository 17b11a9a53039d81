/* node_data.h - the bytes that `clave create` and `clave set` write into a node. */
#ifndef CLAVE_CMD_ZNODES_NODE_DATA_H
#define CLAVE_CMD_ZNODES_NODE_DATA_H

#include "cmd/cli/cmd_options.h"

struct node_data {
    const void *p;
    size_t n;
    void *owned;
};

/* `arg` NULL: no bytes; "-": standard input to its end; otherwise its own characters. EXIT_OK, or
 * the exit code after a message. Call node_data_fini() in either case. */
int node_data_read(struct options *o, const char *arg, struct node_data *out);
void node_data_fini(struct node_data *d);

#endif
