/* claims_api.h - /v1/claims: asks for locks, leases and leaderships, waits for them, gives them
 * back. Called by routes.c. */
#ifndef CLAVE_WEB_API_CLAIMS_API_H
#define CLAVE_WEB_API_CLAIMS_API_H

#include "web/http/exchange.h"
#include "web/session/claim.h"

void clave__web_post_claim(struct web_exchange *x);
void clave__web_get_claim(struct web_exchange *x);
void clave__web_delete_claim(struct web_exchange *x);

/* The terms in the body of the request; false: it has answered. */
bool clave__web_read_claim(struct web_exchange *x, struct claim_terms *t);

#endif
