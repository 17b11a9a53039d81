/* watch_handle.c - a watch as its user has it: clave_async_watch_new, _disarm, _free. */
#include "client/client_internal.h"

clave_err clave_async_watch_new(clave_async_watch **out, clave_async_client *c, clave_watch_cb *cb,
                                void *arg)
{
    clave_async_watch *w = clave__mem_zalloc(&c->mem, sizeof *w);
    *out = w;
    if (!w)
        return CLAVE_ENOMEM;
    list_init(&w->link);
    w->client = c;
    w->cb = cb;
    w->arg = arg;
    clave__client_ref(c);
    return CLAVE_OK;
}

void clave_async_watch_disarm(clave_async_watch *w)
{
    if (clave__client_watch_disarm(w))
        clave__pipeline_fill(w->client);
}

void clave_async_watch_free(clave_async_watch *w)
{
    if (!w)
        return;
    clave_async_client *c = w->client;
    clave_async_watch_disarm(w);
    clave__mem_free(&c->mem, w->path);
    clave__mem_free(&c->mem, w);
    clave__client_drop(c); /* not _unref: the watch may be a recipe's, in mid-operation */
}

bool clave_async_watch_is_armed(const clave_async_watch *w)
{
    return w->phase != WATCH_IDLE;
}
