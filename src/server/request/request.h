/* request.h - the requests of clients, from a decoded frame to the answer.
 *
 *   request.c       each opcode: how it is answered and what it does; the table of all of them
 *   transaction.c   what changes something: logged, counted, its watches fired
 *   session.c       the handshake, closeSession, and sessions that expire
 *   zookeeper_sessions.c, container_ttl.c, quota.c, audit.c
 *
 * What the protocol says about an opcode (name, body, reply, effect) is in wire/opcode.h. A
 * function that answers a request is called once and either answers it or cuts the connection. */
#ifndef CLAVE_SERVER_REQUEST_REQUEST_H
#define CLAVE_SERVER_REQUEST_REQUEST_H

#include "server/connection/conn.h"
#include "server/server_internal.h"
#include "wire/opcode.h"

/* ---- a transaction (transaction.c) ------------------------------------------------------------
 */

/* Begins s->txn with the next zxid. */
void clave__write_begin(struct server *s, int64_t client, int32_t cxid, int32_t type);
/* Logs the transaction, then fires its watches; the caller ends it. ENOMEM: it was undone and
 * ended, and nothing was logged. */
clave_err clave__write_commit(struct server *s);
/* Undoes the changes and logs that the request failed with `why`. ENOMEM, also as `why`: nothing is
 * logged. */
clave_err clave__write_fail(struct server *s, clave_err why);

/* ---- the end of a session (session.c) -------------------------------------------------------- */

/* Answers closeSession. */
struct request_op;
void clave__conn_close_session(struct server_conn *c, const struct wire_request *q,
                               const struct request_op *op);
/* Ends a session and removes its nodes on the server's own account. ENOMEM: the session lives
 * on. */
clave_err clave__session_expire(struct server *s, int64_t id);

/* ---- sessions as nodes, for operators (zookeeper_sessions.c) --------------------------------- */

/* Handles a request of a super user. Returns false if the request is not about these nodes. */
bool clave__session_nodes_answer(struct server_conn *c, const struct wire_request *q);

/* ---- the audit log (audit.c) ----------------------------------------------------------------- */

/* Writes a line for each request that changes something or tries to, and for each node that is
 * removed with its session, in the format of Apache ZooKeeper. Without an audit log these functions
 * do nothing. */

/* Reports a write, alone or as part of a multi. `made` is its change; NULL if it failed. */
void clave__audit_write(struct server_conn *c, int32_t op, const union wire_body *body,
                        const struct change *made);
/* Reports a multi of which nothing was done. */
void clave__audit_failed_multi(struct server_conn *c);
/* Reports that a super user has ended a session by deleting its node, or has failed to. */
void clave__audit_end_session(struct server_conn *c, struct jbytes path, clave_err err);
/* Reports the nodes that a session owned, which are the changes of s->txn. */
void clave__audit_ephemerals(struct server *s, int64_t session);

/* ---- quotas (quota.c) ------------------------------------------------------------------------ */

/* The node zookeeper/quota<path>/zookeeper_limits limits the number of nodes and bytes at and below
 * a path; zookeeper_stats next to it has the current figures. Only the nearest quota at or above a
 * node counts. The server updates the figures on its own: that is not logged, and the node's
 * version does not change. */

/* Counts everything under every quota anew, after recovery. */
void clave__quota_recount(struct server *s);
/* Updates the figures by the changes of s->txn. */
void clave__quota_note(struct server *s);
/* Checks a change against the quota: `nodes` more nodes at or below this path, and data of length
 * `to` instead of `from`, where -1 means null. A change that adds nothing passes even where the
 * limit is already exceeded. EQUOTA: it does not pass. */
clave_err clave__quota_check(struct server *s, struct jbytes path, int64_t nodes, int32_t from,
                             int32_t to);

#endif
