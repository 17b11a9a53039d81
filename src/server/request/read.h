/* read.h - requests that change nothing (read.c), and those about watches (watch_ops.c). */
#ifndef CLAVE_SERVER_REQUEST_READ_H
#define CLAVE_SERVER_REQUEST_READ_H

#include "server/request/conn.h"

/* Requests that name one node, sync and getEphemerals. `malformed`: the body could not be
 * read. */
void clave__conn_read(struct server_conn *c, const struct wire_request *q, bool malformed);
void clave__conn_multi_read(struct server_conn *c, const struct wire_request *q, bool malformed);

/* setWatches, setWatches2, addWatch, checkWatches, removeWatches: watch_ops.c. */
void clave__conn_watch(struct server_conn *c, const struct wire_request *q, bool malformed);

#endif
