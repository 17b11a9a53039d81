/* leader_resign.h - what `clave resign` and `clave transfer` share: asks the leader of an election
 * to resign, and follows the election until another candidate, or the named one, leads. */
#ifndef CLAVE_CMD_QUEUES_LEADER_RESIGN_H
#define CLAVE_CMD_QUEUES_LEADER_RESIGN_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

struct handover {
    struct options *o;
    const char *path;
    int64_t wait_ms;  /* how long the leader has, once asked */
    int64_t until;    /* the deadline of what is waited for now */
    char target[256]; /* the node that is to lead next; "": any other */
    int64_t former;   /* the token of the leader at the beginning; 0: not seen yet */
    clave_client *session;
};

/* The flags of both verbs. */
extern const struct flag handover_flags[];

/* Parses the flags and `nargs` arguments, the path first, and opens the session. false: *code is
 * the verb's exit code. */
bool handover_begin(struct handover *h, struct options *o, int argc, char **argv, int nargs,
                    int *code);
/* Asks the leader and waits. Closes the session; returns the exit code. */
int handover_run(struct handover *h);

#endif
