/* health_api.h - /healthz, /readyz: is the gate alive, and does it reach the ZooKeeper servers. */
#ifndef CLAVE_WEB_API_HEALTH_API_H
#define CLAVE_WEB_API_HEALTH_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_healthz, clave__web_get_readyz;

#endif
