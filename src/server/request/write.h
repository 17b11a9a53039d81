/* write.h - what writing requests share: checks, one transaction each, events, the reply. */
#ifndef CLAVE_SERVER_REQUEST_WRITE_H
#define CLAVE_SERVER_REQUEST_WRITE_H

#include "server/request/conn.h"

/* Begins s->txn with the next zxid. */
void clave__write_begin(struct server *s, int64_t client, int32_t cxid, int32_t type);
/* Checks one op and makes its change: ZooKeeper's code, or ENOMEM. In a multi each sees what
 * those before it made. */
clave_err clave__write_op(struct server *s, const struct server_conn *c, int32_t op,
                          const union wire_body *body);
/* Logs the transaction, then tells those who watch; the caller ends it. ENOMEM: it is taken
 * back and ended, nothing is logged. */
clave_err clave__write_commit(struct server *s);
/* Takes back what was made, and logs that the request failed. ENOMEM, also as `why`: nothing
 * is logged. */
clave_err clave__write_fail(struct server *s, clave_err why);

/* Whole requests. `malformed`: the body could not be read. */
void clave__conn_write(struct server_conn *c, const struct wire_request *q, bool malformed);
void clave__conn_multi(struct server_conn *c, const struct wire_request *q, bool malformed);
void clave__conn_close_session(struct server_conn *c, int32_t xid);

/* Ends a session, and its nodes, of the server's own accord. ENOMEM: it goes on. */
clave_err clave__session_expire(struct server *s, int64_t id);

#endif
