/* deadlocks.h - `clave locks --deadlocks`: whose owners wait for each other. */
#ifndef CLAVE_CMD_QUEUE_DEADLOCKS_H
#define CLAVE_CMD_QUEUE_DEADLOCKS_H

#include "cmd/cli/options.h"

/* At these paths and below; none: everywhere. The exit code: EXIT_OK when there are none,
 * EXIT_DEADLOCK when they were printed. */
int deadlocks_show(struct options *o, const char *const *paths, size_t n);

#endif
