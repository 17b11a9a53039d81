/* hold_api.h - /v1/hold: a claim that lives as long as the connection it was asked for on, for
 * shell scripts: `curl -N` holds a lock as long as it runs. Called by routes.c. */
#ifndef CLAVE_WEB_API_CLAIMS_HOLD_API_H
#define CLAVE_WEB_API_CLAIMS_HOLD_API_H

#include "web/http/exchange.h"

void clave__web_post_hold(struct web_exchange *x);

#endif
