/* own_client.h - the engine's own ZooKeeper session, for requests that name none: it reads, watches
 * and writes, and never holds anything. One warning says that no server answers, and one that it is
 * over. */
#ifndef CLAVE_WEB_OWN_CLIENT_H
#define CLAVE_WEB_OWN_CLIENT_H

#include "web/web_internal.h"

clave_err clave__own_client_open(struct web *w);
/* Ends the session; see _is_closed. */
void clave__own_client_close(struct web *w, int64_t now);
/* Asks the servers for something small: latency_ms is how long they took. It is -1 while they do
 * not answer. */
void clave__own_client_measure(struct web *w);
bool clave__own_client_is_closed(const struct web *w);
void clave__own_client_free(struct web *w);

#endif
