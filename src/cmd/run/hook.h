/* hook.h - the user's shell commands beside the command itself. Hooks are run at the events of an
 * election. Nobody waits for a hook, and clave does not end it; so anything that only the leader
 * may do belongs in the command, not in a hook. Checks (--health) are awaited and ended by
 * health_check.c. */
#ifndef CLAVE_CMD_RUN_HOOK_H
#define CLAVE_CMD_RUN_HOOK_H

#include <stdint.h>
#include <sys/types.h>

#include "cmd/run/run_flags.h"

/* Runs the shell command (NULL: does nothing) with CLAVE_EVENT, CLAVE_PATH, CLAVE_CONNECT and,
 * unless it is 0, CLAVE_TOKEN in its environment, and with standard input from /dev/null. If it
 * cannot be started, prints a message. */
void hook_run(const struct run_plan *p, const char *command, const char *event, int64_t token);

/* The environment of a hook or check: CLAVE_EVENT, CLAVE_PATH, CLAVE_CONNECT and, unless it is 0,
 * CLAVE_TOKEN. */
struct hook_facts {
    const char *event, *path, *connect;
    int64_t token;
};

/* Starts the shell command of a check with that environment, in a process group of its own,
 * which has its process id; its output goes to the descriptor `output`. It is killed if this
 * process dies. Never waits for a disk. A check that cannot be executed ends with HOOK_FAILED. -1:
 * the system has no process for it. */
enum { HOOK_FAILED = 127 };
pid_t hook_start_check(const struct hook_facts *facts, const char *command, int output);

/* Starts another program in the same way; only its standard output goes to `output`. */
pid_t hook_start_program(const char *file, char *const *argv, char **env, int output);

#endif
