/* own_client.c - see own_client.h. Called by web.c. */
#include "web/own_client.h"

clave_err clave__own_client_open(struct web *w)
{
    clave_client_options o = CLAVE_CLIENT_OPTIONS_INIT;
    o.hosts = w->o.hosts;
    o.session_timeout_ms = w->o.session_timeout_ms;
    o.seed = clave__rand_u64(&w->rand) | 1;
    o.mem = &w->mem;
    o.log = w->o.log.cb;
    o.log_arg = w->o.log.arg;
    o.tls = w->o.tls;
    return w->o.env->client_open(w->o.env->arg, &o, &w->own);
}

void clave__own_client_close(struct web *w, int64_t now)
{
    if (!w->own)
        return;
    clave_async_client_close(w->own, now);
    clave__web_flush(w, w->own);
}

bool clave__own_client_is_closed(const struct web *w)
{
    return !w->own || clave_async_client_state(w->own) == CLAVE_STATE_CLOSED;
}

void clave__own_client_free(struct web *w)
{
    clave_async_client *c = w->own;
    w->own = NULL;
    if (!c)
        return;
    clave_async_client_abandon(c, w->now); /* what is pending ends now */
    w->o.env->client_free(w->o.env->arg, c);
}
