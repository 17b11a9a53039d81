/* revoke.h - one node of a lock: asking its owner to let go, and deleting it over its head. */
#ifndef CLAVE_CMD_QUEUE_REVOKE_H
#define CLAVE_CMD_QUEUE_REVOKE_H

#include "cmd/cli/options.h"

struct revoke_request {
    const char *path;
    const char *node; /* its name, its path, or its token */
    bool breaks;      /* deletes it; else it is asked for */
    bool force;       /* though its owner lives */
    bool yes;         /* without asking at the terminal */
    int64_t wait_ms;  /* asked for: until it is gone; 0: not awaited */
};
/* The exit code, having told what there is to tell. */
int revoke_node(struct options *o, const struct revoke_request *wish);

#endif
