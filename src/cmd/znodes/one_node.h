/* one_node.h - what the verbs share that write or show a single node: create and set; get, getacl
 * and stat. */
#ifndef CLAVE_CMD_ZNODES_ONE_NODE_H
#define CLAVE_CMD_ZNODES_ONE_NODE_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

/* The bytes to write. */
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

/* How a verb shows a node. */
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
