/* transfer_api.h - POST /v1/elections/PATH/transfer: the leadership goes to a candidate. Called by
 * routes.c. */
#ifndef CLAVE_WEB_API_ACTIONS_TRANSFER_API_H
#define CLAVE_WEB_API_ACTIONS_TRANSFER_API_H

#include "web/http/exchange.h"

web_handler clave__web_post_transfer;

#endif
