/* semaphore.c - clave_semaphore: clave_async_semaphore for threads. */
#include "clave/semaphore.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "clave/mutex.h"
#include "recipe/semaphore/semaphore_internal.h"
#include "runtime/blocking/thread_grant.h"

struct clave_lease {
    struct list link; /* in the semaphore's list; the loop's thread only */
    clave_semaphore *parent;
    clave_async_lease *lease; /* the loop's thread only */
    /* the release that waits for the server; may be NULL. The loop's thread only */
    struct call *call;
};

struct clave_semaphore {
    clave_client *client;
    clave_async_semaphore *semaphore; /* the loop's thread only, as is everything below */
    struct observer observer;
    struct list leases;
    struct list waiting; /* acquires under way */
    uint64_t requests;
};

/* ---- life ----------------------------------------------------------------------------------- */

struct create_args {
    clave_semaphore *s;
    const char *path;
    const clave_semaphore_options *o;
    clave_err err;
};

static void blocking_semaphore_create(clave_async_client *c, void *arg)
{
    struct create_args *b = arg;
    b->err = clave_async_semaphore_new(&b->s->semaphore, c, b->path, b->o);
    if (b->err == CLAVE_OK)
        clave__session_adopt(b->s->client, &b->s->observer);
}

/* The handles belong to the threads until they return them, or until _free. */
static void blocking_semaphore_on_client_ended(struct observer *o)
{
    clave_semaphore *s = LIST_ENTRY(o, clave_semaphore, observer);
    clave_async_semaphore_free(s->semaphore);
    s->semaphore = NULL;
    for (struct list *e = s->leases.next; e != &s->leases; e = e->next) {
        clave_lease *l = LIST_ENTRY(e, clave_lease, link);
        l->lease = NULL;
    }
}

clave_err clave_semaphore_new(clave_semaphore **out, clave_client *c, const char *path,
                              const clave_semaphore_options *o)
{
    clave_semaphore_options own;
    *out = NULL;
    clave_err err = clave__session_take_options(c, &own, sizeof own, o, "clave_semaphore_options");
    if (err != CLAVE_OK)
        return err;
    clave_semaphore *sem = calloc(1, sizeof *sem);
    if (!sem)
        return CLAVE_ENOMEM;
    sem->client = c;
    sem->observer.ended = blocking_semaphore_on_client_ended;
    list_init(&sem->leases);
    list_init(&sem->waiting);
    struct create_args b = {.s = sem, .path = path, .o = &own, .err = CLAVE_ECLOSED};
    clave__blocking_do(c, blocking_semaphore_create, &b);
    if (b.err != CLAVE_OK) {
        free(sem);
        return b.err;
    }
    *out = sem;
    return CLAVE_OK;
}

static void blocking_semaphore_destroy(clave_async_client *c, void *arg)
{
    clave_semaphore *s = arg;
    (void)c;
    list_remove(&s->observer.link);
    clave_async_semaphore_free(s->semaphore);
}

void clave_semaphore_free(clave_semaphore *s)
{
    if (!s || !clave__loop_is_here(s->client->loop))
        return;
    struct list *e;
    clave__blocking_do(s->client, blocking_semaphore_destroy, s);
    while ((e = list_pop_front(&s->leases)))
        free(LIST_ENTRY(e, clave_lease, link));
    clave__session_unref(s->client);
    free(s);
}

/* ---- acquire -------------------------------------------------------------------------------- */

/* On the stack of the thread that waits. */
struct acquire {
    struct list link;
    clave_semaphore *s;
    struct call *call;
    uint64_t request;
    uint64_t task; /* the thread */
    size_t n;
    int64_t deadline;
    clave_lease **fresh; /* n of them, allocated beforehand: a grant cannot fail */
};

static void semaphore_on_leases(clave_async_semaphore *s, clave_err err,
                                clave_async_lease *const *leases, size_t n, void *arg)
{
    struct acquire *a = arg;
    assert(n <= a->n);
    (void)s;
    list_remove(&a->link);
    for (size_t i = 0; i < n; i++) {
        a->fresh[i]->lease = leases[i];
        list_push_back(&a->s->leases, &a->fresh[i]->link);
    }
    clave__call_finish(a->call, err);
}

static clave_err blocking_semaphore_begin_acquire(struct call *c, void *args)
{
    struct acquire *a = args;
    clave_semaphore *s = a->s;
    a->call = c;
    a->request = s->requests++;
    clave__semaphore_set_task(s->semaphore, a->task);
    clave_err err = clave_async_semaphore_acquire(s->semaphore, a->request, a->n, a->deadline,
                                                  semaphore_on_leases, a);
    if (err == CLAVE_OK)
        list_push_back(&s->waiting, &a->link);
    return err;
}

static clave_err semaphore_make_leases(clave_semaphore *s, size_t n, clave_lease **out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = calloc(1, sizeof **out);
        if (!out[i]) {
            while (i > 0)
                free(out[--i]);
            return CLAVE_ENOMEM;
        }
        list_init(&out[i]->link);
        out[i]->parent = s;
    }
    return CLAVE_OK;
}

