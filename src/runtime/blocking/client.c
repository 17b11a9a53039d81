/* client.c - clave_client: opens, closes and describes the asynchronous client for threads. Its
 * state changes on the loop's thread only, and is published under the mutex. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized_options.h"
#include "client/client_internal.h"
#include "runtime/blocking/call.h"
#include "runtime/client/client_settings.h"
#include "runtime/client/uv_client.h"

/* ---- state ---------------------------------------------------------------------------------- */

static bool blocking_client_is_connected(clave_state state)
{
    return state == CLAVE_STATE_CONNECTED || state == CLAVE_STATE_RECONNECTED ||
           state == CLAVE_STATE_READ_ONLY;
}

/* With the mutex held. */
static void wake_waiters(clave_client *s)
{
    for (struct list *e = s->waiters.next; e != &s->waiters; e = e->next)
        clave__cell_wake(&LIST_ENTRY(e, struct waiter, link)->cell);
}

static void blocking_client_on_state(clave_async_client *c, clave_state state, clave_err why,
                                     void *arg)
{
    clave_client *s = arg;
    if (!s->uv) /* it was not opened after all: the caller gets the error instead */
        return;
    clave__loop_lock(s->loop);
    s->state = state;
    s->why = why;
    s->id = clave_async_client_session_id(c);
    s->was_connected = s->was_connected || blocking_client_is_connected(state);
    wake_waiters(s);
    clave__loop_unlock(s->loop);
    if (s->state_cb)
        s->state_cb(c, state, why, s->state_arg);
}

/* Only this thread writes it, so it may read it without the mutex. */
static void look_at_refusal(clave_client *s)
{
    const char *why;
    clave_err refusal = clave__uv_refusal(s->uv, &why);
    if (refusal == s->refusal)
        return;
    clave__loop_lock(s->loop);
    s->refusal = refusal;
    wake_waiters(s);
    clave__loop_unlock(s->loop);
}

static void blocking_client_on_settled(void *arg)
{
    clave_client *s = arg;
    look_at_refusal(s);
    for (struct list *e = s->children.next; e != &s->children; e = e->next) {
        struct observer *o = LIST_ENTRY(e, struct observer, link);
        if (o->settled)
            o->settled(o);
    }
}

static void blocking_client_flush(struct task *t)
{
    clave_client *s = LIST_ENTRY(t, struct clave_client, flush);
    if (!s->ended)
        clave_uv_flush(s->uv);
}

void clave__blocking_flush_later(clave_client *s)
{
    clave__loop_finally(s->loop, &s->flush);
}

bool clave__blocking_await_locked(clave_client *s, int64_t deadline)
{
    struct waiter w;
    clave__cell_init(&w.cell);
    list_push_back(&s->waiters, &w.link);
    bool in_time = clave__cell_wait(&w.cell, s->loop, deadline);
    list_remove(&w.link);
    clave__cell_fini(&w.cell);
    return in_time;
}

/* ---- life ----------------------------------------------------------------------------------- */

void clave__session_ref(clave_client *s)
{
    (void)__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
}

void clave__session_adopt(clave_client *s, struct observer *o)
{
    list_push_back(&s->children, &o->link);
    clave__session_ref(s);
}

void clave__session_unref(clave_client *s)
{
    if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    clave__loop_unref(s->loop);
    free(s);
}

bool clave__session_has_ended(clave_client *s)
{
    clave__loop_lock(s->loop);
    bool ended = s->ended;
    clave__loop_unlock(s->loop);
    return ended;
}

struct blocking_client_start {
    clave_client *s;
    clave_err err;
};

static void blocking_client_start(void *arg)
{
    struct blocking_client_start *a = arg;
    clave_client *s = a->s;
    a->err = clave__uv_start(&s->uv, &s->loop->uv, &s->loop->wakeup, s->client);
    if (a->err != CLAVE_OK)
        return;
    clave__uv_on_settled(s->uv, blocking_client_on_settled, s);
    list_push_back(&s->loop->clients, &s->in_loop);
}

