/* claim_events.h - tells the event streams of a session what happens to its claims: queued, next,
 * held, asked, lost. An event never extends a hold, and has no valid_ms. */
#ifndef CLAVE_WEB_SESSION_CLAIM_EVENTS_H
#define CLAVE_WEB_SESSION_CLAIM_EVENTS_H

struct claim;

/* There is news of the claim. What was told before is not told again. */
void clave__claim_publish(struct claim *c);

#endif
