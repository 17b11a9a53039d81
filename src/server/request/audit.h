/* audit.h - the audit log: a line for each request that changes something or tries to, and for each
 * node that goes with its session, in the format of Apache ZooKeeper. */
#ifndef CLAVE_SERVER_REQUEST_AUDIT_H
#define CLAVE_SERVER_REQUEST_AUDIT_H

#include "server/connection/conn.h"

/* A write by itself, or one of a multi. `made`: its change; NULL: it failed. Does nothing without
 * an audit log, nor do those below. */
void clave__audit_write(struct server_conn *c, int32_t op, const union wire_body *body,
                        const struct change *made);
/* A multi of which nothing was done. */
void clave__audit_failed_multi(struct server_conn *c);
/* A super user has ended a session, or failed to, by deleting its node. */
void clave__audit_end_session(struct server_conn *c, struct jbytes path, clave_err err);
/* The changes of s->txn are the nodes that a session had. */
void clave__audit_ephemerals(struct server *s, int64_t session);

#endif
