/* client.c - clave_client: opening, closing and describing an asynchronous client for threads. Its
 * state changes only on the loop's thread and is published under the mutex. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sized_options.h"
#include "client/client_for_recipes.h"
#include "runtime/blocking/call.h"
#include "runtime/client/client_settings.h"
#include "runtime/client/session_file.h"
#include "runtime/client/uv_client.h"

/* ---- state ---------------------------------------------------------------------------------- */

/* Call it with the mutex held. */
static void client_wake_waiters(clave_client *c)
{
    for (struct list *e = c->waiters.next; e != &c->waiters; e = e->next)
        clave__cell_wake(&LIST_ENTRY(e, struct waiter, link)->cell);
}

static void client_on_state(clave_async_client *c, clave_state state, clave_err why, void *arg)
{
    clave_client *client = arg;
    if (!client->uv) /* opening has failed: the caller gets the error instead */
        return;
    clave__loop_lock(client->loop);
    client->state = state;
    client->why = why;
    client->id = clave_async_client_session_id(c);
    client->was_connected = client->was_connected || clave__state_is_up(state);
    client_wake_waiters(client);
    clave__loop_unlock(client->loop);
    if (client->state_cb)
        client->state_cb(c, state, why, client->state_arg);
}

void clave__blocking_publish(clave_client *c)
{
    assert(clave__loop_is_current(c->loop) && !c->ended);
    for (struct list *e = c->children.next; e != &c->children; e = e->next) {
        struct child *child = LIST_ENTRY(e, struct child, link);
        if (child->kind->settled)
            child->kind->settled(child);
    }
}

static void client_on_settled(void *arg)
{
    clave_client *c = arg;
    const char *why;
    clave_err refusal = clave__uv_refusal(c->uv, &why);
    if (refusal != c->refusal) { /* read without the mutex, since only this thread writes it */
        clave__loop_lock(c->loop);
        c->refusal = refusal;
        client_wake_waiters(c);
        clave__loop_unlock(c->loop);
    }
    clave__blocking_publish(c);
}

static void client_flush(struct task *t)
{
    clave_client *c = LIST_ENTRY(t, struct clave_client, flush);
    if (!c->ended)
        clave_uv_flush(c->uv);
}

void clave__blocking_flush_later(clave_client *c)
{
    clave__loop_finally(c->loop, &c->flush);
}

bool clave__blocking_await_locked(clave_client *c, int64_t deadline)
{
    struct waiter w;
    clave__cell_init(&w.cell);
    list_push_back(&c->waiters, &w.link);
    bool in_time = clave__cell_wait(&w.cell, c->loop, deadline);
    list_remove(&w.link);
    clave__cell_fini(&w.cell);
    return in_time;
}

/* ---- opening and closing --------------------------------------------------------------------- */

void clave__blocking_client_unref(clave_client *c)
{
    assert(__atomic_load_n(&c->refs, __ATOMIC_RELAXED) > 0);
    if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    clave__loop_unref(c->loop);
    free(c);
}

struct start {
    clave_client *c;
    clave_err err;
};

static void client_start(void *arg)
{
    struct start *a = arg;
    clave_client *c = a->c;
    a->err = clave__uv_start(&c->uv, &c->loop->uv, &c->loop->wakeup, c->async);
    if (a->err != CLAVE_OK)
        return;
    clave__uv_on_settled(c->uv, client_on_settled, c);
    list_push_back(&c->loop->clients, &c->in_loop);
}

/* Why the latest clave_client_open of this thread failed, when there is no client to ask. */
static _Thread_local char open_fault[512];

/* `own` are the completed options. */
static clave_err make_client(clave_client *c, clave_client_options *own, const char *warning,
                             const struct fault *f)
{
    char *resumed = NULL;
    const char *fault;
    clave_err err = CLAVE_OK;
    if (own->seed == 0)
        own->seed = clave_random_seed();
    if (own->resume_file)
        err = clave__session_file_read(own->resume_file, &resumed, f);
    if (err != CLAVE_OK) {
        free(resumed);
        return err;
    }
    if (resumed)
        own->resume = resumed;
    c->state_cb = own->state_cb;
    c->state_arg = own->state_arg;
    own->state_cb = client_on_state;
    own->state_arg = c;
    err = clave_async_client_new(&c->async, own);
    if (err == CLAVE_EHOST)
        clave__start_error(f, err, "invalid server list '%s': %s", own->hosts,
                           clave_async_client_host_fault(own->hosts));
    else if (err == CLAVE_EINVAL && (fault = clave_async_client_options_fault(own)))
        clave__start_error(f, err, "invalid clave_client_options: %s", fault);
    else if (err == CLAVE_EINVAL)
        clave__start_error(f, err,
                           "the session to resume was used below another chroot than that of '%s'",
                           own->hosts);
    free(resumed);
    if (err == CLAVE_OK && own->resume_file)
        err = clave__session_file_remove(own->resume_file, f);
    return err == CLAVE_OK && *warning ? clave__client_warn_at_grant(c->async, warning) : err;
}

