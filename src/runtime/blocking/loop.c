/* loop.c - clave_loop: a thread that runs a libuv loop and other threads' tasks (loop.h). The
 * thread ends only after clave_loop_free, and runs no task after that. */
#include "runtime/blocking/loop.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/deadline.h"
#include "clave/uv.h"
#include "runtime/clock.h"
#include "runtime/start_error.h"
#include "runtime/thread_start.h"

/* ---- waiting -------------------------------------------------------------------------------- */

void clave__cell_init(struct cell *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool clave__cell_wait(struct cell *c, clave_loop *l, int64_t deadline)
{
    if (deadline == CLAVE_NEVER) {
        pthread_cond_wait(&c->cond, &l->mutex);
        return true;
    }
    int64_t left = deadline - clave_now();
    if (left <= 0)
        return false;
    struct timespec until = clave__clock_after(left);
    pthread_cond_timedwait(&c->cond, &l->mutex, &until);
    return true;
}

int64_t clave__deadline_after(int64_t timeout_ms)
{
    return timeout_ms < 0 ? CLAVE_NEVER : deadline_after(clave_now(), timeout_ms);
}

/* ---- all loops of this process --------------------------------------------------------------- */

/* The list of all loops has a mutex of its own, which is held for a few instructions; no other
 * mutex is taken while it is held. */
static pthread_mutex_t loops_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list loops = {&loops, &loops};
static struct client_totals loops_past;
static bool loops_have_past;

static void begin_past(void)
{
    if (!loops_have_past)
        clave__client_totals_init(&loops_past);
    loops_have_past = true;
}

static void loops_forget(void)
{
    pthread_mutex_init(&loops_mutex, NULL);
    list_init(&loops);
    loops_have_past = false;
}

clave_err clave__loops_list(clave_loop ***out, size_t *n, struct client_totals *past)
{
    clave_err err = CLAVE_OK;
    size_t count = 0;
    *out = NULL;
    *n = 0;
    pthread_mutex_lock(&loops_mutex);
    begin_past();
    *past = loops_past;
    for (struct list *e = loops.next; e != &loops; e = e->next)
        count++;
    *out = count > 0 ? malloc(count * sizeof **out) : NULL;
    if (count > 0 && !*out)
        err = CLAVE_ENOMEM;
    for (struct list *e = loops.next; e != &loops && *out; e = e->next) {
        clave_loop *l = LIST_ENTRY(e, struct clave_loop, in_loops);
        clave__loop_ref(l);
        (*out)[(*n)++] = l;
    }
    pthread_mutex_unlock(&loops_mutex);
    return err;
}

/* ---- tasks ---------------------------------------------------------------------------------- */

bool clave__loop_is_current(const clave_loop *l)
{
    return !__atomic_load_n(&l->joined, __ATOMIC_ACQUIRE) &&
           pthread_equal(pthread_self(), l->thread);
}

/* The number of forks between the first process and this one. */
static unsigned forks;

static void loop_count_fork(void)
{
    forks++;
    loops_forget();
}

static void loop_count_forks(void)
{
    (void)pthread_atfork(NULL, NULL, loop_count_fork);
}

bool clave__loop_is_here(const clave_loop *l)
{
    return l->forks == forks;
}

void clave__loop_must_not_be_current(const clave_loop *l, const char *call)
{
    if (!clave__loop_is_current(l))
        return;
    fprintf(stderr,
            "%s was called on the thread of clave's loop (from a callback), where it would "
            "wait forever\n",
            call);
    abort();
}

void clave__loop_post_locked(clave_loop *l, struct task *t)
{
    assert(t->run);
    assert(!l->ending);
    list_push_back(&l->tasks, &t->link);
    /* This stays under the mutex, because otherwise the loop could be closed between the push and
     * the wake-up. */
    uv_async_send(&l->wake);
}

void clave__loop_post(clave_loop *l, struct task *t)
{
    clave__loop_lock(l);
    clave__loop_post_locked(l, t);
    clave__loop_unlock(l);
}

bool clave__loop_unpost_locked(struct task *t)
{
    bool waiting = !list_empty(&t->link);
    list_remove(&t->link);
    return waiting;
}

void clave__loop_finally(clave_loop *l, struct task *t)
{
    assert(clave__loop_is_current(l));
    if (list_empty(&t->link))
        list_push_back(&l->finals, &t->link);
}

static void loop_on_wake(uv_async_t *wake)
{
    clave_loop *l = wake->data;
    struct list now, *e;
    list_init(&now);
    clave__loop_lock(l);
    /* Tasks posted in the meantime, by these tasks or by threads, have sent a wake-up of their own;
     * sockets and timers get their turn first. */
    list_splice(&now, &l->tasks);
    bool ending = l->ending;
    while ((e = list_pop_front(&now))) {
        struct task *t = LIST_ENTRY(e, struct task, link);
        clave__loop_unlock(l);
        t->run(t);
        clave__loop_lock(l);
    }
    clave__loop_unlock(l);
    while ((e = list_pop_front(&l->finals))) {
        struct task *t = LIST_ENTRY(e, struct task, link);
        t->run(t);
    }
    if (ending)
        uv_stop(&l->uv);
}

/* Lives on the stack of the caller, who waits until the task is done. */
struct loop_call {
    struct task task;
    clave_loop *loop;
    void (*fn)(void *arg);
    void *arg;
    struct cell cell;
    bool done;
};

static void loop_call_run(struct task *t)
{
    struct loop_call *e = LIST_ENTRY(t, struct loop_call, task);
    clave_loop *l = e->loop;
    e->fn(e->arg);
    clave__loop_lock(l);
    e->done = true;
    clave__cell_wake(&e->cell);
    clave__loop_unlock(l);
}

clave_err clave__loop_run(clave_loop *l, void (*fn)(void *arg), void *arg)
{
    struct loop_call e = {.task.run = loop_call_run, .loop = l, .fn = fn, .arg = arg};
    if (!clave__loop_is_here(l))
        return CLAVE_ECLOSED;
    if (clave__loop_is_current(l))
        return CLAVE_ELOOPTHREAD;
    clave__cell_init(&e.cell);
    clave__loop_lock(l);
    bool runs = !l->ending;
    if (runs)
        clave__loop_post_locked(l, &e.task);
    while (runs && !e.done)
        clave__cell_wait(&e.cell, l, CLAVE_NEVER);
    clave__loop_unlock(l);
    clave__cell_fini(&e.cell);
    return runs ? CLAVE_OK : CLAVE_ECLOSED;
}

/* ---- creating and freeing -------------------------------------------------------------------- */

void clave__loop_unref(clave_loop *l)
{
    assert(__atomic_load_n(&l->refs, __ATOMIC_RELAXED) > 0);
    if (__atomic_sub_fetch(&l->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    pthread_mutex_destroy(&l->mutex);
    free(l);
}

static void loop_close_handles(clave_loop *l)
{
    uv_close((uv_handle_t *)&l->wake, NULL);
    clave__wakeup_close(&l->wakeup, NULL, NULL);
    uv_run(&l->uv, UV_RUN_NOWAIT);
}

static void *loop_main(void *arg)
{
    clave_loop *l = arg;
    uv_run(&l->uv, UV_RUN_DEFAULT); /* until loop_on_wake sees that the loop is ending */
    loop_close_handles(l);
    int left = uv_loop_close(&l->uv);
    assert(left == 0);
    (void)left;
    return NULL;
}

clave_err clave_loop_new(clave_loop **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *out = NULL;
    pthread_once(&once, loop_count_forks);
    clave_loop *l = calloc(1, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    clave_err err = clave__err_of_errno(clave__loop_init(&l->uv));
    if (err != CLAVE_OK)
        goto fail_loop;
    uv_async_init(&l->uv, &l->wake,
                  loop_on_wake); /* cannot fail: the loop already has all that it needs */
    l->wake.data = l;
    l->refs = 1;
    l->forks = forks;
    clave__wakeup_open(&l->wakeup, &l->uv);
    list_init(&l->tasks);
    list_init(&l->finals);
    list_init(&l->clients);
    clave__client_totals_init(&l->past);
    pthread_mutex_init(&l->mutex, NULL);
    if (clave__thread_start(&l->thread, "clave", loop_main, l) == 0) {
        pthread_mutex_lock(&loops_mutex);
        list_push_back(&loops, &l->in_loops);
        pthread_mutex_unlock(&loops_mutex);
        *out = l;
        return CLAVE_OK;
    }
    err = CLAVE_ETHREAD;
    pthread_mutex_destroy(&l->mutex);
    loop_close_handles(l);
    uv_loop_close(&l->uv);
fail_loop:
    free(l);
    return err;
}

void clave_loop_free(clave_loop *l)
{
    if (!l || !clave__loop_is_here(l))
        return;
    clave__loop_must_not_be_current(l, "clave_loop_free");
    clave__loop_lock(l);
    l->ending = true;
    uv_async_send(&l->wake);
    clave__loop_unlock(l);
    pthread_join(l->thread, NULL);
    __atomic_store_n(&l->joined, true, __ATOMIC_RELEASE);
    pthread_mutex_lock(&loops_mutex);
    begin_past();
    clave__client_totals_add(&loops_past, &l->past);
    list_remove(&l->in_loops);
    pthread_mutex_unlock(&loops_mutex);
    clave__loop_unref(l);
}
