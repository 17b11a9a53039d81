/* lock_token_api.h - GET /v1/locks/PATH?token=T: does the token hold the lock, by a committed
 * check; without a token what locks_api.h answers. */
#ifndef CLAVE_WEB_API_LOCK_TOKEN_API_H
#define CLAVE_WEB_API_LOCK_TOKEN_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_lock_or_token;

#endif
