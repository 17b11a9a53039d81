/* locks_api.h - GET /v1/locks and /v1/locks/{path}: who holds and who waits. */
#ifndef CLAVE_WEB_API_LOCKS_API_H
#define CLAVE_WEB_API_LOCKS_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_locks;
web_handler clave__web_get_lock;

#endif
