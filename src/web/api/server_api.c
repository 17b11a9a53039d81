/* server_api.c - see server_api.h. */
#include "web/api/server_api.h"

#include "clave/version.h"
#include "web/api/observe_request.h"
#include "web/http/answer.h"
#include "web/observe/observe.h"
#include "web/server_trend.h"

void clave__web_get_server(struct web_exchange *x)
{
    const struct web *w = x->web;
    struct json *j = &x->json;
    clave_state state = clave_async_client_state(w->own);
    bool connected = clave_async_client_is_connected(w->own);
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "version", clave_version());
    clave__json_string(j, "servers", w->o.hosts);
    clave__json_string(j, "connect", w->o.connect);
    clave__json_bool(j, "connected", connected);
    clave__json_string(j, "state", clave_state_name(state));
    clave__json_string(j, "role",
                       !connected                       ? "none"
                       : state == CLAVE_STATE_READ_ONLY ? "read-only"
                                                        : "read-write");
    clave__json_int64(j, "session_id", clave_async_client_session_id(w->own));
    clave__json_int(j, "max_body", (int64_t)clave__web_max_body(w));
    bool all = clave__observe_may_see(x, NULL); /* as of /metrics */
    clave__server_trend_json(j, w, all);
    if (all && clave__web_query(x, "samples"))
        clave__server_trend_samples_json(j, w);
    clave__json_close(j, '}');
    clave__web_answer_json(x, 200);
}