/* Starts the client, on a loop of its own unless one was given. */
static clave_err launch_client(clave_client *c, const struct fault *f)
{
    struct start a = {.c = c, .err = CLAVE_ECLOSED};
    clave_err err = c->loop ? CLAVE_OK : clave_loop_new(&c->loop);
    if (err != CLAVE_OK)
        return err;
    if (clave__loop_run(c->loop, client_start, &a) == CLAVE_ELOOPTHREAD)
        client_start(&a);
    if (a.err != CLAVE_OK)
        clave__start_error(f, a.err, "%s", clave_async_client_errmsg(c->async));
    return a.err;
}

clave_err clave_client_open(clave_client **out, clave_loop *loop, const char *connect,
                            const clave_client_options *o)
{
    const struct fault f = {open_fault, sizeof open_fault};
    struct client_settings settings = {.connect = NULL};
    char warning[CLIENT_WARNING_CAP] = "";
    clave_client_options own;
    clave_client *c = calloc(1, sizeof *c);
    clave_err err = c ? clave__options_take(&own, sizeof own, o) : CLAVE_ENOMEM;
    *out = NULL;
    open_fault[0] = '\0';
    if (err == CLAVE_EINVAL)
        clave__start_error(&f, err, "clave_client_options %s", clave__options_fault(sizeof own, o));
    if (err != CLAVE_OK)
        goto fail;
    c->loop = loop;
    c->own_loop = !loop;
    c->state = CLAVE_STATE_LATENT;
    list_init(&c->waiters);
    list_init(&c->children);
    list_init(&c->in_loop);
    list_init(&c->flush.link);
    c->flush.run = client_flush;
    own.hosts = connect;
    if (!connect)
        err = clave__client_settings_complete(&settings, &own, warning, &f);
    if (err == CLAVE_OK)
        err = make_client(c, &own, warning, &f);
    if (err == CLAVE_OK)
        err = launch_client(c, &f);
    if (err != CLAVE_OK)
        goto fail;
    clave__client_settings_fini(&settings);
    c->refs = 1;
    clave__loop_ref(c->loop);
    *out = c;
    return CLAVE_OK;
fail:
    clave__client_settings_fini(&settings);
    if (open_fault[0] == '\0')
        clave__start_error(&f, err, "%s", clave_strerror(err));
    if (c) {
        clave_async_client_free(c->async);
        if (c->own_loop)
            clave_loop_free(c->loop);
    }
    free(c);
    return err;
}

/* The client may already be CLOSED, for a reason that is still to be reported. */
static clave_err client_wait_enter(clave_client *c)
{
    if (!clave__loop_is_here(c->loop))
        return CLAVE_ECLOSED;
    if (clave__loop_is_current(c->loop))
        return c->ended ? CLAVE_ECLOSED : CLAVE_ELOOPTHREAD;
    clave__loop_lock(c->loop);
    c->inside++;
    return CLAVE_OK;
}

clave_err clave__wait_enter(clave_client *c)
{
    clave_err err = client_wait_enter(c);
    if (err != CLAVE_OK || !c->ended)
        return err;
    clave__wait_leave(c);
    return CLAVE_ECLOSED;
}

void clave__wait_leave(clave_client *c)
{
    assert(c->inside > 0);
    if (--c->inside == 0)
        client_wake_waiters(c);
    clave__loop_unlock(c->loop);
}

clave_err clave_client_wait(clave_client *c, int64_t timeout_ms)
{
    int64_t deadline = clave__deadline_after(timeout_ms);
    clave_err err = client_wait_enter(c);
    if (err != CLAVE_OK)
        return err;
    while (!clave__state_is_up(c->state) && err == CLAVE_OK) {
        if (c->state == CLAVE_STATE_CLOSED)
            err = c->why != CLAVE_OK ? c->why : CLAVE_ECLOSED;
        else if (c->refusal != CLAVE_OK)
            err = c->refusal;
        else if (!clave__blocking_await_locked(c, deadline))
            err = CLAVE_EUNREACHABLE;
    }
    clave__wait_leave(c);
    return err;
}

static void close_client(void *arg)
{
    clave_client *c = arg;
    clave_async_client_close(c->async, clave_now());
    clave_uv_flush(c->uv);
}

