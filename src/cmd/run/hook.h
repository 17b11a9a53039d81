/* hook.h - hooks: the user's shell commands that are run at the events of an election. Nobody waits
 * for a hook, and clave does not end it; so anything that only the leader may do belongs in the
 * command, not in a hook. */
#ifndef CLAVE_CMD_RUN_HOOK_H
#define CLAVE_CMD_RUN_HOOK_H

#include <stdint.h>

#include "cmd/run/run_flags.h"

/* Runs the shell command (NULL: does nothing) with CLAVE_EVENT, CLAVE_PATH, CLAVE_CONNECT and,
 * unless it is 0, CLAVE_TOKEN in its environment, and with standard input from /dev/null. If it
 * cannot be started, prints a message. */
void hook_run(const struct run_plan *p, const char *command, const char *event, int64_t token);

#endif
