/* revoke_api.h - who is asked to give something up, or loses it: POST /v1/locks/PATH/revoke and
 * /break, for a place in a queue. */
#ifndef CLAVE_WEB_API_ACTIONS_REVOKE_API_H
#define CLAVE_WEB_API_ACTIONS_REVOKE_API_H

#include "web/http/exchange.h"

web_handler clave__web_post_revoke, clave__web_post_break;

#endif
