/* semaphore.c - clave_semaphore: clave_async_semaphore for threads. */
#include "clave/semaphore.h"

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
    clave_client *session;
    clave_async_semaphore *semaphore; /* the loop's thread only, as is everything below */
    struct observer observer;
    struct list leases;
    struct list waiting; /* acquires under way */
    uint64_t requests;
};

/* ---- life ----------------------------------------------------------------------------------- */

struct create_args {
    clave_semaphore *p;
    const char *path;
    const clave_semaphore_options *o;
    clave_err err;
};

static void blocking_semaphore_create(clave_async_client *c, void *arg)
{
    struct create_args *b = arg;
    b->err = clave_async_semaphore_new(&b->p->semaphore, c, b->path, b->o);
    if (b->err == CLAVE_OK)
        clave__session_adopt(b->p->session, &b->p->observer);
}

/* The handles belong to the threads until they return them, or until _free. */
static void blocking_semaphore_on_client_ended(struct observer *o)
{
    clave_semaphore *p = LIST_ENTRY(o, clave_semaphore, observer);
    clave_async_semaphore_free(p->semaphore);
    p->semaphore = NULL;
    for (struct list *e = p->leases.next; e != &p->leases; e = e->next) {
        clave_lease *q = LIST_ENTRY(e, clave_lease, link);
        q->lease = NULL;
    }
}

clave_err clave_semaphore_new(clave_semaphore **out, clave_client *s, const char *path,
                              const clave_semaphore_options *o)
{
    clave_semaphore_options own;
    *out = NULL;
    clave_err err = clave__session_take_options(s, &own, sizeof own, o, "clave_semaphore_options");
    if (err != CLAVE_OK)
        return err;
    clave_semaphore *p = calloc(1, sizeof *p);
    if (!p)
        return CLAVE_ENOMEM;
    p->session = s;
    p->observer.ended = blocking_semaphore_on_client_ended;
    list_init(&p->leases);
    list_init(&p->waiting);
    struct create_args b = {.p = p, .path = path, .o = &own, .err = CLAVE_ECLOSED};
    clave__blocking_do(s, blocking_semaphore_create, &b);
    if (b.err != CLAVE_OK) {
        free(p);
        return b.err;
    }
    *out = p;
    return CLAVE_OK;
}

static void blocking_semaphore_destroy(clave_async_client *c, void *arg)
{
    clave_semaphore *p = arg;
    (void)c;
    list_remove(&p->observer.link);
    clave_async_semaphore_free(p->semaphore);
}

void clave_semaphore_free(clave_semaphore *p)
{
    if (!p || !clave__loop_is_here(p->session->loop))
        return;
    struct list *e;
    clave__blocking_do(p->session, blocking_semaphore_destroy, p);
    while ((e = list_pop_front(&p->leases)))
        free(LIST_ENTRY(e, clave_lease, link));
    clave__session_unref(p->session);
    free(p);
}

/* ---- acquire -------------------------------------------------------------------------------- */

/* On the stack of the thread that waits. */
struct acquire {
    struct list link;
    clave_semaphore *p;
    struct call *call;
    uint64_t request;
    uint64_t task; /* the thread */
    size_t n;
    int64_t deadline;
    clave_lease **fresh; /* n of them, allocated beforehand: a grant cannot fail */
};

static void on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                      size_t n, void *arg)
{
    struct acquire *a = arg;
    (void)s;
    list_remove(&a->link);
    for (size_t i = 0; i < n; i++) {
        a->fresh[i]->lease = leases[i];
        list_push_back(&a->p->leases, &a->fresh[i]->link);
    }
    clave__call_finish(a->call, err);
}

static clave_err blocking_semaphore_begin_acquire(struct call *c, void *args)
{
    struct acquire *a = args;
    clave_semaphore *p = a->p;
    a->call = c;
    a->request = p->requests++;
    clave__semaphore_set_task(p->semaphore, a->task);
    clave_err err =
        clave_async_semaphore_acquire(p->semaphore, a->request, a->n, a->deadline, on_leases, a);
    if (err == CLAVE_OK)
        list_push_back(&p->waiting, &a->link);
    return err;
}

static clave_err make_leases(clave_semaphore *p, size_t n, clave_lease **out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = calloc(1, sizeof **out);
        if (!out[i]) {
            while (i > 0)
                free(out[--i]);
            return CLAVE_ENOMEM;
        }
        list_init(&out[i]->link);
        out[i]->parent = p;
    }
    return CLAVE_OK;
}

