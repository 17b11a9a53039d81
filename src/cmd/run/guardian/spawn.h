/* spawn.h - starts the command: in a process group of its own, with the signals, streams and
 * descriptors that the runner was started with, and so that it never outlives the process that
 * starts it. */
#ifndef CLAVE_CMD_RUN_GUARDIAN_SPAWN_H
#define CLAVE_CMD_RUN_GUARDIAN_SPAWN_H

#include <sys/types.h>

#include "cmd/cli/inherited_fds.h"
#include "cmd/run/guardian/cgroup.h"

enum { SPAWN_NO_PROCESS = -2 };

/* Runs argv[0], looked up in PATH, in that control group if there is one, and returns its process
 * id, which is its group too. -1: errno says why it cannot be run; SPAWN_NO_PROCESS: why the system
 * has no process for it. For a process with a single thread, whose end kills the command (SIGKILL),
 * unless that has become another user. `same_user`: it cannot, nor can what it starts
 * (PR_SET_NO_NEW_PRIVS). */
pid_t spawn_command(char *const *argv, const struct inheritance *before,
                    const struct cgroup *cgroup, bool same_user);

/* The exit code for an errno of spawn_command, after -1. */
int spawn_exit_code(int error);

#endif
