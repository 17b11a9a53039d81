/* member.h - a command and a node that is there while it runs: what `clave member` and `clave
 * register` share. */
#ifndef CLAVE_CMD_VERBS_LOCK_MEMBER_H
#define CLAVE_CMD_VERBS_LOCK_MEMBER_H

#include <stdatomic.h>
#include <sys/types.h>

#include "clave/persistent_node.h"
#include "cmd/cli/cmd_options.h"

struct member {
    struct options *o; /* the arguments after the first one are the command */
    const char *path;  /* of its node */
    const char *data;
    const char *what; /* in messages: "a member" */
    clave_persistent_node_kind kind;
    bool replace;
    bool stays; /* a persistent node outlives the command */

    /* Of member.c alone. */
    int signals;         /* a signalfd, of SIGCHLD too */
    pid_t pid;           /* of the command; 0: none */
    atomic_bool started; /* once it has been: a refusal before that ends this process */
};

/* Keeps the node and runs the command. Returns the exit code of the command, or another one after a
 * message. */
int member_run(struct member *m);

/* HOST-PID. Returns out. */
enum { MEMBER_ID_CAP = 280 };
const char *member_default_id(char out[MEMBER_ID_CAP]);

#endif
