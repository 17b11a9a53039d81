/* slow.h - the log's lines about slow requests: those whose replies waited for the disk, with all
 * before them, for slow_ms or longer. */
#ifndef CLAVE_SERVER_REQUEST_SLOW_H
#define CLAVE_SERVER_REQUEST_SLOW_H

#include "server/request/conn.h"

/* Remembers a request, a frame of n bytes, whose reply has just been written and may not leave. */
void clave__slow_note(struct server_conn *c, const void *frame, size_t n);
/* Some replies may leave: reports those that took too long. */
void clave__slow_release(struct server_conn *c);
/* The connection ends. */
void clave__slow_drop(struct server_conn *c);
/* Says how many lines there would have been, when a second has passed without any more. */
void clave__slow_tell_rest(struct server *s);

#endif
