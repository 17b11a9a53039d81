/* health_api.h - the gate itself, for those who watch over it: is it alive, are its servers. */
#ifndef CLAVE_WEB_API_HEALTH_API_H
#define CLAVE_WEB_API_HEALTH_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_healthz, clave__web_get_readyz;

#endif
