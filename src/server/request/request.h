/* request.h - requests of clients, from a decoded frame to the answer.
 *
 *   request.c   the table, one line an opcode: who answers, which function does it; multi
 *   read.c      what changes nothing, and requests about watches
 *   write.c     what changes something, one transaction each
 *   session.c   the handshake, closeSession, and sessions that expire
 *   zookeeper_sessions.c, container_ttl.c, quota.c, audit.c
 *
 * What the protocol says of an opcode (name, body, reply, effect) is in wire/opcode.h. A function
 * that answers is called once for each request and answers it, or cuts the connection. */
#ifndef CLAVE_SERVER_REQUEST_REQUEST_H
#define CLAVE_SERVER_REQUEST_REQUEST_H

#include "server/connection/conn.h"
#include "server/server_internal.h"
#include "wire/opcode.h"

/* ---- the table (request.c) ------------------------------------------------------------------- */

struct request_op;

/* Answers a whole request. */
typedef void request_answer(struct server_conn *c, const struct wire_request *q,
                            const struct request_op *op);
/* Checks a request whose body could be read, and does it: a write makes its change in s->txn, where
 * it sees those of the ops before it. ZooKeeper's code, or ENOMEM. */
typedef clave_err request_act(struct server_conn *c, int32_t op, const union wire_body *body);
/* Writes what the reply says of a node. */
typedef void request_show(struct jwriter *w, const struct server_conn *c, const struct node *n);

struct request_op {
    request_answer *answer; /* NULL: not a request by itself */
    request_act *act;       /* of writes and requests about watches */
    request_show *show;     /* of reads of one node */
    int32_t perms;          /* likewise: the client needs at least one of these */
    bool shows_others;      /* likewise: it shows nodes below that one, too */
};

/* ---- reads and watches (read.c) -------------------------------------------------------------- */

/* Requests that name one node, and what each shows of it. */
request_answer clave__conn_read;
request_show clave__read_exists;
request_show clave__read_data;
request_show clave__read_children;
request_show clave__read_children2;
request_show clave__read_acl;
request_show clave__read_number_below;
request_answer clave__conn_sync;
request_answer clave__conn_ephemerals;

/* The node, if it exists and the client may do this with it; otherwise ZooKeeper's code. */
clave_err clave__read_find(const struct server_conn *c, const struct request_op *op,
                           struct jbytes path, struct node **out);

/* The newest transaction that an answer can show which says of this path what the node is, or that
 * there is none: read.c. */
int64_t clave__visible_zxid_at(const struct server *s, struct jbytes path, const struct node *n);

/* setWatches, setWatches2, addWatch, checkWatches, removeWatches. */
request_answer clave__conn_watch;
request_act clave__watch_op_set;
request_act clave__watch_op_add;
request_act clave__watch_op_check;
request_act clave__watch_op_remove;

/* ---- writes (write.c) ------------------------------------------------------------------------ */

/* Begins s->txn with the next zxid. */
void clave__write_begin(struct server *s, int64_t client, int32_t cxid, int32_t type);
/* Logs the transaction, then fires its watches; the caller ends it. ENOMEM: it is undone and ended,
 * nothing is logged. */
clave_err clave__write_commit(struct server *s);
/* Undoes the changes and logs that the request failed. ENOMEM, also as `why`: nothing is logged. */
clave_err clave__write_fail(struct server *s, clave_err why);

/* A write by itself: checked and made by the request_act of its opcode, logged, answered. */
request_answer clave__conn_write;
request_act clave__write_create; /* all four creates */
request_act clave__write_delete;
request_act clave__write_delete_container;
request_act clave__write_set_data;
request_act clave__write_set_acl;
request_act clave__write_check;
request_act clave__write_reconfig;

/* Writes the body of the reply to an op that made this change, with the Stat of this moment. */
void clave__write_put_reply(struct jwriter *w, int32_t op, const struct change *c);

/* ---- the end of a session (session.c) -------------------------------------------------------- */

request_answer clave__conn_close_session;
/* The server itself ends a session and its nodes. ENOMEM: the session lives on. */
clave_err clave__session_expire(struct server *s, int64_t id);

/* ---- sessions as nodes, for operators (zookeeper_sessions.c) --------------------------------- */

/* A request of a super user. false: it is about something else. */
bool clave__session_nodes_answer(struct server_conn *c, const struct wire_request *q);

/* ---- the audit log (audit.c) ----------------------------------------------------------------- */

/* A line for each request that changes something or tries to, and for each node that goes with its
 * session, in the format of Apache ZooKeeper. Without an audit log these do nothing. */

/* A write by itself, or one of a multi. `made`: its change; NULL: it failed. */
void clave__audit_write(struct server_conn *c, int32_t op, const union wire_body *body,
                        const struct change *made);
/* A multi of which nothing was done. */
void clave__audit_failed_multi(struct server_conn *c);
/* A super user has ended a session, or failed to, by deleting its node. */
void clave__audit_end_session(struct server_conn *c, struct jbytes path, clave_err err);
/* The changes of s->txn are the nodes that a session had. */
void clave__audit_ephemerals(struct server *s, int64_t session);

/* ---- quotas (quota.c) ------------------------------------------------------------------------ */

/* /zookeeper/quota<path>/zookeeper_limits limits the nodes and bytes at and below a path;
 * zookeeper_stats next to it has the present figures. Only the nearest quota at or above a node
 * counts. The server writes the figures by itself: they are not logged, and the node's version does
 * not change. */

/* Counts all quotas anew, after recovery. */
void clave__quota_recount(struct server *s);
/* Updates the figures for the changes of s->txn. */
void clave__quota_note(struct server *s);
/* Whether this many more nodes are allowed at or below this path, and data of the length `to` where
 * `from` was; -1: null. What grows nothing is allowed beyond a limit, too. EQUOTA: not allowed. */
clave_err clave__quota_check(struct server *s, struct jbytes path, int64_t nodes, int32_t from,
                             int32_t to);

#endif
