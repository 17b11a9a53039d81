/* locks_revoke.h - asks the owner of a node of a lock to release it, or deletes the node without
 * asking. */
#ifndef CLAVE_CMD_QUEUES_LOCKS_REVOKE_H
#define CLAVE_CMD_QUEUES_LOCKS_REVOKE_H

#include "cmd/cli/cmd_options.h"

struct revoke_request {
    const char *path;
    const char *node; /* name, path or token of the node */
    bool breaks;      /* delete the node; otherwise ask its owner */
    bool force;       /* delete it although its owner may be alive */
    bool yes;         /* do not ask the user on the terminal */
    int64_t wait_ms;  /* how long to wait for the release; 0: do not wait */
};
/* Does what is requested, and prints the result. Returns the exit code. */
int revoke_node(struct options *o, const struct revoke_request *request);

#endif
