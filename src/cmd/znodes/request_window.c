/* request_window.c - keeps a window of requests in flight (request_window.h); tree_walk.c and ls
 * call it. The state is counted by the requests in flight, the waiting caller and the task on the
 * loop. */
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

/* On the heap and counted: answers may arrive after the caller has given up. */
struct request_window {
    struct request_window_plan plan;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    clave_async_client *client;
    struct slot *free;
    size_t next;      /* number of the next request to submit */
    size_t done;      /* how many have their result */
    unsigned holders; /* requests in flight, the waiting caller, and the task on the loop */
    bool abandoned;
    struct slot slots[WINDOW];
};

static struct request_window *request_window_new(const struct request_window_plan *plan)
{
    struct request_window *f = calloc(1, sizeof *f);
    pthread_condattr_t attr;
    if (!f)
        return NULL;
    f->plan = *plan;
    f->holders = 2;
    pthread_mutex_init(&f->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&f->cond, &attr);
    pthread_condattr_destroy(&attr);
    for (size_t i = 0; i < WINDOW; i++) {
        f->slots[i] = (struct slot){.request_window = f, .next_free = f->free};
        f->free = &f->slots[i];
    }
    return f;
}

/* Drops one reference, with the mutex held, and unlocks it. */
static void request_window_release(struct request_window *f)
{
    assert(f->holders > 0);
    bool last = --f->holders == 0;
    pthread_mutex_unlock(&f->mutex);
    if (!last)
        return;
    pthread_cond_destroy(&f->cond);
    pthread_mutex_destroy(&f->mutex);
    free(f);
}

static void on_result(clave_async_client *c, const clave_result *res, void *arg);

/* Submits what the window allows; call it with the mutex held. */
static void request_window_fill(struct request_window *f)
{
    while (!f->abandoned && f->free && f->next < f->plan.n) {
        struct slot *slot = f->free;
        slot->i = f->next++;
        clave_err err = f->plan.submit(f->client, slot->i, on_result, slot, f->plan.arg);
        if (err == CLAVE_OK) {
            f->free = slot->next_free;
            f->holders++;
        } else {
            f->plan.done(slot->i, &(clave_result){.err = err}, f->plan.arg);
            f->done++;
        }
    }
}

static void on_result(clave_async_client *c, const clave_result *res, void *arg)
{
    struct slot *slot = arg;
    struct request_window *f = slot->request_window;
    (void)c;
    pthread_mutex_lock(&f->mutex);
    if (!f->abandoned)
        f->plan.done(slot->i, res, f->plan.arg);
    f->done++;
    slot->next_free = f->free;
    f->free = slot;
    request_window_fill(f);
    pthread_cond_signal(&f->cond);
    request_window_release(f);
}

static void request_window_begin(clave_async_client *c, void *arg)
{
    struct request_window *f = arg;
    pthread_mutex_lock(&f->mutex);
    f->client = c;
    request_window_fill(f);
    pthread_cond_signal(&f->cond);
    request_window_release(f);
}

clave_err request_window_run(clave_client *s, const struct request_window_plan *plan,
                             int64_t timeout_ms)
{
    struct request_window *f = request_window_new(plan);
    if (!f)
        return CLAVE_ENOMEM;
    clave_err err = clave_client_post(s, request_window_begin, f);
    pthread_mutex_lock(&f->mutex);
    if (err != CLAVE_OK)
        f->holders--; /* request_window_begin() will not run */
    while (err == CLAVE_OK && f->done < plan->n) {
        size_t before = f->done;
        struct timespec until = clave__clock_after(timeout_ms);
        int waited = pthread_cond_timedwait(&f->cond, &f->mutex, &until);
        if (waited == ETIMEDOUT && f->done == before)
            err = CLAVE_ETIMEDOUT;
    }
    f->abandoned = true;
    request_window_release(f);
    return err;
}
