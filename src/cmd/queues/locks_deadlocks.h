/* locks_deadlocks.h - `clave locks --deadlocks`: which owners wait for each other. */
#ifndef CLAVE_CMD_QUEUES_LOCKS_DEADLOCKS_H
#define CLAVE_CMD_QUEUES_LOCKS_DEADLOCKS_H

#include "cmd/cli/cmd_options.h"

/* Looks at these paths and below; none: everywhere. The exit code: EXIT_DEADLOCK when a
 * certain deadlock was printed, EXIT_OK when there is none, or possible ones only. */
int deadlocks_show(struct options *o, const char *const *paths, size_t n);

#endif
