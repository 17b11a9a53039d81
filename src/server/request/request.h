/* request.h - the requests of clients, from a decoded frame to the answer.
 *
 *   request.c   the table, one line per opcode: how it is answered and what it does; multi
 *   read.c      what changes nothing, and requests about watches
 *   write.c     what changes something, one transaction each
 *   session.c   the handshake, closeSession, and sessions that expire
 *   zookeeper_sessions.c, container_ttl.c, quota.c, audit.c
 *
 * What the protocol says about an opcode (name, body, reply, effect) is in wire/opcode.h. A
 * function that answers a request is called once and either answers it or cuts the connection. */
#ifndef CLAVE_SERVER_REQUEST_REQUEST_H
#define CLAVE_SERVER_REQUEST_REQUEST_H

#include "server/connection/conn.h"
#include "server/server_internal.h"
#include "wire/opcode.h"

/* ---- the table (request.c) ------------------------------------------------------------------- */

struct request_op;

/* Answers a request. */
typedef void request_answer(struct server_conn *c, const struct wire_request *q,
                            const struct request_op *op);
/* Checks an operation, whose body has been decoded, and carries it out: a write makes its change in
 * s->txn, where it sees the changes of the operations before it. Returns a code of ZooKeeper's, or
 * ENOMEM. */
typedef clave_err request_act(struct server_conn *c, int32_t op, const union wire_body *body);
/* Writes the part of a reply that describes a node. */
typedef void request_show(struct jwriter *w, const struct server_conn *c, const struct node *n);

struct request_op {
    request_answer *answer; /* NULL: not a request in its own right */
    request_act *act;       /* for writes and requests about watches */
    request_show *show;     /* for reads of a single node */
    int32_t perms; /* for reads: permissions on the node, of which the client needs at least one */
    bool shows_others; /* for reads: the reply also shows nodes below that one */
};

/* ---- reads and watches (read.c) -------------------------------------------------------------- */

/* Requests that name one node, and how each describes the node. */
request_answer clave__conn_read;
request_show clave__read_exists;
request_show clave__read_data;
request_show clave__read_children;
request_show clave__read_children2;
request_show clave__read_acl;
request_show clave__read_number_below;
request_answer clave__conn_sync;
request_answer clave__conn_ephemerals;

/* Finds a node, checking that it exists and that the client has the permission that `op` needs;
 * otherwise returns ZooKeeper's code. */
clave_err clave__read_find(const struct server_conn *c, const struct request_op *op,
                           struct jbytes path, struct node **out);

/* The newest transaction that an answer about this path can reveal, be it about the node or about
 * its absence (n is NULL). See read.c. */
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
/* Logs the transaction, then fires its watches; the caller ends it. ENOMEM: it was undone and
 * ended, and nothing was logged. */
clave_err clave__write_commit(struct server *s);
/* Undoes the changes and logs that the request failed with `why`. ENOMEM, also as `why`: nothing is
 * logged. */
clave_err clave__write_fail(struct server *s, clave_err why);

/* Handles a write outside a multi: the request_act of its opcode checks and makes it, then it is
 * logged and answered. */
request_answer clave__conn_write;
request_act clave__write_create; /* all four kinds of create */
request_act clave__write_delete;
request_act clave__write_delete_container;
request_act clave__write_set_data;
request_act clave__write_set_acl;
request_act clave__write_check;
request_act clave__write_reconfig;

/* Writes the body of the reply to an operation that made this change, with the Stat as it is
 * now. */
void clave__write_put_reply(struct jwriter *w, int32_t op, const struct change *c);

/* ---- the end of a session (session.c) -------------------------------------------------------- */

request_answer clave__conn_close_session;
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