static clave_err start_client(clave_client *s)
{
    struct blocking_client_start a = {.s = s, .err = CLAVE_ECLOSED};
    if (clave__loop_run(s->loop, blocking_client_start, &a) == CLAVE_ELOOPTHREAD)
        blocking_client_start(&a);
    return a.err;
}

/* Why the latest clave_client_open of this thread failed: there is no client that could say it. */
static _Thread_local char open_fault[512];

/* `own`: the options, completed. */
static clave_err make_client(clave_client *s, clave_client_options *own, const char *warning,
                             const struct fault *f)
{
    if (own->seed == 0)
        own->seed = clave_random_seed();
    s->state_cb = own->state_cb;
    s->state_arg = own->state_arg;
    own->state_cb = blocking_client_on_state;
    own->state_arg = s;
    clave_err err = clave_async_client_new(&s->client, own);
    if (err == CLAVE_EHOST)
        clave__start_error(f, err, "invalid server list '%s': %s", own->hosts,
                           clave_async_client_host_fault(own->hosts));
    else if (err == CLAVE_EINVAL)
        clave__start_error(f, err, "invalid clave_client_options: %s",
                           clave_async_client_options_fault(own));
    return err == CLAVE_OK && *warning ? clave__client_warn_at_grant(s->client, warning) : err;
}

/* Starts a loop of its own unless there is one. */
static clave_err launch_client(clave_client *s, const struct fault *f)
{
    clave_err err = s->loop ? CLAVE_OK : clave_loop_new(&s->loop);
    if (err != CLAVE_OK)
        return err;
    err = start_client(s);
    if (err != CLAVE_OK)
        clave__start_error(f, err, "%s", clave_async_client_errmsg(s->client));
    return err;
}

clave_err clave_client_open(clave_client **out, clave_loop *loop, const char *connect,
                            const clave_client_options *o)
{
    const struct fault f = {open_fault, sizeof open_fault};
    struct client_settings settings = {.connect = NULL};
    char warning[CLIENT_WARNING_CAP] = "";
    clave_client_options own;
    clave_client *s = calloc(1, sizeof *s);
    clave_err err = s ? clave__options_take(&own, sizeof own, o) : CLAVE_ENOMEM;
    *out = NULL;
    open_fault[0] = '\0';
    if (err == CLAVE_EINVAL)
        clave__start_error(&f, err, "clave_client_options %s", clave__options_fault(sizeof own, o));
    if (err != CLAVE_OK)
        goto fail;
    s->loop = loop;
    s->own_loop = !loop;
    s->state = CLAVE_STATE_LATENT;
    list_init(&s->waiters);
    list_init(&s->children);
    list_init(&s->in_loop);
    list_init(&s->flush.link);
    s->flush.run = blocking_client_flush;
    own.hosts = connect;
    if (!connect)
        err = clave__client_settings_complete(&settings, &own, warning, &f);
    if (err == CLAVE_OK)
        err = make_client(s, &own, warning, &f);
    if (err == CLAVE_OK)
        err = launch_client(s, &f);
    if (err != CLAVE_OK)
        goto fail;
    clave__client_settings_fini(&settings);
    s->refs = 1;
    clave__loop_ref(s->loop);
    *out = s;
    return CLAVE_OK;
fail:
    clave__client_settings_fini(&settings);
    if (open_fault[0] == '\0')
        clave__start_error(&f, err, "%s", clave_strerror(err));
    if (s) {
        clave_async_client_free(s->client);
        if (s->own_loop)
            clave_loop_free(s->loop);
    }
    free(s);
    return err;
}

void clave__blocking_enter_locked(clave_client *s)
{
    s->inside++;
}

void clave__blocking_leave_locked(clave_client *s)
{
    assert(s->inside > 0);
    if (--s->inside == 0)
        wake_waiters(s);
}

