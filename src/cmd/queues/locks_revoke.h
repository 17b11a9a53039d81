/* locks_revoke.h - one node of a lock: asks its owner to release it, or deletes it without asking.
 */
#ifndef CLAVE_CMD_QUEUES_LOCKS_REVOKE_H
#define CLAVE_CMD_QUEUES_LOCKS_REVOKE_H

#include "cmd/cli/cmd_options.h"

struct revoke_request {
    const char *path;
    const char *node; /* its name, its path, or its token */
    bool breaks;      /* delete it; otherwise its owner is asked */
    bool force;       /* although its owner may be alive */
    bool yes;         /* without asking at the terminal */
    int64_t wait_ms;  /* how long to wait for the release; 0: not at all */
};
/* The exit code, after whatever messages are due. */
int revoke_node(struct options *o, const struct revoke_request *request);

#endif
