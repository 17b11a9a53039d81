/* server_stop.c - why and how a server ends: SIGTERM, a fault of the disk, no client for a while.
 * The last replies have some time. */
#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include "runtime/server/admin.h"
#include "runtime/server/uv_server_internal.h"

enum { GRACE_MS = 1000 };

static void stop_enter(struct server_run *r, enum run_phase phase)
{
    assert(phase >= r->phase);
    r->phase = phase;
    if (phase == RUN_STOPPED)
        clave__txn_log_thread_end(&r->log_thread);
}

void clave__run_fail(struct server_run *r, clave_err err, const char *fmt, ...)
{
    assert(err != CLAVE_OK);
    if (r->result == CLAVE_OK) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(r->fault, sizeof r->fault, fmt, ap);
        va_end(ap);
        r->result = err;
    }
    stop_enter(r, RUN_STOPPED); /* the caller of the loop gets the reason */
}

void clave__run_halt(struct server_run *r)
{
    stop_enter(r, RUN_STOPPED);
}

void clave__run_close_listeners(struct server_run *r)
{
    while (!list_empty(&r->listeners))
        clave__listener_close(LIST_ENTRY(r->listeners.next, struct listener, link));
}

static void stop_on_grace(uv_timer_t *t)
{
    struct server_run *r = t->data;
    clave__conn_close_quiet(r, true);
}

static void stop_begin(struct server_run *r, const char *why)
{
    if (r->phase != RUN_SERVING)
        return;
    if (r->notify)
        r->notify(r->notify_arg, true);
    clave__log(&r->log, CLAVE_LOG_INFO, "stopping: %s", why);
    clave__run_close_listeners(r);
    clave__admin_stop(r);
    uv_timer_start(&r->grace, stop_on_grace, GRACE_MS, 0);
    stop_enter(r, RUN_STOPPING);
    clave__run_pump(r);
}

static void stop_on_request(uv_async_t *a)
{
    stop_begin(a->data, "requested");
}

static void stop_on_signal(uv_signal_t *s, int number)
{
    struct server_run *r = s->data;
    if (r->phase == RUN_STOPPING) /* a second time: do not wait for unread replies */
        clave__conn_close_quiet(r, true);
    else
        stop_begin(r, number == SIGTERM ? "SIGTERM" : "SIGINT");
}

static void stop_on_idle(uv_timer_t *t)
{
    stop_begin(t->data, "no client is connected");
}

void clave__run_count(struct server_run *r)
{
    bool none = list_empty(&r->conns);
    if (r->phase == RUN_STOPPING && none && clave__run_is_durable(r))
        stop_enter(r, RUN_STOPPED);
    if (r->idle_exit_ms == 0 || r->phase != RUN_SERVING)
        return;
    if (none)
        uv_timer_start(&r->idle, stop_on_idle, r->idle_exit_ms, 0);
    else
        uv_timer_stop(&r->idle);
}

void clave__run_init_stop(struct server_run *r, bool signals)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    uv_async_init(&r->loop, &r->stop, stop_on_request);
    uv_timer_init(&r->loop, &r->idle);
    uv_timer_init(&r->loop, &r->grace);
    r->stop.data = r->idle.data = r->grace.data = r;
    for (size_t i = 0; i < 2; i++) {
        uv_signal_init(&r->loop, &r->signals[i]);
        r->signals[i].data = r;
        if (signals)
            uv_signal_start(&r->signals[i], stop_on_signal, numbers[i]);
    }
}
