/* elections_api.h - GET /v1/elections and /v1/elections/{path}: who leads, who stands, who led. */
#ifndef CLAVE_WEB_API_ELECTIONS_API_H
#define CLAVE_WEB_API_ELECTIONS_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_elections;
web_handler clave__web_get_election;

#endif
