/* deadlocks_api.h - GET /v1/deadlocks: owners that wait for each other. */
#ifndef CLAVE_WEB_API_DEADLOCKS_API_H
#define CLAVE_WEB_API_DEADLOCKS_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_deadlocks;

#endif
