/* foreground_group.h - lends the terminal to the command.
 *
 * The command has a process group of its own, so to the terminal it is a background job: it may
 * write, and is stopped (SIGTTIN, SIGTTOU) when it reads or changes modes. Then it gets the
 * foreground; until then Ctrl-C goes to the runner, which forwards it. */
#ifndef CLAVE_CMD_RUN_FOREGROUND_GROUP_H
#define CLAVE_CMD_RUN_FOREGROUND_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

struct foreground_group {
    int fd;     /* -1: this process has none */
    pid_t lent; /* the group that we have lent it to; 0: none */
};

void foreground_group_open(struct foreground_group *t);
/* false: the foreground is not ours to lend. */
bool foreground_group_lend(struct foreground_group *t, pid_t group);
/* Takes it back; false: it was not lent, or has passed to another group since. */
bool foreground_group_take(struct foreground_group *t);

#endif
