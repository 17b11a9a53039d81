/* client_limits.h - the bounds on what one client may have the server keep or send. Each has a
 * name, a flag of `clave serve` and a default in one table, in client_limits.c. The requests ask;
 * the metrics show how often each was reached. */
#ifndef CLAVE_SERVER_CONNECTION_CLIENT_LIMITS_H
#define CLAVE_SERVER_CONNECTION_CLIENT_LIMITS_H

#include "server/connection/conn.h"

/* Whether n is within the bound. If not, the refusal is counted and, once a second for each bound,
 * logged; what the client is told is the caller's part. */
bool clave__client_limit_allows(struct server_conn *c, enum server_bound bound, size_t n);

/* As the metrics name it: "connection_watches". */
const char *clave__client_limit_name(enum server_bound bound);
/* Takes those given; the others have their defaults. */
void clave__client_limits_set(struct server *s, const size_t most[SERVER_BOUNDS]);

#endif
