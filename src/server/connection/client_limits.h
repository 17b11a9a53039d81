/* client_limits.h - the limits on what one client may have the server keep or send. Each has a name
 * and a default in the table of client_limits.c, from which follow the metric and the line in the
 * log; src/cmd/serve/settings.c has its flag. Requests ask clave__client_limit_allows before they
 * keep or send it. */
#ifndef CLAVE_SERVER_CONNECTION_CLIENT_LIMITS_H
#define CLAVE_SERVER_CONNECTION_CLIENT_LIMITS_H

#include "server/connection/conn.h"

/* Whether n is within the limit. If not, the refusal is counted and, once a second for each limit,
 * logged; what the client is told is the caller's part. */
bool clave__client_limit_allows(struct server_conn *c, enum server_limit limit, size_t n);

/* As the metrics name it: "connection_watches". */
const char *clave__client_limit_name(enum server_limit limit);
/* Takes those given; the others have their defaults. */
void clave__client_limits_set(struct server *s, const size_t most[SERVER_LIMITS]);

#endif
