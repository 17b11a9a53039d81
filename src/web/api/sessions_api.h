/* sessions_api.h - /v1/sessions: makes, renews, lists and ends sessions. Called by routes.c. */
#ifndef CLAVE_WEB_API_SESSIONS_API_H
#define CLAVE_WEB_API_SESSIONS_API_H

#include "web/http/exchange.h"

void clave__web_post_session(struct web_exchange *x);
void clave__web_list_sessions(struct web_exchange *x);
void clave__web_get_session(struct web_exchange *x);
void clave__web_renew_session(struct web_exchange *x);
void clave__web_delete_session(struct web_exchange *x);

#endif
