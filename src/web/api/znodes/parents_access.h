/* parents_access.h - a create with missing parents makes none where its sender may make nothing:
 * above the prefix of a role. Those must be there already. */
#ifndef CLAVE_WEB_API_ZNODES_PARENTS_ACCESS_H
#define CLAVE_WEB_API_ZNODES_PARENTS_ACCESS_H

#include "web/api/request_client.h"

/* The same, for a sender without the role on all of the tree. */
void clave__web_look_at_parents(struct web_exchange *x, clave_async_client *c, enum web_role role,
                                const char *path, request_client *go);
/* Looks for the nodes above `path` on which the sender lacks the role, and calls `go` when they
 * exist, or there are none; at once or later. Otherwise it has answered: 403 that names the missing
 * node, or what has failed. `path` and `x` outlive it. */
static inline void clave__web_check_parents(struct web_exchange *x, clave_async_client *c,
                                            enum web_role role, const char *path,
                                            request_client *go)
{
    if (clave__web_may(x, role, "/"))
        go(x, c);
    else
        clave__web_look_at_parents(x, c, role, path, go);
}

#endif
