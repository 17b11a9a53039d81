/* hook.h - the user's commands that are run at events of an election. They are neither waited for
 * nor ended: what only the leader may do belongs in the command itself. */
#ifndef CLAVE_CMD_RUN_HOOK_H
#define CLAVE_CMD_RUN_HOOK_H

#include <stdint.h>

#include "cmd/run/run_flags.h"

/* Runs the shell command (NULL: nothing) with CLAVE_EVENT, CLAVE_PATH, CLAVE_CONNECT and, unless it
 * is 0, CLAVE_TOKEN in its environment, and with no standard input. Reports a failure to start
 * it. */
void hook_run(const struct run_plan *p, const char *command, const char *event, int64_t token);

#endif
