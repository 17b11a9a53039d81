/* request_client.h - the ZooKeeper client that a request is made with: that of its session, or the
 * engine's own. */
#ifndef CLAVE_WEB_API_REQUEST_CLIENT_H
#define CLAVE_WEB_API_REQUEST_CLIENT_H

#include "web/http/exchange.h"

/* Makes requests of the client, each with clave__web_expect(x) before; or answers. */
typedef void request_client(struct web_exchange *x, clave_async_client *c);

/* Calls `go` with the client, now or when the session is attached to. Otherwise it has answered, or
 * will. What changes something is given to a client that is connected only, since it could
 * otherwise be done long after its sender has given up: the engine's own answers 503 then, that of
 * a session is waited for. */
void clave__request_client(struct web_exchange *x, request_client *go);

/* A request could not be made at all: answers with the client's own words. */
void clave__request_client_refused(struct web_exchange *x, clave_async_client *c, clave_err err,
                                   const char *what, const char *path);

#endif
