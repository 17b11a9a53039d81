/* spawn.h - starting the command: in a process group of its own, with the signals, streams
 * and descriptors that the wrapper was started with, and never outliving who starts it. */
#ifndef CLAVE_CMD_RUN_SPAWN_H
#define CLAVE_CMD_RUN_SPAWN_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cmd/run/cgroup.h"

/* How this program was started, in what a process changes for itself. */
struct inheritance {
    sigset_t mask;
    struct sigaction child; /* of SIGCHLD */
    bool sigpipe_ignored;
};

/* Runs argv[0], looked for in PATH, and returns its process and group. -1: errno says why it
 * cannot be. By a process with one thread only, whose end is then the command's (SIGKILL). In that
 * control group, if there is one. */
pid_t spawn_command(char *const *argv, const struct inheritance *before,
                    const struct cgroup *cgroup);

/* The exit code for an errno of command_start. */
int spawn_exit_code(int error);

#endif
