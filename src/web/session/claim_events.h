/* claim_events.h - tells the event streams of a session what happens to its claims: queued, next,
 * held, asked, suspended, lost; and all streams that a session has ended. An event never extends a
 * hold, and has no valid_ms. */
#ifndef CLAVE_WEB_SESSION_CLAIM_EVENTS_H
#define CLAVE_WEB_SESSION_CLAIM_EVENTS_H

#include "clave/err.h"

struct claim;
struct http_session;

/* There is news of the claim. What was told before is not told again. */
void clave__claim_publish(struct claim *c);
/* It ENDs: why the nodes of its hold go, for the history. Before the kind drops them. */
void clave__claim_say_cause(struct claim *c);
/* The connection is lost by which it holds or waits. */
void clave__claim_publish_suspended(struct claim *c);
/* The session is over, for everybody. */
void clave__http_session_publish_end(struct http_session *s, clave_err why);

#endif
