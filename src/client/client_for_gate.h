/* client_for_gate.h - what a keeper of other people's sessions, and a cache, use of a
 * clave_async_client beyond the public calls. */
#ifndef CLAVE_CLIENT_CLIENT_FOR_GATE_H
#define CLAVE_CLIENT_CLIENT_FOR_GATE_H

#include "base/log_line.h"
#include "clave/async/client.h"

/* The time passed in by the newest call into the client. */
int64_t clave__client_now(const clave_async_client *c);
/* While it rests it does not connect again after the connection was lost: somebody else may have
 * attached to the session, and gets it moved away otherwise. A connection that is open stays. Takes
 * effect in the next _tick. */
void clave__client_rest(clave_async_client *c, bool rest);
/* When the newest answered request was sent, a ping included: what the server sent before, events
 * too, has arrived. INT64_MIN: none was ever answered. */
int64_t clave__client_contact(const clave_async_client *c);
/* The ephemeral nodes of the session, as res->names; each is asked of _own_path. By the server's
 * state when it answers, which is at least that of the requests before it on this connection. `cb`
 * once, later: EUNIMPLEMENTED: the server is older than 3.6. ECONNLOSS, at once when the connection
 * goes. Others as of clave_async_children. */
clave_err clave__client_list_own(clave_async_client *c, clave_result_cb *cb, void *arg);
/* The path of such a name; NULL: it is not below the chroot. */
const char *clave__client_own_path(const clave_async_client *c, const char *name);
/* In place of the one in its options, which cannot take what a line is about. */
void clave__client_set_log(clave_async_client *c, const struct log *log);

#endif
