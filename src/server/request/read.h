/* read.h - requests that change nothing (read.c), and those about watches (watch_ops.c). The table
 * in request.c refers to them. */
#ifndef CLAVE_SERVER_REQUEST_READ_H
#define CLAVE_SERVER_REQUEST_READ_H

#include "server/request/request.h"

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
 * there is none: visible_zxid.c. */
int64_t clave__shown_at(const struct server *s, struct jbytes path, const struct node *n);

/* setWatches, setWatches2, addWatch, checkWatches, removeWatches: watch_ops.c. */
request_answer clave__conn_watch;
request_act clave__watch_op_set;
request_act clave__watch_op_add;
request_act clave__watch_op_check;
request_act clave__watch_op_remove;

/* ---- watches (watch_ops.c) ------------------------------------------------------------------- */

/* Sets a watch of the connection. EBADARGS: a bound is reached (client_limits.h); ENOMEM. */
clave_err clave__conn_add_watch(struct server_conn *c, struct jbytes path, unsigned marks);

#endif