static void client_on_stopped(void *arg)
{
    clave_client *c = arg;
    struct list *e;
    assert(clave__loop_is_current(c->loop) && !c->ended);
    clave__loop_lock(c->loop);
    c->ended = true;
    clave__loop_unlock(c->loop);
    /* before user code runs, because that code may free the children */
    while ((e = list_pop_front(&c->children))) {
        struct child *child = LIST_ENTRY(e, struct child, link);
        child->kind->ended(child);
    }
    list_remove(&c->in_loop);
    clave__client_totals_add_client(&c->loop->past, c->async);
    clave_async_client_free(c->async);
    c->async = NULL;
    c->uv = NULL;
    clave__loop_lock(c->loop);
    c->stopped = true;
    client_wake_waiters(c);
    clave__loop_unlock(c->loop);
}

static void stop_client(void *arg)
{
    clave_client *c = arg;
    clave_async_client_abandon(c->async, clave_now()); /* does nothing if it is already closed */
    clave_uv_flush(c->uv);
    clave_uv_stop(c->uv, client_on_stopped, c);
}

void clave_client_close(clave_client *c, int64_t timeout_ms)
{
    if (!c || !clave__loop_is_here(c->loop))
        return;
    clave_loop *l = c->loop;
    int64_t deadline = clave__deadline_after(timeout_ms);
    clave__loop_must_not_be_current(l, "clave_client_close");
    (void)clave__loop_run(l, close_client, c);
    clave__loop_lock(l);
    while (c->state != CLAVE_STATE_CLOSED && clave__blocking_await_locked(c, deadline))
        continue;
    clave__loop_unlock(l);
    clave__loop_run(l, stop_client, c);
    clave__loop_lock(l);
    while (!c->stopped || c->inside > 0)
        clave__blocking_await_locked(c, CLAVE_NEVER);
    clave__loop_unlock(l);
    if (c->own_loop)
        clave_loop_free(l);
    clave__blocking_client_unref(c);
}

/* ---- queries --------------------------------------------------------------------------------- */

clave_state clave_client_state(clave_client *c)
{
    if (!clave__loop_is_here(c->loop))
        return CLAVE_STATE_CLOSED;
    clave__loop_lock(c->loop);
    clave_state state = c->state;
    clave__loop_unlock(c->loop);
    return state;
}

int64_t clave_client_id(clave_client *c)
{
    if (!clave__loop_is_here(c->loop))
        return 0;
    clave__loop_lock(c->loop);
    int64_t id = c->id;
    clave__loop_unlock(c->loop);
    return id;
}

struct fault_copy {
    clave_client *c;
    struct client_fault *out;
};

static void client_copy_fault(void *arg)
{
    struct fault_copy *f = arg;
    const char *text;
    *f->out = *clave__client_latest_fault(f->c->async);
    if (clave__uv_refusal(f->c->uv, &text) == CLAVE_OK)
        text = clave_async_client_errmsg(f->c->async);
    else
        f->out->err = CLAVE_OK;
    memmove(f->out->text, text, strnlen(text, sizeof f->out->text - 1) + 1);
    f->out->text[sizeof f->out->text - 1] = '\0';
}

void clave__blocking_fault(clave_client *c, struct client_fault *out)
{
    struct fault_copy f = {.c = c, .out = out};
    *out = (struct client_fault){.err = CLAVE_OK};
    if (!clave__loop_is_here(c->loop))
        snprintf(out->text, sizeof out->text,
                 "this process is a fork of the one that opened the session, and needs its own");
    else if (clave__loop_run(c->loop, client_copy_fault, &f) == CLAVE_ELOOPTHREAD)
        client_copy_fault(&f);
}

const char *clave_client_errmsg(clave_client *c, char *buf, size_t cap)
{
    struct client_fault fault;
    if (c)
        clave__blocking_fault(c, &fault);
    snprintf(buf, cap, "%s", c ? fault.text : open_fault);
    return buf;
}

/* ---- functions on the loop ------------------------------------------------------------------ */

struct visit {
    struct task task; /* for _post only */
    clave_client *c;
    clave_loop_fn *fn;
    void *arg;
    bool too_late;
};

static void visit_run(void *arg)
{
    struct visit *v = arg;
    v->too_late = v->c->ended;
    if (v->too_late)
        return;
    clave_async_client_tick(v->c->async, clave_now());
    v->fn(v->c->async, v->arg);
    clave__blocking_flush_later(v->c);
}

