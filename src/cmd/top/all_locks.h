/* all_locks.h - `clave locks` without a path: all locks and elections of a server, once. */
#ifndef CLAVE_CMD_TOP_ALL_LOCKS_H
#define CLAVE_CMD_TOP_ALL_LOCKS_H

#include "cmd/cli/cmd_options.h"

/* Prints them; the exit code, after a message if there is one. */
int top_list_show(struct options *o);

#endif
