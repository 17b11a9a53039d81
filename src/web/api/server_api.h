/* server_api.h - GET /v1/server: the gate and the servers that it is connected to. Called by
 * routes.c. */
#ifndef CLAVE_WEB_API_SERVER_API_H
#define CLAVE_WEB_API_SERVER_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_server;

#endif
