/* semaphore.c - clave_semaphore: clave_async_semaphore for threads. */
#include "clave/semaphore.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deadline.h"
#include "clave/mutex.h"
#include "recipe/semaphore/semaphore_for_threads.h"
#include "runtime/blocking/thread_grant.h"

struct clave_lease {
    struct list link; /* in the semaphore's list; used by the loop's thread only */
    clave_semaphore *parent;
    clave_async_lease *lease; /* used by the loop's thread only */
    /* Used by the loop's thread only: the release that waits for the server; may be NULL. */
    struct call *call;
};

struct clave_semaphore {
    struct child child;
    clave_async_semaphore *semaphore; /* used by the loop's thread only, as is everything below */
    struct list leases;
    struct list waiting; /* acquires under way */
    uint64_t requests;
};

/* ---- creating and freeing -------------------------------------------------------------------- */

static clave_err semaphore_make(clave_async_client *c, const struct args *a)
{
    clave_semaphore *s = a->of;
    return clave_async_semaphore_new(&s->semaphore, c, a->path, a->options);
}

/* The handles belong to threads until they release them, or until _free. */
static void semaphore_on_ended(struct child *c)
{
    clave_semaphore *s = LIST_ENTRY(c, clave_semaphore, child);
    clave_async_semaphore_free(s->semaphore);
    s->semaphore = NULL;
    for (struct list *e = s->leases.next; e != &s->leases; e = e->next)
        LIST_ENTRY(e, clave_lease, link)->lease = NULL;
}

clave_err clave_semaphore_new(clave_semaphore **out, clave_client *c, const char *path,
                              const clave_semaphore_options *o)
{
    static const struct child_kind kind = {.ended = semaphore_on_ended};
    clave_semaphore_options own;
    *out = NULL;
    clave_err err = clave__blocking_take_options(c, &own, sizeof own, o, "clave_semaphore_options");
    if (err != CLAVE_OK)
        return err;
    clave_semaphore *s = calloc(1, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    list_init(&s->leases);
    list_init(&s->waiting);
    err = clave__child_open(&s->child, c, &kind, semaphore_make,
                            &(struct args){.of = s, .path = path, .options = &own});
    if (err == CLAVE_OK)
        *out = s;
    else
        free(s);
    return err;
}

void clave_semaphore_free(clave_semaphore *s)
{
    struct list *e;
    if (!s || !clave__child_close(&s->child))
        return;
    while ((e = list_pop_front(&s->leases)))
        free(LIST_ENTRY(e, clave_lease, link));
    free(s);
}

/* ---- acquire -------------------------------------------------------------------------------- */

/* Lives on the stack of the thread that waits. */
struct acquire {
    struct list link;
    clave_semaphore *s;
    struct call *call;
    uint64_t request;
    uint64_t task; /* identifies the thread */
    size_t n;
    int64_t deadline;
    clave_lease **fresh; /* n of them, allocated beforehand, so that being granted cannot fail */
};

static void on_leases(clave_async_semaphore *s, clave_err err, clave_async_lease *const *leases,
                      size_t n, void *arg)
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

static clave_err begin_acquire(struct call *c, const struct args *args)
{
    struct acquire *a = args->of;
    clave_semaphore *s = a->s;
    a->call = c;
    a->request = s->requests++;
    clave__semaphore_set_task(s->semaphore, a->task);
    clave_err err =
        clave_async_semaphore_acquire(s->semaphore, a->request, a->n, a->deadline, on_leases, a);
    if (err == CLAVE_OK)
        list_push_back(&s->waiting, &a->link);
    return err;
}

static clave_err make_leases(clave_semaphore *s, size_t n, clave_lease **out)
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
    clave_err err = make_leases(s, n, out);
    if (err != CLAVE_OK)
        return err;
    a.deadline = timeout_ms == 0 ? CLAVE_TRY : clave__deadline_after(timeout_ms);
    list_init(&a.link);
    /* The only clock is the engine's timer. The call itself has no deadline, so `a` still exists
     * when the callback runs. */
    err = clave__call(s->child.client, begin_acquire, &(struct args){.of = &a}, -1, NULL);
    for (size_t i = 0; err != CLAVE_OK && i < n; i++) {
        free(out[i]);
        out[i] = NULL;
    }
    return err;
}