static void visit_run_and_free(struct task *t)
{
    struct visit *v = LIST_ENTRY(t, struct visit, task);
    visit_run(v);
    clave__blocking_client_unref(v->c);
    free(v);
}

/* From here until clave__wait_leave, the loop's thread waits for us. Returns false if the client
 * has ended; then nothing else touches its children any more. */
static bool client_enter_unless_ended(clave_client *c)
{
    bool current = clave__loop_is_current(c->loop);
    clave__loop_lock(c->loop);
    bool ended = c->ended;
    if (!ended)
        c->inside++;
    while (ended && !c->stopped && !current)
        clave__blocking_await_locked(c, CLAVE_NEVER);
    clave__loop_unlock(c->loop);
    return !ended;
}

clave_err clave_client_run(clave_client *c, clave_loop_fn *fn, void *arg)
{
    struct visit v = {.c = c, .fn = fn, .arg = arg};
    if (!clave__loop_is_here(c->loop) || !client_enter_unless_ended(c))
        return CLAVE_ECLOSED;
    clave_err err = clave__loop_run(c->loop, visit_run, &v);
    clave__loop_lock(c->loop);
    clave__wait_leave(c);
    return v.too_late ? CLAVE_ECLOSED : err;
}

clave_err clave_client_post(clave_client *c, clave_loop_fn *fn, void *arg)
{
    if (!clave__loop_is_here(c->loop))
        return CLAVE_ECLOSED;
    struct visit *v = malloc(sizeof *v);
    if (!v)
        return CLAVE_ENOMEM;
    *v = (struct visit){.task.run = visit_run_and_free, .c = c, .fn = fn, .arg = arg};
    clave__blocking_client_ref(c);
    clave__loop_post(c->loop, &v->task);
    return CLAVE_OK;
}

struct internal_visit {
    loop_visit *fn;
    const struct args *a;
    clave_err err;
};

static void visit_internally(clave_async_client *c, void *arg)
{
    struct internal_visit *v = arg;
    v->err = v->fn(c, v->a);
}

clave_err clave__visit(clave_client *c, loop_visit *fn, const struct args *a)
{
    struct internal_visit v = {.fn = fn, .a = a, .err = CLAVE_ECLOSED};
    clave_err err = clave_client_run(c, visit_internally, &v);
    if (err == CLAVE_ELOOPTHREAD && !c->ended)
        visit_internally(c->async, &v);
    return v.err;
}

/* ---- children ------------------------------------------------------------------------------- */

void clave__child_adopt(struct child *c, clave_client *client, const struct child_kind *kind)
{
    assert(clave__loop_is_current(client->loop) && !client->ended);
    c->client = client;
    c->kind = kind;
    list_push_back(&client->children, &c->link);
    clave__blocking_client_ref(client);
}

struct birth {
    loop_visit *make;
    const struct args *a;
    const struct child_kind *kind;
};

static clave_err child_make(clave_async_client *c, const struct args *a)
{
    struct child *child = a->of;
    const struct birth *b = a->data;
    clave_err err = b->make(c, b->a);
    if (err == CLAVE_OK)
        clave__child_adopt(child, child->client, b->kind);
    return err;
}

clave_err clave__child_open(struct child *c, clave_client *client, const struct child_kind *kind,
                            loop_visit *make, const struct args *a)
{
    const struct birth b = {make, a, kind};
    c->client = client;
    list_init(&c->link);
    return clave__visit(client, child_make, &(struct args){.of = c, .data = &b});
}

static clave_err child_end(clave_async_client *c, const struct args *a)
{
    struct child *child = a->of;
    (void)c;
    list_remove(&child->link);
    child->kind->ended(child);
    return CLAVE_OK;
}

bool clave__child_close(struct child *c)
{
    if (!clave__loop_is_here(c->client->loop))
        return false;
    (void)clave__visit(c->client, child_end, &(struct args){.of = c});
    clave__blocking_client_unref(c->client);
    return true;
}

/* ---- options -------------------------------------------------------------------------------- */

static clave_err client_tell(clave_async_client *c, const struct args *a)
{
    clave__client_fault(c, "%s%s%s", a->path ? a->path : "", a->path ? " " : "", a->text);
    return CLAVE_OK;
}

void clave__blocking_tell(clave_client *c, const char *text)
{
    (void)clave__visit(c, client_tell, &(struct args){.text = text});
}

clave_err clave__blocking_take_options(clave_client *c, void *dst, size_t dst_size, const void *src,
                                       const char *name)
{
    struct args a = {.path = name, .text = clave__options_fault(dst_size, src)};
    if (a.text)
        (void)clave__visit(c, client_tell, &a);
    return clave__options_take(dst, dst_size, src);
}
