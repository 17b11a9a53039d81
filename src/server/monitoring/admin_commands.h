/* admin_commands.h - the commands of Apache's AdminServer, as JSON. Bytes only: the driver has the
 * transport.
 */
#ifndef CLAVE_SERVER_MONITORING_ADMIN_COMMANDS_H
#define CLAVE_SERVER_MONITORING_ADMIN_COMMANDS_H

#include "server/monitoring/listing.h"

/* Begins the answer to a command, by any of its names: a JSON object with Apache's fields,
 * "command" and "error" among them. EINVAL: there is no such command, and the object says so.
 * `name` outlives the answer. */
clave_err clave__admin_begin(struct listing *l, struct server *s, const char *name);
/* The first name of command number i, in alphabetical order; NULL after the last. */
const char *clave__admin_name(size_t i);

#endif
