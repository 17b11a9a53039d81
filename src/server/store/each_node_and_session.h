/* each_node_and_session.h - the nodes and sessions of a server that has loaded Apache's files,
 * without serving them. */
#ifndef CLAVE_SERVER_STORE_EACH_NODE_AND_SESSION_H
#define CLAVE_SERVER_STORE_EACH_NODE_AND_SESSION_H

#include "server/server.h"
#include "wire/record.h"

struct node_view {
    struct jbytes path; /* "" is the root */
    struct jbytes data;
    struct jvec acl;
    struct wire_stat stat;
    int32_t stored_cversion;
    int64_t stored_owner; /* also of containers and of nodes with a TTL */
};

/* Visit every node, parents first, and every session. */
void clave__server_each_node(const struct server *s,
                             void (*visit)(void *arg, const struct node_view *n), void *arg);
void clave__server_each_session(const struct server *s,
                                void (*visit)(void *arg, int64_t id, int32_t timeout_ms),
                                void *arg);

#endif
