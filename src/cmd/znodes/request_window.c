/* request_window.c - keeps a window of requests in flight (see request_window.h). tree_walk.c,
 * queue_view.c, locks_revoke.c, ls and rm call it. The state has a reference count, since requests
 * in flight, the waiting caller and the task on the loop all use it. */
#include "cmd/znodes/request_window.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "runtime/clock.h"

enum { WINDOW = 256 };

struct slot {
    struct request_window *request_window;
    size_t i;
    struct slot *next_free;
};

/* Allocated on the heap and counted, since answers may arrive after the caller has given up. */
struct request_window {
    struct request_window_plan plan;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    clave_async_client *client;
    struct slot *free;
    size_t next; /* number of the next request to send */
    size_t done; /* number of requests that have a result */
    /* reference count: requests in flight, the waiting caller, and the task on the loop */
    unsigned holders;
    bool abandoned;
    struct slot slots[WINDOW];
};

static struct request_window *request_window_new(const struct request_window_plan *plan)
{
    struct request_window *w = calloc(1, sizeof *w);
    pthread_condattr_t attr;
    if (!w)
        return NULL;
    w->plan = *plan;
    w->holders = 2;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->cond, &attr);
    pthread_condattr_destroy(&attr);
    for (size_t i = 0; i < WINDOW; i++) {
        w->slots[i] = (struct slot){.request_window = w, .next_free = w->free};
        w->free = &w->slots[i];
    }
    return w;
}

/* Drops a reference. To be called with the mutex held; unlocks it. */
static void request_window_release(struct request_window *w)
{
    assert(w->holders > 0);
    bool last = --w->holders == 0;
    pthread_mutex_unlock(&w->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&w->cond);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

static void request_window_on_result(clave_async_client *c, const clave_result *res, void *arg);

/* Sends as many requests as the window allows. To be called with the mutex held. */
static void request_window_fill(struct request_window *w)
{
    while (!w->abandoned && w->free && w->next < w->plan.n) {
        assert(w->client);
        struct slot *slot = w->free;
        slot->i = w->next++;
        clave_err err =
            w->plan.submit(w->client, slot->i, request_window_on_result, slot, w->plan.arg);
        if (err == CLAVE_OK) {
            w->free = slot->next_free;
            w->holders++;
        } else {
            w->plan.done(slot->i, &(clave_result){.err = err}, w->plan.arg);
            w->done++;
        }
    }
}

static void request_window_on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    struct slot *slot = arg;
    struct request_window *w = slot->request_window;
    (void)c;
    pthread_mutex_lock(&w->mutex);
    if (!w->abandoned)
        w->plan.done(slot->i, res, w->plan.arg);
    assert(w->done < w->plan.n);
    w->done++;
    slot->next_free = w->free;
    w->free = slot;
    request_window_fill(w);
    pthread_cond_signal(&w->cond);
    request_window_release(w);
}

static void request_window_begin(clave_async_client *c, void *arg)
{
    struct request_window *w = arg;
    pthread_mutex_lock(&w->mutex);
    w->client = c;
    request_window_fill(w);
    pthread_cond_signal(&w->cond);
    request_window_release(w);
}

clave_err request_window_run(clave_client *c, const struct request_window_plan *plan,
                             int64_t timeout_ms)
{
    assert(plan->submit && plan->done);
    struct request_window *w = request_window_new(plan);
    if (!w)
        return CLAVE_ENOMEM;
    clave_err err = clave_client_post(c, request_window_begin, w);
    pthread_mutex_lock(&w->mutex);
    if (err != CLAVE_OK)
        w->holders--; /* request_window_begin() will not run */
    while (err == CLAVE_OK && w->done < plan->n) {
        size_t before = w->done;
        struct timespec until = clave__clock_after(timeout_ms);
        int waited = pthread_cond_timedwait(&w->cond, &w->mutex, &until);
        if (waited == ETIMEDOUT && w->done == before)
            err = CLAVE_ETIMEDOUT;
    }
    w->abandoned = true;
    request_window_release(w);
    return err;
}
