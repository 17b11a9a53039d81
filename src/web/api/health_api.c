/* health_api.c - see health_api.h. */
#include "web/api/health_api.h"

#include "client/client_for_gate.h"
#include "web/http/answer.h"
#include "web/http/problem.h"
#include "web/observe/observe.h"

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
