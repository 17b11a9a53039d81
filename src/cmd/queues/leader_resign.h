/* leader_resign.h - what `clave resign` and `clave transfer` share: they ask the leader of an
 * election to resign, and follow the election until another candidate (transfer: the named one)
 * leads. */
#ifndef CLAVE_CMD_QUEUES_LEADER_RESIGN_H
#define CLAVE_CMD_QUEUES_LEADER_RESIGN_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

struct handover {
    struct options *o;
    const char *path;
    int64_t wait_ms;  /* how long the leader has to resign once it is asked */
    int64_t until;    /* deadline of the present wait */
    char target[256]; /* node that is to lead next; "": any */
    int64_t former;   /* token of the leader at the beginning; 0: not seen yet */
    clave_client *session;
};

/* The flags that both verbs have. */
extern const struct flag handover_flags[];

/* Parses the flags and `nargs` arguments, of which the first is the path, and opens the session.
 * false: the verb returns *code. */
bool handover_begin(struct handover *h, struct options *o, int argc, char **argv, int nargs,
                    int *code);
/* Asks the leader and waits for the outcome. Closes the session. Returns the exit code. */
int handover_run(struct handover *h);

#endif
