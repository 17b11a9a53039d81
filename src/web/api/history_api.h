/* history_api.h - GET /v1/history: who queued for, held and lost what. */
#ifndef CLAVE_WEB_API_HISTORY_API_H
#define CLAVE_WEB_API_HISTORY_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_history;

#endif
