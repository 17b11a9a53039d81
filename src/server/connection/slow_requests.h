/* slow_requests.h - the log's lines about slow requests: those that took slow_ms or longer, from
 * when they began to wait to be read until their replies could leave. Pings are not among them. */
#ifndef CLAVE_SERVER_CONNECTION_SLOW_REQUESTS_H
#define CLAVE_SERVER_CONNECTION_SLOW_REQUESTS_H

#include "server/connection/conn.h"

/* After a request, while slow_ms is set: remembers it, a frame of n bytes, until its reply may
 * leave and its turn has ended. `work`: s->work before it. */
void clave__slow_requests_note(struct server_conn *c, uint64_t work, const void *frame, size_t n);
/* The turn ends: reports what was too slow without the disk. With s->slow_turn only. */
void clave__slow_requests_end_turn(struct server *s, int64_t now);
/* Some replies may leave: reports those that took too long. */
void clave__slow_requests_release(struct server_conn *c);
/* The connection ends. */
void clave__slow_requests_drop(struct server_conn *c);
/* Says how many lines there would have been, when a second has passed without any more. */
void clave__slow_requests_tell_rest(struct server *s);

#endif