static clave_err tell_deadlock(clave_async_client *c, const struct args *a)
{
    const clave_semaphore *s = a->of;
    const char *text = clave_async_semaphore_deadlock(s->semaphore);
    (void)c;
    snprintf(a->buf, a->cap, "%s", text ? text : "");
    return CLAVE_OK;
}

const char *clave_semaphore_deadlock(clave_semaphore *s, char *buf, size_t cap)
{
    struct args a = {.of = s, .buf = buf, .cap = cap};
    snprintf(buf, cap, "%s", "");
    (void)clave__visit(s->child.client, tell_deadlock, &a);
    return buf;
}

static clave_err cancel_acquires(clave_async_client *c, const struct args *a)
{
    clave_semaphore *s = a->of;
    (void)c;
    for (struct list *e = s->waiting.next; e != &s->waiting; e = e->next)
        (void)clave_async_semaphore_cancel(s->semaphore,
                                           LIST_ENTRY(e, struct acquire, link)->request);
    return CLAVE_OK;
}

void clave_semaphore_cancel(clave_semaphore *s)
{
    (void)clave__visit(s->child.client, cancel_acquires, &(struct args){.of = s});
}

/* ---- release -------------------------------------------------------------------------------- */

struct release {
    clave_lease *lease;
    bool confirmed;
    bool begun;
};

static void on_left(clave_async_semaphore *s, clave_err err, void *arg)
{
    clave_lease *l = arg;
    (void)s;
    if (l->call)
        clave__call_finish(l->call, err);
    free(l);
}

static clave_err begin_release(struct call *c, const struct args *a)
{
    struct release *r = a->of;
    clave_lease *l = r->lease;
    r->begun = true;
    list_remove(&l->link);
    l->call = r->confirmed ? c : NULL;
    c->answered = !r->confirmed;
    clave_err err = clave_async_lease_release(l->lease, r->confirmed ? on_left : NULL, l);
    if (!r->confirmed || err != CLAVE_OK)
        free(l);
    return err;
}

/* The session has ended, and the lease with it: only the handle is left. */
static void discard_lease(clave_lease *l)
{
    clave_client *c = l->parent->child.client;
    if (!clave__loop_is_here(c->loop))
        return;
    clave__loop_lock(c->loop);
    while (!c->stopped)
        clave__blocking_await_locked(c, CLAVE_NEVER);
    list_remove(&l->link);
    clave__loop_unlock(c->loop);
    free(l);
}

static clave_err release_lease(clave_lease *l, bool confirmed, int64_t timeout_ms)
{
    struct release r = {.lease = l, .confirmed = confirmed};
    struct args a = {.of = &r};
    clave_err err = clave__call(l->parent->child.client, begin_release, &a, timeout_ms, NULL);
    /* Time was up before the loop's thread got to it; the lease is released all the same. */
    if (err == CLAVE_ETIMEDOUT && !r.begun)
        (void)release_lease(l, false, -1);
    if (err == CLAVE_ECLOSED && !r.begun)
        discard_lease(l);
    return err;
}

clave_err clave_lease_release(clave_lease *l)
{
    return release_lease(l, false, -1);
}

clave_err clave_lease_release_confirmed(clave_lease *l, int64_t timeout_ms)
{
    return release_lease(l, true, timeout_ms);
}

/* ---- grants ---------------------------------------------------------------------------------- */

static clave_err lease_find_grant(void *holder, uint64_t owner, clave_async_grant **out)
{
    const clave_lease *l = holder;
    (void)owner;
    return clave_async_lease_grant(l->lease, out);
}

clave_err clave_lease_grant(clave_lease *l, clave_grant **out)
{
    return clave__thread_grant_take(out, l->parent->child.client, lease_find_grant, l, 0);
}