clave_err clave_semaphore_acquire(clave_semaphore *s, size_t n, int64_t timeout_ms,
                                  clave_lease **out)
{
    struct acquire a = {.s = s, .task = clave_mutex_owner_self(), .n = n, .fresh = out};
    struct call_spec spec = {.begin = blocking_semaphore_begin_acquire, .args = &a};
    clave_err err = semaphore_make_leases(s, n, out);
    if (err != CLAVE_OK)
        return err;
    a.deadline = timeout_ms == 0 ? CLAVE_TRY : clave__deadline_after(timeout_ms);
    list_init(&a.link);
    /* The only clock is the engine's timer: the call itself has no deadline, and so `a` is still
     * there for the callback. */
    err = clave__call(s->client, &spec, -1, NULL);
    for (size_t i = 0; err != CLAVE_OK && i < n; i++) {
        free(out[i]);
        out[i] = NULL;
    }
    return err;
}

struct deadlock_query {
    const clave_async_semaphore *semaphore;
    char *buf;
    size_t cap;
};

static void blocking_semaphore_answer(clave_async_client *c, void *arg)
{
    const struct deadlock_query *q = arg;
    const char *text = clave_async_semaphore_deadlock(q->semaphore);
    (void)c;
    snprintf(q->buf, q->cap, "%s", text ? text : "");
}

const char *clave_semaphore_deadlock(clave_semaphore *s, char *buf, size_t cap)
{
    struct deadlock_query q = {.semaphore = s->semaphore, .buf = buf, .cap = cap};
    snprintf(buf, cap, "%s", "");
    clave__blocking_do(s->client, blocking_semaphore_answer, &q);
    return buf;
}

static void semaphore_cancel_all(clave_async_client *c, void *arg)
{
    clave_semaphore *s = arg;
    (void)c;
    for (struct list *e = s->waiting.next; e != &s->waiting; e = e->next)
        (void)clave_async_semaphore_cancel(s->semaphore,
                                           LIST_ENTRY(e, struct acquire, link)->request);
}

void clave_semaphore_cancel(clave_semaphore *s)
{
    clave__blocking_do(s->client, semaphore_cancel_all, s);
}

/* ---- release -------------------------------------------------------------------------------- */

struct blocking_semaphore_release {
    clave_lease *lease;
    bool confirmed;
    bool begun;
};

static void blocking_semaphore_on_left(clave_async_semaphore *s, clave_err err, void *arg)
{
    clave_lease *l = arg;
    (void)s;
    if (l->call)
        clave__call_finish(l->call, err);
    free(l);
}

static clave_err blocking_semaphore_begin_release(struct call *c, void *args)
{
    struct blocking_semaphore_release *r = args;
    clave_lease *l = r->lease;
    r->begun = true;
    list_remove(&l->link);
    l->call = r->confirmed ? c : NULL;
    c->answered = !r->confirmed;
    clave_err err =
        clave_async_lease_release(l->lease, r->confirmed ? blocking_semaphore_on_left : NULL, l);
    if (!r->confirmed || err != CLAVE_OK)
        free(l);
    return err;
}

/* Its session has ended, and with it the lease: only the handle is left. */
static void semaphore_discard(clave_lease *l)
{
    clave_client *c = l->parent->client;
    if (!clave__loop_is_here(c->loop))
        return;
    clave__loop_lock(c->loop);
    while (!c->stopped)
        clave__blocking_await_locked(c, CLAVE_NEVER);
    list_remove(&l->link);
    clave__loop_unlock(c->loop);
    free(l);
}

static clave_err blocking_semaphore_release(clave_lease *l, bool confirmed, int64_t timeout_ms)
{
    struct blocking_semaphore_release r = {.lease = l, .confirmed = confirmed};
    struct call_spec spec = {.begin = blocking_semaphore_begin_release, .args = &r};
    clave_client *c = l->parent->client;
    clave_err err = clave__call(c, &spec, timeout_ms, NULL);
    /* Time was up before the loop's thread got to it. */
    if (err == CLAVE_ETIMEDOUT && !r.begun)
        (void)blocking_semaphore_release(l, false, -1);
    if (err == CLAVE_ECLOSED && !r.begun)
        semaphore_discard(l);
    return err;
}

clave_err clave_lease_release(clave_lease *l)
{
    return blocking_semaphore_release(l, false, -1);
}

clave_err clave_lease_release_confirmed(clave_lease *l, int64_t timeout_ms)
{
    return blocking_semaphore_release(l, true, timeout_ms);
}

/* ---- what is held ---------------------------------------------------------------------------- */

static clave_err blocking_semaphore_find_grant(void *holder, uint64_t owner,
                                               clave_async_grant **out)
{
    const clave_lease *l = holder;
    (void)owner;
    return clave_async_lease_grant(l->lease, out);
}

clave_err clave_lease_grant(clave_lease *l, clave_grant **out)
{
    return clave__thread_grant_take(out, l->parent->client, blocking_semaphore_find_grant, l, 0);
}
