/* forwarded.h - whom a request is from when a proxy has passed it on. A proxy that is named
 * (struct web_access) is believed what X-Forwarded-For says: the last address in it that is not
 * such a proxy's is the client's. Nobody else is believed, but whoever sends such a header is no
 * program of this machine: it is neither "loopback" nor a user of a Unix socket. */
#ifndef CLAVE_WEB_HTTP_FORWARDED_H
#define CLAVE_WEB_HTTP_FORWARDED_H

#include "web/http/exchange.h"

/* Sets x->peer, from the connection's peer and the headers. */
void clave__web_find_peer(struct web_exchange *x);
/* The path that clients put before `path`, which begins with '/': the prefix behind a proxy, and ""
 * for a request that came straight here without it. */
const char *clave__web_prefix(const struct web_exchange *x);
/* Takes the prefix, if it is there, off a path: "/clave/v1/locks". Returns the rest. */
char *clave__web_take_prefix(struct web_exchange *x, char *path);

#endif
