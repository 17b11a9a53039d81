/* call.c - one blocking call (call.h): queued by any thread, run on the loop's, answered under the
 * mutex. Every blocking function goes through it. A call is freed exactly once: by its caller, or
 * when given up by its answer. */
#include "runtime/blocking/call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What a create may add to its path: the ten digits, and the prefix of a protected name. */
enum { PATH_GROWTH = 64 };

static void call_free(struct call *c)
{
    clave__cell_fini(&c->cell);
    clave_reply_free(c->reply);
    free(c);
}

void clave__call_finish(struct call *c, clave_err err)
{
    clave_loop *l = c->client->loop;
    assert(clave__loop_is_current(l));
    clave__loop_lock(l);
    assert(c->state != CALL_DONE);
    bool abandoned = c->abandoned;
    c->err = err;
    c->state = CALL_DONE;
    if (!abandoned)
        clave__cell_wake(&c->cell);
    clave__loop_unlock(l);
    if (abandoned)
        call_free(c);
}

void clave__call_on_result(clave_async_client *client, const clave_result *res, void *arg)
{
    struct call *c = arg;
    (void)client;
    clave__call_finish(c, c->reply ? clave__reply_fill(c->reply, c->path_cap, res) : res->err);
}

static void call_begin(struct task *t)
{
    struct call *c = LIST_ENTRY(t, struct call, task);
    clave_client *client = c->client;
    clave_loop *l = client->loop;
    if (!client->ended)
        clave_async_client_tick(client->async, clave_now());
    clave__loop_lock(l);
    /* since it was taken from the queue: the caller's args are gone */
    bool abandoned = c->abandoned;
    c->state = CALL_BEGINNING;
    clave__loop_unlock(l);
    if (abandoned) {
        call_free(c);
        return;
    }
    if (client->ended) {
        clave__call_finish(c, CLAVE_ECLOSED);
        return;
    }
    clave_err err = c->begin(c, c->args);
    if (err != CLAVE_OK || c->answered) {
        clave__call_finish(c, err);
    } else {
        clave__loop_lock(l);
        c->state = CALL_PENDING; /* completions never run inside the starting call */
        if (c->out_of_time)
            clave__cell_wake(&c->cell);
        clave__loop_unlock(l);
    }
    clave__blocking_flush_later(client);
}

static struct call *call_new(clave_client *client, const struct call_spec *spec, bool wants_reply)
{
    struct call *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct call){
        .task.run = call_begin, .client = client, .begin = spec->begin, .args = spec->args};
    clave__cell_init(&c->cell);
    if (!wants_reply)
        return c;
    c->path_cap = spec->path ? strlen(spec->path) + PATH_GROWTH : 0;
    c->reply = clave__reply_new(c->path_cap, spec->nops);
    if (c->reply)
        return c;
    call_free(c);
    return NULL;
}

/* With the mutex held. true: done. */
static bool call_await(struct call *c, int64_t deadline)
{
    clave_loop *l = c->client->loop;
    while (c->state != CALL_DONE) {
        c->out_of_time = c->state == CALL_BEGINNING;
        if (!clave__cell_wait(&c->cell, l, c->out_of_time ? CLAVE_NEVER : deadline))
            return false;
    }
    return true;
}

clave_err clave__call(clave_client *client, const struct call_spec *spec, int64_t timeout_ms,
                      clave_reply **out)
{
    clave_loop *l = client->loop;
    int64_t deadline = clave__deadline_after(timeout_ms);
    if (out)
        *out = NULL;
    if (!clave__loop_is_here(l) || clave__session_has_ended(client))
        return CLAVE_ECLOSED;
    if (clave__loop_is_current(l))
        return CLAVE_ELOOPTHREAD;
    struct call *c = call_new(client, spec, out != NULL);
    if (!c)
        return CLAVE_ENOMEM;
    clave__loop_lock(l);
    if (client->ended) {
        clave__loop_unlock(l);
        call_free(c);
        return CLAVE_ECLOSED;
    }
    clave__blocking_enter_locked(client);
    clave__loop_post_locked(l, &c->task);
    bool done = call_await(c, deadline);
    clave__blocking_leave_locked(client);
    if (!done) {
        bool begun = !clave__loop_unpost_locked(&c->task);
        c->abandoned = begun;
        clave__loop_unlock(l);
        if (!begun)
            call_free(c);
        return CLAVE_ETIMEDOUT;
    }
    clave__loop_unlock(l);
    clave_err err = c->err;
    /* A multi that was refused before it was sent, or whose answer was lost, has no op errors. */
    bool filled = out && c->reply->err == err && (err == CLAVE_OK || c->reply->nops > 0);
    if (filled) {
        *out = c->reply;
        c->reply = NULL;
    }
    call_free(c);
    return err;
}
