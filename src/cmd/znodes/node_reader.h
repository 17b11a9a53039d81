/* node_reader.h - a verb that shows one node: clave get, getacl, stat. */
#ifndef CLAVE_CMD_ZNODES_NODE_READER_H
#define CLAVE_CMD_ZNODES_NODE_READER_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

struct node_reader {
    /* The blocking request: clave_get and others of its form. */
    clave_err (*read)(clave_client *c, const char *path, int64_t timeout_ms, clave_reply **out);
    /* `stat`: --stat was given. */
    void (*show)(const struct options *o, const char *path, const clave_reply *r, bool stat);
    int stat_flag; /* the id of --stat; 0: the verb has none */
};

/* Parses flags and the one argument, reads and shows the node. Returns the exit code. */
int node_reader_run(const struct node_reader *n, struct options *o, int argc, char **argv);

#endif
