/* watch_recursive.h - prints what happens to a node and to everything below it: `clave watch
 * --recursive`. */
#ifndef CLAVE_CMD_VERBS_TREE_WATCH_RECURSIVE_H
#define CLAVE_CMD_VERBS_TREE_WATCH_RECURSIVE_H

#include <stdbool.h>

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

/* One line, or JSON object, of `clave watch`. `st` may be NULL. */
void tree_watch_show(const struct options *o, const char *event, const char *path,
                     const clave_stat *st);
/* Prints until a signal comes on this signalfd; with `once` until the first change. Returns the
 * exit code. */
int tree_watch(struct options *o, const char *path, bool once, clave_client *c, int signals);

#endif
