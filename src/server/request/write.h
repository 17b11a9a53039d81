/* write.h - what all writing requests share: checks, one transaction each, events, the reply. */
#ifndef CLAVE_SERVER_REQUEST_WRITE_H
#define CLAVE_SERVER_REQUEST_WRITE_H

#include "server/request/conn.h"

/* Begins s->txn with the next zxid. */
void clave__write_begin(struct server *s, int64_t client, int32_t cxid, int32_t type);
/* Checks one op and makes its change; returns ZooKeeper's code, or ENOMEM. In a multi each op sees
 * the changes of those before it. */
clave_err clave__write_op(struct server *s, const struct server_conn *c, int32_t op,
                          const union wire_body *body);
/* Logs the transaction, then fires its watches; the caller ends it. ENOMEM: it is undone and ended,
 * nothing is logged. */
clave_err clave__write_commit(struct server *s);
/* Undoes the changes and logs that the request failed. ENOMEM, also as `why`: nothing is logged. */
clave_err clave__write_fail(struct server *s, clave_err why);

/* Whole requests. `malformed`: the body could not be read. */
void clave__conn_write(struct server_conn *c, const struct wire_request *q, bool malformed);
void clave__conn_multi(struct server_conn *c, const struct wire_request *q, bool malformed);
void clave__conn_close_session(struct server_conn *c, int32_t xid);

/* The server itself ends a session and its nodes. ENOMEM: the session lives on. */
clave_err clave__session_expire(struct server *s, int64_t id);

#endif