clave_err clave_semaphore_acquire(clave_semaphore *p, size_t n, int64_t timeout_ms,
                                  clave_lease **out)
{
    struct acquire a = {.p = p, .task = clave_mutex_owner_self(), .n = n, .fresh = out};
    struct call_spec spec = {.begin = blocking_semaphore_begin_acquire, .args = &a};
    clave_err err = make_leases(p, n, out);
    if (err != CLAVE_OK)
        return err;
    a.deadline = timeout_ms == 0 ? CLAVE_TRY : clave__deadline_after(timeout_ms);
    list_init(&a.link);
    /* The only clock is the engine's timer: the call itself has no deadline, and so `a` is still
     * there for the callback. */
    err = clave__call(p->session, &spec, -1, NULL);
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

const char *clave_semaphore_deadlock(clave_semaphore *p, char *buf, size_t cap)
{
    struct deadlock_query q = {.semaphore = p->semaphore, .buf = buf, .cap = cap};
    snprintf(buf, cap, "%s", "");
    clave__blocking_do(p->session, blocking_semaphore_answer, &q);
    return buf;
}

static void cancel_all(clave_async_client *c, void *arg)
{
    clave_semaphore *p = arg;
    (void)c;
    for (struct list *e = p->waiting.next; e != &p->waiting; e = e->next)
        (void)clave_async_semaphore_cancel(p->semaphore,
                                           LIST_ENTRY(e, struct acquire, link)->request);
}

void clave_semaphore_cancel(clave_semaphore *p)
{
    clave__blocking_do(p->session, cancel_all, p);
}

/* ---- release -------------------------------------------------------------------------------- */

struct blocking_semaphore_release {
    clave_lease *lease;
    bool confirmed;
    bool begun;
};

static void blocking_semaphore_on_left(clave_async_semaphore *s, clave_err err, void *arg)
{
    clave_lease *q = arg;
    (void)s;
    if (q->call)
        clave__call_finish(q->call, err);
    free(q);
}

static clave_err blocking_semaphore_begin_release(struct call *c, void *args)
{
    struct blocking_semaphore_release *r = args;
    clave_lease *q = r->lease;
    r->begun = true;
    list_remove(&q->link);
    q->call = r->confirmed ? c : NULL;
    c->answered = !r->confirmed;
    clave_err err =
        clave_async_lease_release(q->lease, r->confirmed ? blocking_semaphore_on_left : NULL, q);
    if (!r->confirmed || err != CLAVE_OK)
        free(q);
    return err;
}

/* Its session has ended, and with it the lease: only the handle is left. */
static void discard(clave_lease *q)
{
    clave_client *s = q->parent->session;
    if (!clave__loop_is_here(s->loop))
        return;
    clave__loop_lock(s->loop);
    while (!s->stopped)
        clave__blocking_await_locked(s, CLAVE_NEVER);
    list_remove(&q->link);
    clave__loop_unlock(s->loop);
    free(q);
}

static clave_err blocking_semaphore_release(clave_lease *q, bool confirmed, int64_t timeout_ms)
{
    struct blocking_semaphore_release r = {.lease = q, .confirmed = confirmed};
    struct call_spec spec = {.begin = blocking_semaphore_begin_release, .args = &r};
    clave_client *s = q->parent->session;
    clave_err err = clave__call(s, &spec, timeout_ms, NULL);
    /* Time was up before the loop's thread got to it. */
    if (err == CLAVE_ETIMEDOUT && !r.begun)
        (void)blocking_semaphore_release(q, false, -1);
    if (err == CLAVE_ECLOSED && !r.begun)
        discard(q);
    return err;
}

clave_err clave_lease_release(clave_lease *q)
{
    return blocking_semaphore_release(q, false, -1);
}

clave_err clave_lease_release_confirmed(clave_lease *q, int64_t timeout_ms)
{
    return blocking_semaphore_release(q, true, timeout_ms);
}

/* ---- what is held -----------------------------------------------------------------------------
 */

static clave_err blocking_semaphore_find_grant(void *holder, uint64_t owner,
                                               clave_async_grant **out)
{
    const clave_lease *q = holder;
    (void)owner;
    return clave_async_lease_grant(q->lease, out);
}

clave_err clave_lease_grant(clave_lease *q, clave_grant **out)
{
    return clave__thread_grant_take(out, q->parent->session, blocking_semaphore_find_grant, q, 0);
}
