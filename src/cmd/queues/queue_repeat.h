/* queue_repeat.h - shows a queue, and again after every change, for --watch. */
#ifndef CLAVE_CMD_QUEUES_QUEUE_REPEAT_H
#define CLAVE_CMD_QUEUES_QUEUE_REPEAT_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

/* Prints it; an exit code. */
typedef int queue_show(struct options *o, clave_client *c, const char *path);

/* Opens the session, and shows the queue: once, or, if it is to `watch`, until a signal ends the
 * program or something fails. On a terminal each picture replaces the one before. */
int queue_repeat(struct options *o, const char *path, bool watch, queue_show *show);

#endif
