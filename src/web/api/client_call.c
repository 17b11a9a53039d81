/* client_call.c - see client_call.h. Called by the endpoints of nodes. */
#include "web/api/client_call.h"

#include "web/http/problem.h"

void clave__client_call(struct web_exchange *x, client_call *go)
{
    static const struct problem away = {
        .status = 503, .err = CLAVE_EUNREACHABLE, .retry_after_s = 1};
    clave_async_client *c = x->web->own;
    bool reads = clave__web_is_method(x, "GET") || clave__web_is_method(x, "HEAD");
    if (!reads && !clave_async_client_is_connected(c)) {
        clave__web_problem(x, &away, "not connected to a ZooKeeper server: %s",
                           clave_async_client_errmsg(c));
        return;
    }
    go(x, c);
    clave__web_flush(x->web, c);
}

bool clave__client_called(struct web_exchange *x)
{
    return clave__web_expected(x);
}

void clave__client_call_refused(struct web_exchange *x, clave_async_client *c, clave_err err,
                                const char *what, const char *path)
{
    bool ours = err == CLAVE_EPATH || err == CLAVE_EINVAL || err == CLAVE_ETOOBIG;
    struct problem p = {.status = err == CLAVE_ETOOBIG ? 413 : 400, .err = err};
    if (ours)
        clave__web_problem(x, &p, "cannot %s %s: %s", what, path, clave_async_client_errmsg(c));
    else
        clave__web_problem_err(x, err, what, path);
}
