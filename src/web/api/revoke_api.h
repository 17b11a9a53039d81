/* revoke_api.h - POST /v1/locks/PATH/revoke and /break: asks the owner of a place in a queue to
 * give it up, or deletes its node. */
#ifndef CLAVE_WEB_API_REVOKE_API_H
#define CLAVE_WEB_API_REVOKE_API_H

#include "web/http/exchange.h"

web_handler clave__web_post_revoke, clave__web_post_break;

#endif
