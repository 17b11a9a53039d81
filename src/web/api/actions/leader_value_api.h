/* leader_value_api.h - PUT /v1/elections/PATH/value: the session that leads publishes a value.
 * Called by routes.c. */
#ifndef CLAVE_WEB_API_ACTIONS_LEADER_VALUE_API_H
#define CLAVE_WEB_API_ACTIONS_LEADER_VALUE_API_H

#include "web/http/exchange.h"

void clave__web_put_value(struct web_exchange *x);

#endif
