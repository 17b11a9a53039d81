/* watch_recursive.h - `clave watch --recursive`: prints what happens to a node and to everything
 * below it. */
#ifndef CLAVE_CMD_VERBS_TREE_WATCH_RECURSIVE_H
#define CLAVE_CMD_VERBS_TREE_WATCH_RECURSIVE_H

#include <stdbool.h>

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

/* Prints one event of `clave watch`, as a line or a JSON object. `st` may be NULL. */
void tree_watch_show(const struct options *o, const char *event, const char *path,
                     const clave_stat *st);
/* Prints events until a signal arrives on the signalfd `signals` or, with `once`, until the first
 * change. Returns the exit code. */
int tree_watch(struct options *o, const char *path, bool once, clave_client *c, int signals);

#endif
