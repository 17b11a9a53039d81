/* terminal.h - lends the terminal to the command.
 *
 * The command has a process group of its own, so to the terminal it is a background job: it may
 * write, and is stopped (SIGTTIN, SIGTTOU) when it reads or changes modes. Then it gets the
 * foreground; until then Ctrl-C goes to the runner, which forwards it. */
#ifndef CLAVE_CMD_CLI_TERMINAL_H
#define CLAVE_CMD_CLI_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

struct terminal {
    int fd;     /* -1: this process has none */
    pid_t lent; /* the group that we have lent it to; 0: none */
};

void terminal_open(struct terminal *t);
/* false: the foreground is not ours to lend. */
bool terminal_lend(struct terminal *t, pid_t group);
/* Takes it back; false: it was not lent, or has passed to another group since. */
bool terminal_take(struct terminal *t);

#endif
