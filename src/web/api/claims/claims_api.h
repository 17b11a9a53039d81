/* claims_api.h - /v1/claims: asks for locks, leases and leaderships, waits for them, gives them
 * back. Called by routes.c. */
#ifndef CLAVE_WEB_API_CLAIMS_CLAIMS_API_H
#define CLAVE_WEB_API_CLAIMS_CLAIMS_API_H

#include "web/api/session_request.h"
#include "web/http/exchange.h"

void clave__web_post_claim(struct web_exchange *x);
void clave__web_get_claim(struct web_exchange *x);
void clave__web_patch_claim(struct web_exchange *x);
void clave__web_delete_claim(struct web_exchange *x);

/* Ends the call with what k->claim is; 200 or 201 when it is held. */
void clave__web_answer_claim(struct session_request *k, unsigned held);
/* Not made. */
void clave__web_refuse_claim(struct session_request *k, clave_err err, const char *path);

#endif
