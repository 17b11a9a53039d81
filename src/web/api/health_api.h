/* health_api.h - the gate itself: is it alive, what is it connected to, whom does it take the
 * sender for. */
#ifndef CLAVE_WEB_API_HEALTH_API_H
#define CLAVE_WEB_API_HEALTH_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_healthz, clave__web_get_readyz, clave__web_get_server,
    clave__web_get_whoami;

#endif
