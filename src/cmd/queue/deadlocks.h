/* deadlocks.h - `clave locks --deadlocks`: which owners wait for each other. */
#ifndef CLAVE_CMD_QUEUE_DEADLOCKS_H
#define CLAVE_CMD_QUEUE_DEADLOCKS_H

#include "cmd/cli/cmd_options.h"

/* Looks at these paths and below; none: everywhere. The exit code: EXIT_OK when there is no
 * deadlock, EXIT_DEADLOCK when some were printed. */
int deadlocks_show(struct options *o, const char *const *paths, size_t n);

#endif