clave_err clave_client_wait(clave_client *s, int64_t timeout_ms)
{
    int64_t deadline = clave__deadline_after(timeout_ms);
    clave_err err = CLAVE_OK;
    if (!clave__loop_is_here(s->loop))
        return CLAVE_ECLOSED;
    if (clave__loop_is_current(s->loop))
        return CLAVE_ELOOPTHREAD;
    clave_loop *l = s->loop;
    clave__loop_lock(l);
    clave__blocking_enter_locked(s);
    while (!blocking_client_is_connected(s->state) && err == CLAVE_OK) {
        if (s->state == CLAVE_STATE_CLOSED)
            err = s->why != CLAVE_OK ? s->why : CLAVE_ECLOSED;
        else if (s->refusal != CLAVE_OK)
            err = s->refusal;
        else if (!clave__blocking_await_locked(s, deadline))
            err = CLAVE_EUNREACHABLE;
    }
    clave__blocking_leave_locked(s);
    clave__loop_unlock(l);
    return err;
}

static void close_client(void *arg)
{
    clave_client *s = arg;
    clave_async_client_close(s->client, clave_now());
    clave_uv_flush(s->uv);
}

/* User code runs only when no child depends on the client any more, since it may free them. */
static void end_children(clave_client *s)
{
    struct list *e;
    while ((e = list_pop_front(&s->children))) {
        struct observer *o = LIST_ENTRY(e, struct observer, link);
        o->ended(o);
    }
}

static void on_stopped(void *arg)
{
    clave_client *s = arg;
    clave__loop_lock(s->loop);
    s->ended = true;
    clave__loop_unlock(s->loop);
    end_children(s);
    list_remove(&s->in_loop);
    clave__client_totals_add_client(&s->loop->past, s->client);
    clave_async_client_free(s->client);
    s->client = NULL;
    s->uv = NULL;
    clave__loop_lock(s->loop);
    s->stopped = true;
    wake_waiters(s);
    clave__loop_unlock(s->loop);
}

static void stop_client(void *arg)
{
    clave_client *s = arg;
    clave_async_client_abandon(s->client, clave_now()); /* does nothing if it is closed already */
    clave_uv_flush(s->uv);
    clave_uv_stop(s->uv, on_stopped, s);
}

void clave_client_close(clave_client *s, int64_t timeout_ms)
{
    if (!s || !clave__loop_is_here(s->loop))
        return;
    clave_loop *l = s->loop;
    int64_t deadline = clave__deadline_after(timeout_ms);
    clave__loop_must_not_be_current(l, "clave_client_close");
    (void)clave__loop_run(l, close_client, s);
    clave__loop_lock(l);
    while (s->state != CLAVE_STATE_CLOSED && clave__blocking_await_locked(s, deadline))
        continue;
    clave__loop_unlock(l);
    clave__loop_run(l, stop_client, s);
    clave__loop_lock(l);
    while (!s->stopped || s->inside > 0)
        clave__blocking_await_locked(s, CLAVE_NEVER);
    clave__loop_unlock(l);
    if (s->own_loop)
        clave_loop_free(l);
    clave__session_unref(s);
}

/* ---- what is known -------------------------------------------------------------------------- */

clave_state clave_client_state(clave_client *s)
{
    if (!clave__loop_is_here(s->loop))
        return CLAVE_STATE_CLOSED;
    clave__loop_lock(s->loop);
    clave_state state = s->state;
    clave__loop_unlock(s->loop);
    return state;
}

int64_t clave_client_id(clave_client *s)
{
    if (!clave__loop_is_here(s->loop))
        return 0;
    clave__loop_lock(s->loop);
    int64_t id = s->id;
    clave__loop_unlock(s->loop);
    return id;
}

struct errmsg {
    clave_client *s;
    char *buf;
    size_t cap;
};

static void copy_errmsg(void *arg)
{
    struct errmsg *e = arg;
    const char *text;
    if (clave__uv_refusal(e->s->uv, &text) == CLAVE_OK)
        text = clave_async_client_errmsg(e->s->client);
    size_t n = strlen(text);
    n = n < e->cap ? n : e->cap - 1;
    memcpy(e->buf, text, n);
    e->buf[n] = '\0';
}

