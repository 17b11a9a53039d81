/* contrib_rest.h - /znodes/v1 and /sessions/v1 as Apache's contrib REST gateway has them (SPEC,
 * version 2), for programs that were written for it. Others are better served by /v1. */
#ifndef CLAVE_WEB_API_CONTRIB_CONTRIB_REST_H
#define CLAVE_WEB_API_CONTRIB_CONTRIB_REST_H

#include "web/http/exchange.h"

web_handler clave__web_rest_get, clave__web_rest_put, clave__web_rest_post, clave__web_rest_delete;
web_handler clave__web_rest_post_session, clave__web_rest_put_session,
    clave__web_rest_delete_session;

#endif
