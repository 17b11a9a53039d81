/* testserver_calls.c - how any thread has something done on the thread of a test server. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/testing/testserver_internal.h"

/* A request of a caller, run on the server's thread. */
struct order {
    clave_err (*fn)(clave_test_server *t, void *arg);
    void *arg;
    clave_err err;
};

clave_err clave__testserver_fault(clave_test_server *t, clave_err err, const char *fmt, ...)
{
    char text[sizeof t->fault];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&t->mutex);
    memcpy(t->fault, text, sizeof text);
    pthread_mutex_unlock(&t->mutex);
    if (t->log)
        t->log(t->log_arg, CLAVE_LOG_ERROR, text);
    return err;
}

const char *clave_test_server_errmsg(clave_test_server *t, char *buf, size_t cap)
{
    pthread_mutex_lock(&t->mutex);
    snprintf(buf, cap, "%s", t->fault);
    pthread_mutex_unlock(&t->mutex);
    return buf;
}

clave_err clave__testserver_enter(clave_test_server *t)
{
    pthread_mutex_lock(&t->mutex);
    bool own = t->serving && clave__run_is_current(t->run);
    pthread_mutex_unlock(&t->mutex);
    return own || pthread_mutex_lock(&t->calls) != 0 ? CLAVE_ELOOPTHREAD : CLAVE_OK;
}

clave_err clave__testserver_leave(clave_test_server *t, clave_err err)
{
    pthread_mutex_unlock(&t->calls);
    return err;
}

clave_err clave__testserver_order(clave_test_server *t,
                                  clave_err (*fn)(clave_test_server *, void *), void *arg)
{
    struct order o = {.fn = fn, .arg = arg, .err = CLAVE_ECLOSED};
    pthread_mutex_lock(&t->mutex);
    if (t->serving) {
        assert(!t->order); /* one call at a time */
        t->order = &o;
        uv_async_send(&t->wake);
        while (t->order)
            pthread_cond_wait(&t->turned, &t->mutex);
    }
    pthread_mutex_unlock(&t->mutex);
    return o.err;
}

clave_err clave__testserver_call(clave_test_server *t, clave_err (*fn)(clave_test_server *, void *),
                                 void *arg)
{
    clave_err err = clave__testserver_enter(t);
    if (err != CLAVE_OK)
        return err;
    err = clave__testserver_order(t, fn, arg);
    if (err == CLAVE_ECLOSED)
        clave__testserver_fault(t, err, "the server is not running");
    return clave__testserver_leave(t, err);
}

clave_err clave__testserver_call_anyhow(clave_test_server *t,
                                        clave_err (*fn)(clave_test_server *, void *), void *arg)
{
    clave_err err = clave__testserver_enter(t);
    if (err != CLAVE_OK)
        return err;
    err = clave__testserver_order(t, fn, arg);
    return clave__testserver_leave(t, err == CLAVE_ECLOSED ? fn(t, arg) : err);
}

static void testserver_on_wake(uv_async_t *a)
{
    clave_test_server *t = a->data;
    pthread_mutex_lock(&t->mutex);
    struct order *o = t->order;
    pthread_mutex_unlock(&t->mutex);
    if (!o)
        return;
    clave__run_tick(t->run);
    o->err = o->fn(t, o->arg);
    clave__run_pump(t->run);
    pthread_mutex_lock(&t->mutex);
    t->order = NULL;
    pthread_cond_broadcast(&t->turned);
    pthread_mutex_unlock(&t->mutex);
}

void clave__testserver_init_calls(clave_test_server *t)
{
    uv_async_init(&t->run->loop, &t->wake, testserver_on_wake);
    t->wake.data = t;
}