const char *clave_client_errmsg(clave_client *s, char *buf, size_t cap)
{
    struct errmsg e = {.s = s, .buf = buf, .cap = cap};
    if (!s)
        snprintf(buf, cap, "%s", open_fault);
    else if (!clave__loop_is_here(s->loop))
        snprintf(buf, cap,
                 "this process is a fork of the one that opened the session, and needs its own");
    else if (cap > 0 && clave__loop_run(s->loop, copy_errmsg, &e) == CLAVE_ELOOPTHREAD)
        copy_errmsg(&e);
    return buf;
}

/* ---- functions on the loop ------------------------------------------------------------------ */

struct blocking_client_visit {
    struct task task; /* _post only */
    clave_client *s;
    clave_loop_fn *fn;
    void *arg;
    bool too_late;
};

static void blocking_client_visit(void *arg)
{
    struct blocking_client_visit *v = arg;
    v->too_late = v->s->ended;
    if (v->too_late)
        return;
    clave_async_client_tick(v->s->client, clave_now());
    v->fn(v->s->client, v->arg);
    clave__blocking_flush_later(v->s);
}

static void visit_and_free(struct task *t)
{
    struct blocking_client_visit *v = LIST_ENTRY(t, struct blocking_client_visit, task);
    blocking_client_visit(v);
    clave__session_unref(v->s);
    free(v);
}

/* From here on the loop's thread waits until _leave. false: the client has ended, and nothing else
 * touches its children any more. */
static bool enter_unless_ended(clave_client *s)
{
    bool current = clave__loop_is_current(s->loop);
    clave__loop_lock(s->loop);
    bool ended = s->ended;
    if (!ended)
        clave__blocking_enter_locked(s);
    while (ended && !s->stopped && !current)
        clave__blocking_await_locked(s, CLAVE_NEVER);
    clave__loop_unlock(s->loop);
    return !ended;
}

static void blocking_client_leave(clave_client *s)
{
    clave__loop_lock(s->loop);
    clave__blocking_leave_locked(s);
    clave__loop_unlock(s->loop);
}

clave_err clave_client_run(clave_client *s, clave_loop_fn *fn, void *arg)
{
    struct blocking_client_visit v = {.s = s, .fn = fn, .arg = arg};
    if (!clave__loop_is_here(s->loop) || !enter_unless_ended(s))
        return CLAVE_ECLOSED;
    clave_err err = clave__loop_run(s->loop, blocking_client_visit, &v);
    blocking_client_leave(s);
    return v.too_late ? CLAVE_ECLOSED : err;
}

void clave__blocking_do(clave_client *s, clave_loop_fn *fn, void *arg)
{
    clave_err err = clave_client_run(s, fn, arg);
    if (err == CLAVE_ELOOPTHREAD && !s->ended)
        fn(s->client, arg);
}

struct refusal {
    const char *name, *fault;
};

static void tell_refusal(clave_async_client *c, void *arg)
{
    const struct refusal *r = arg;
    clave__client_fault(c, "%s %s", r->name, r->fault);
}

clave_err clave__session_take_options(clave_client *s, void *dst, size_t dst_size, const void *src,
                                      const char *name)
{
    struct refusal r = {.name = name, .fault = clave__options_fault(dst_size, src)};
    if (r.fault)
        clave__blocking_do(s, tell_refusal, &r);
    return clave__options_take(dst, dst_size, src);
}

clave_err clave_client_post(clave_client *s, clave_loop_fn *fn, void *arg)
{
    if (!clave__loop_is_here(s->loop))
        return CLAVE_ECLOSED;
    struct blocking_client_visit *v = malloc(sizeof *v);
    if (!v)
        return CLAVE_ENOMEM;
    *v = (struct blocking_client_visit){.task.run = visit_and_free, .s = s, .fn = fn, .arg = arg};
    clave__session_ref(s);
    clave__loop_post(s->loop, &v->task);
    return CLAVE_OK;
}
