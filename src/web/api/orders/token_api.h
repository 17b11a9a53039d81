/* token_api.h - GET /v1/locks/PATH?token=T: does the token hold the lock, after a sync. Called by
 * locks_api.c. */
#ifndef CLAVE_WEB_API_ORDERS_TOKEN_API_H
#define CLAVE_WEB_API_ORDERS_TOKEN_API_H

#include "web/http/exchange.h"

void clave__web_get_token(struct web_exchange *x);

#endif
