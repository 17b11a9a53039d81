/* events_api.h - GET /v1/events: server-sent events of what happens in the tree. */
#ifndef CLAVE_WEB_API_EVENTS_API_H
#define CLAVE_WEB_API_EVENTS_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_events;

#endif
