/* client_for_gate.h - what code that keeps sessions on behalf of others, and a cache, use of a
 * clave_async_client beyond the public calls. */
#ifndef CLAVE_CLIENT_CLIENT_FOR_GATE_H
#define CLAVE_CLIENT_CLIENT_FOR_GATE_H

#include "client/client_base.h"

/* While the client rests, it does not reconnect after losing its connection: somebody else may have
 * attached to the session, and reconnecting would take it away from them. An open connection stays.
 * Takes effect in the next _tick. */
void clave__client_rest(clave_async_client *c, bool rest);
/* A server has said that the session is over: it has answered closeSession, or the session had
 * expired. If this is false of a client that is CLOSED, a close has given up after the session's
 * timeout, by which the servers have ended the session unless another process goes on with it. */
bool clave__client_session_is_over(const clave_async_client *c);
/* Nobody waits any more for the write whose callback has this argument. If it has not been sent, it
 * is not sent at all: the callback runs at once, with ENOTSENT. If it is on its way, it is not sent
 * again when its connection is lost before it has left. Creates that search for what they have
 * made, and reads, go on. */
void clave__client_withdraw(clave_async_client *c, int64_t now, const void *arg);
/* When the newest request that was answered had been sent, pings included. Everything that the
 * server sent before that answer, events too, has arrived. INT64_MIN: no request was ever
 * answered. */
int64_t clave__client_contact(const clave_async_client *c);
/* Lists the ephemeral nodes of the session as res->names, each to be passed to _own_path. The list
 * shows the server's state when it answers, which includes the requests before this one on the
 * connection. `cb` runs once, later. EUNIMPLEMENTED: the server is older than 3.6. ECONNLOSS: at
 * once when the connection is lost. Other errors as clave_async_children. */
clave_err clave__client_list_own(clave_async_client *c, clave_result_cb *cb, void *arg);
/* The path for a name in that list; NULL: the node is not below the chroot. */
const char *clave__client_own_path(const clave_async_client *c, const char *name);
/* Replaces the log given in the options, whose callback cannot take what a line is about (struct
 * log_about). */
void clave__client_set_log(clave_async_client *c, const struct log *log);

#endif
