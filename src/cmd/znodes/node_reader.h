/* node_reader.h - a verb that shows a single node: clave get, getacl and stat. */
#ifndef CLAVE_CMD_ZNODES_NODE_READER_H
#define CLAVE_CMD_ZNODES_NODE_READER_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

struct node_reader {
    /* The blocking request: clave_get or another function of this form. */
    clave_err (*read)(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out);
    /* Prints the answer. `stat`: --stat was given. */
    void (*show)(const struct options *o, const char *path, const clave_reply *r, bool stat);
    int stat_flag; /* id of --stat; 0: the verb does not have it */
};

/* Parses the flags and the one argument, then reads and shows the node. Returns the exit code. */
int node_reader_run(const struct node_reader *n, struct options *o, int argc, char **argv);

#endif
