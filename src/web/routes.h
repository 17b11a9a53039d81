/* routes.h - the one table of all endpoints. */
#ifndef CLAVE_WEB_ROUTES_H
#define CLAVE_WEB_ROUTES_H

#include "web/http/route.h"

/* Each is in openapi.json. */
extern const struct route_table clave__routes;

#endif
