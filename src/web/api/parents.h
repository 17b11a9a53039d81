/* parents.h - a create with missing parents makes none where its sender may make nothing: above the
 * prefix of a role. Those must be there already. */
#ifndef CLAVE_WEB_API_PARENTS_H
#define CLAVE_WEB_API_PARENTS_H

#include "web/api/client_call.h"

/* Looks for the nodes above `path` on which the sender lacks the role, and calls `go` when they
 * exist, or there are none; at once or later. Otherwise it has answered: 403 that names the missing
 * node, or what has failed. `path` and `x` outlive it. */
void clave__web_check_parents(struct web_exchange *x, clave_async_client *c, enum web_role role,
                              const char *path, client_call *go);

#endif
