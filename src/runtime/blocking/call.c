/* call.c - a blocking call (call.h): any thread queues it, the loop's thread runs it, and it is
 * answered under the mutex with a copy of the result. A call is freed exactly once: by its caller
 * or, if that has given up, by its answer. */
#include "runtime/blocking/call.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- replies --------------------------------------------------------------------------------- */

void clave_reply_free(clave_reply *r)
{
    if (!r)
        return;
    free(r->path);
    free(r->data);
    free(r->names);
    free(r->op_errs);
    free(r->acls);
    free(r);
}

clave_reply *clave__reply_new(size_t path_cap, size_t nops)
{
    clave_reply *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->path = path_cap > 0 ? calloc(1, path_cap) : NULL;
    r->op_errs = nops > 0 ? calloc(nops, sizeof *r->op_errs) : NULL;
    r->nops = nops;
    if ((path_cap > 0 && !r->path) || (nops > 0 && !r->op_errs)) {
        clave_reply_free(r);
        return NULL;
    }
    return r;
}

/* Copies into one block: the pointers, then the texts. */
static char **reply_copy_names(const char *const *names, size_t n)
{
    size_t bytes = n * sizeof *names;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(names[i]) + 1;
    char **copy = malloc(bytes > 0 ? bytes : 1);
    if (!copy)
        return NULL;
    char *at = (char *)(copy + n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]) + 1;
        copy[i] = memcpy(at, names[i], len);
        at += len;
    }
    return copy;
}

/* Copies into one block: the entries, then the texts. */
static clave_acl *reply_copy_acls(const clave_acl *acls, size_t n)
{
    size_t bytes = n * sizeof *acls;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(acls[i].scheme) + strlen(acls[i].id) + 2;
    clave_acl *copy = malloc(bytes);
    if (!copy)
        return NULL;
    char *at = (char *)(copy + n);
    for (size_t i = 0; i < n; i++) {
        copy[i] = (clave_acl){.perms = acls[i].perms, .scheme = at};
        at = stpcpy(at, acls[i].scheme) + 1;
        copy[i].id = at;
        at = stpcpy(at, acls[i].id) + 1;
    }
    return copy;
}

clave_err clave__reply_fill(clave_reply *r, size_t path_cap, const clave_result *res)
{
    assert(!r->data && !r->names && !r->acls);
    assert(path_cap == 0 || r->path);
    r->err = res->err;
    if (res->path && strlen(res->path) < path_cap)
        strcpy(r->path, res->path);
    if (res->stat) {
        r->has_stat = true;
        r->stat = *res->stat;
    }
    r->nops = res->nops < r->nops ? res->nops : r->nops;
    for (size_t i = 0; i < r->nops; i++)
        r->op_errs[i] = res->ops[i].err;
    if (res->data) {
        r->data = malloc(res->len > 0 ? res->len : 1);
        if (!r->data)
            return r->err = CLAVE_ENOMEM;
        memcpy(r->data, res->data, res->len);
        r->len = res->len;
    }
    if (res->names) {
        r->names = reply_copy_names(res->names, res->nnames);
        if (r->names)
            r->nnames = res->nnames;
        else if (path_cap == 0) /* the Stat of a create may be missing, that of a read may not */
            return r->err = CLAVE_ENOMEM;
    }
    if (res->nacls > 0) {
        r->acls = reply_copy_acls(res->acls, res->nacls);
        if (!r->acls)
            return r->err = CLAVE_ENOMEM;
        r->nacls = res->nacls;
    }
    return res->err;
}

/* ---- the call -------------------------------------------------------------------------------- */

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

void clave__call_answer_block(struct call *c, clave_err err, void *block)
{
    c->reply->data = block;
    c->reply->err = err == CLAVE_OK && !block ? CLAVE_ENOMEM : err;
    clave__call_finish(c, c->reply->err);
}

static void call_begin_task(struct task *t)
{
    struct call *c = LIST_ENTRY(t, struct call, task);
    clave_client *client = c->client;
    clave_loop *l = client->loop;
    if (!client->ended)
        clave_async_client_tick(client->async, clave_now());
    clave__loop_lock(l);
    /* If the caller has given up since the call was taken from the queue, its arguments are gone.
     */
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
        c->state = CALL_PENDING; /* a completion never runs inside the starting call */
        if (c->out_of_time)
            clave__cell_wake(&c->cell);
        clave__loop_unlock(l);
    }
    clave__blocking_flush_later(client);
}

static struct call *call_new(clave_client *client, call_begin *begin, const struct args *a,
                             size_t path_cap, bool wants_reply)
{
    struct call *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    *c = (struct call){.task.run = call_begin_task, .client = client, .begin = begin, .args = a};
    clave__cell_init(&c->cell);
    if (!wants_reply)
        return c;
    c->path_cap = path_cap;
    c->reply = clave__reply_new(path_cap, a->nops);
    if (c->reply)
        return c;
    call_free(c);
    return NULL;
}

/* Call it with the mutex held. Returns true if the call is done. */
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

clave_err clave__call_with_path(clave_client *client, call_begin *begin, const struct args *a,
                                size_t path_cap, int64_t timeout_ms, clave_reply **out)
{
    clave_loop *l = client->loop;
    int64_t deadline = clave__deadline_after(timeout_ms);
    struct call *c = call_new(client, begin, a, path_cap, out != NULL);
    clave_err err = c ? clave__wait_enter(client) : CLAVE_ENOMEM;
    if (out)
        *out = NULL;
    if (err != CLAVE_OK) {
        if (c)
            call_free(c);
        return err;
    }
    clave__loop_post_locked(l, &c->task);
    if (!call_await(c, deadline)) {
        bool begun = !clave__loop_unpost_locked(&c->task);
        c->abandoned = begun;
        clave__wait_leave(client);
        if (!begun)
            call_free(c);
        return CLAVE_ETIMEDOUT;
    }
    clave__wait_leave(client);
    err = c->err;
    /* A multi that was refused before it was sent, or whose answer was lost, has no errors of
     * operations. */
    bool filled = out && c->reply->err == err && (err == CLAVE_OK || c->reply->nops > 0);
    if (filled) {
        *out = c->reply;
        c->reply = NULL;
    }
    call_free(c);
    return err;
}

clave_err clave__call_block(clave_client *c, call_begin *begin, const struct args *a,
                            int64_t timeout_ms, void **out)
{
    clave_reply *reply = NULL;
    *out = NULL;
    clave_err err = clave__call(c, begin, a, timeout_ms, &reply);
    if (err == CLAVE_OK) {
        *out = reply->data;
        reply->data = NULL;
    }
    clave_reply_free(reply);
    return err;
}
