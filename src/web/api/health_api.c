/* health_api.c - see health_api.h. */
#include "web/api/health_api.h"

#include "clave/version.h"
#include "client/client_for_gate.h"
#include "web/api/observe_request.h"
#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/observe/observe.h"
#include "web/server_trend.h"

static void health_answer(struct web_exchange *x, const char *status)
{
    clave__json_open(&x->json, NULL, '{');
    clave__json_string(&x->json, "status", status);
    clave__json_close(&x->json, '}');
    clave__web_answer_json(x, 200);
}

void clave__web_get_healthz(struct web_exchange *x)
{
    health_answer(x, "ok");
}

void clave__web_get_readyz(struct web_exchange *x)
{
    static const struct problem not_ready = {
        .status = 503, .err = CLAVE_EUNREACHABLE, .retry_after_s = 1};
    clave_async_client *c = x->web->own;
    const struct observe *o = x->web->observe;
    int64_t heard = clave__client_contact(c);
    /* While the feed runs there is always something to be answered. */
    bool silent = o->feed && heard != INT64_MIN && x->web->now - heard > OBSERVE_CURRENT_MS;
    if (clave_async_client_is_connected(c) && !silent)
        health_answer(x, "ready");
    else if (silent)
        clave__web_problem(x, &not_ready, "no ZooKeeper server has answered for %lld ms",
                           (long long)(x->web->now - heard));
    else
        clave__web_problem(x, &not_ready, "not connected to a ZooKeeper server: %s",
                           clave_async_client_errmsg(c));
}

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

void clave__web_get_whoami(struct web_exchange *x)
{
    struct json *j = &x->json;
    if (x->who.found != ACCESS_KNOWN && !clave__web_must(x, WEB_READ, NULL))
        return;
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "name", x->who.name);
    clave__json_open(j, "grants", '[');
    for (size_t i = 0; i < x->who.ngrants; i++) {
        clave__json_open(j, NULL, '{');
        clave__json_string(j, "role", clave__web_role_name(x->who.grants[i].role));
        clave__json_string(j, "prefix", x->who.grants[i].prefix);
        clave__json_close(j, '}');
    }
    clave__json_close(j, ']');
    clave__json_close(j, '}');
    clave__web_answer_json(x, 200);
}
