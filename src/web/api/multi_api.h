/* multi_api.h - POST /v1/multi: several changes and checks in one transaction. */
#ifndef CLAVE_WEB_API_MULTI_API_H
#define CLAVE_WEB_API_MULTI_API_H

#include "web/http/exchange.h"

web_handler clave__web_post_multi;

#endif
