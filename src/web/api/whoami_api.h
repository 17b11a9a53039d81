/* whoami_api.h - GET /v1/whoami: whom the gate takes the sender for. Called by routes.c. */
#ifndef CLAVE_WEB_API_WHOAMI_API_H
#define CLAVE_WEB_API_WHOAMI_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_whoami;

#endif
