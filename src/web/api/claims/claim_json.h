/* claim_json.h - a claim as JSON, for the endpoints of claims and sessions. */
#ifndef CLAVE_WEB_API_CLAIMS_CLAIM_JSON_H
#define CLAVE_WEB_API_CLAIMS_CLAIM_JSON_H

#include "web/http/exchange.h"
#include "web/session/claim.h"

/* A claim as JSON, told to this request. `proven`: that it is held was proved since the request
 * arrived, or no other gate can have given it back; otherwise it is not said. */
void clave__web_put_claim(struct web_exchange *x, struct claim *c, bool proven);
/* The sender of this request may lock there: clave__claim_admit. */
clave_err clave__web_admit_claim(const struct web_exchange *x, struct claim *c);

#endif
