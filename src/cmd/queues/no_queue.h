/* no_queue.h - what to say of a path at which nobody holds, leads or waits: it may be no lock and
 * no election at all. */
#ifndef CLAVE_CMD_QUEUES_NO_QUEUE_H
#define CLAVE_CMD_QUEUES_NO_QUEUE_H

#include "clave/client.h"
#include "cmd/cli/cmd_options.h"

/* true, after a message: the path has children, but none of a lock, or of an election if the verb
 * is about those. A path without children may be either. */
bool no_queue_report(const struct options *o, clave_client *c, const char *path);

#endif
