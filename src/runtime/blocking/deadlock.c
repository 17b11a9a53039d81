/* deadlock.c - clave_deadlocks_find for threads, and the text of an acquire that gave up. The
 * result is one block, which the caller frees. */
#include "clave/deadlock.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/blocking/arena.h"
#include "runtime/blocking/mutex_hold.h"

/* ---- a copy in one block -------------------------------------------------------------------- */

static void deadlock_put_member(struct arena *p, const clave_deadlock_member *m,
                                clave_deadlock_member *out)
{
    *out = *m;
    out->path = arena_text(p, m->path);
    out->node = arena_text(p, m->node);
    out->blocker = arena_text(p, m->blocker);
    arena_identity(p, &out->identity);
}

static size_t deadlock_count_members(const clave_deadlock *list, size_t n)
{
    size_t members = 0;
    for (size_t i = 0; i < n; i++)
        members += list[i].n;
    return members;
}

static size_t deadlock_measure(const clave_deadlock *list, size_t n)
{
    struct arena p = {0};
    clave_deadlock_member scratch;
    for (size_t i = 0; i < n; i++) {
        arena_text(&p, list[i].text);
        for (size_t k = 0; k < list[i].n; k++)
            deadlock_put_member(&p, &list[i].members[k], &scratch);
    }
    return p.n;
}

static clave_deadlocks *deadlock_copy(const clave_deadlock *list, size_t n)
{
    size_t nmembers = deadlock_count_members(list, n);
    size_t size = sizeof(clave_deadlocks) + n * sizeof *list +
                  nmembers * sizeof(clave_deadlock_member) + deadlock_measure(list, n);
    clave_deadlocks *d = malloc(size);
    if (!d)
        return NULL;
    d->list = (clave_deadlock *)(d + 1);
    d->n = n;
    clave_deadlock_member *at = (clave_deadlock_member *)(d->list + n);
    struct arena p = {.at = (char *)(at + nmembers)};
    for (size_t i = 0; i < n; i++) {
        d->list[i] = list[i];
        d->list[i].members = at;
        d->list[i].text = arena_text(&p, list[i].text);
        for (size_t k = 0; k < list[i].n; k++)
            deadlock_put_member(&p, &list[i].members[k], at++);
    }
    assert(p.n == deadlock_measure(list, n)); /* arena.h */
    return d;
}

void clave_deadlocks_free(clave_deadlocks *d)
{
    free(d);
}

/* ---- the call ------------------------------------------------------------------------------- */

struct roots {
    const char *const *list;
    size_t n;
};

/* Writes to the reply, which exists as long as the call, even if the waiting thread has given up.
 */
static void deadlock_on_found(clave_async_client *client, clave_err err, const clave_deadlock *list,
                              size_t n, void *arg)
{
    struct call *c = arg;
    (void)client;
    if (err == CLAVE_OK) {
        c->reply->data = deadlock_copy(list, n);
        err = c->reply->data ? CLAVE_OK : CLAVE_ENOMEM;
    }
    c->reply->err = err;
    clave__call_finish(c, err);
}

static clave_err deadlock_begin(struct call *c, void *args)
{
    const struct roots *r = args;
    return clave_async_deadlocks_find(c->client->async, r->list, r->n, deadlock_on_found, c);
}

clave_err clave_deadlocks_find(clave_client *c, const char *const *roots, size_t nroots,
                               int64_t timeout_ms, clave_deadlocks **out)
{
    struct roots r = {.list = roots, .n = nroots};
    struct call_spec spec = {.begin = deadlock_begin, .args = &r};
    clave_reply *reply = NULL;
    *out = NULL;
    clave_err err = clave__call(c, &spec, timeout_ms, &reply);
    if (err != CLAVE_OK)
        return err;
    *out = reply->data;
    reply->data = NULL;
    clave_reply_free(reply);
    return CLAVE_OK;
}

/* ---- what an acquire ended with ------------------------------------------------------------- */

struct deadlock_query {
    const clave_async_mutex *mutex;
    char *buf;
    size_t cap;
};

static void deadlock_answer(clave_async_client *c, void *arg)
{
    const struct deadlock_query *q = arg;
    (void)c;
    const char *text = clave_async_mutex_deadlock(q->mutex);
    snprintf(q->buf, q->cap, "%s", text ? text : "");
}

const char *clave_mutex_deadlock(clave_mutex *m, char *buf, size_t cap)
{
    struct deadlock_query q = {.mutex = m->mutex, .buf = buf, .cap = cap};
    snprintf(buf, cap, "%s", "");
    clave__blocking_do(m->client, deadlock_answer, &q);
    return buf;
}
