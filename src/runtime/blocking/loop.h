/* loop.h - the thread of a loop, and how other threads get work done on it.
 *
 * One mutex, clave_loop.mutex, guards everything that more than one thread touches: the queue of
 * tasks, the states of calls, what clients and recipes publish. It is held for a few instructions,
 * never over a callback or a system call other than the wake-up. */
#ifndef CLAVE_RUNTIME_BLOCKING_LOOP_H
#define CLAVE_RUNTIME_BLOCKING_LOOP_H

#include <pthread.h>
#include <stdbool.h>
#include <uv.h>

#include "base/list.h"
#include "clave/client.h"
#include "client/client_metrics.h"
#include "runtime/suspend_resume.h"

/* Work for the loop's thread. It is linked into the queue itself, so posting cannot fail. */
struct task {
    struct list link;
    void (*run)(struct task *t); /* called on the loop's thread; may free t */
};

/* Where threads wait, under the mutex. */
struct cell {
    pthread_cond_t cond;
};
void clave__cell_init(struct cell *c);
static inline void clave__cell_fini(struct cell *c)
{
    pthread_cond_destroy(&c->cond);
}
/* Wakes all waiters. */
static inline void clave__cell_wake(struct cell *c)
{
    pthread_cond_broadcast(&c->cond);
}
/* Waits to be woken, at most until `deadline` (clave_now(); CLAVE_NEVER). Returns false if the
 * deadline has passed. */
bool clave__cell_wait(struct cell *c, clave_loop *l, int64_t deadline);

struct clave_loop {
    uv_loop_t uv;
    uv_async_t wake;
    struct wakeup wakeup;
    pthread_t thread;
    bool joined;         /* atomic: the thread has ended, and its id may be reused */
    unsigned refs;       /* atomic: references of the user and the clients */
    unsigned forks;      /* see clave__loop_is_here */
    struct list finals;  /* used by the loop's thread only */
    struct list clients; /* of struct clave_client; used by the loop's thread only */
    /* Totals of the clients that are closed; used by the loop's thread while it runs. */
    struct client_totals past;
    struct list in_loops; /* in the list of all loops of the process */
    pthread_mutex_t mutex;
    struct list tasks; /* under the mutex, as is everything below */
    bool ending;       /* set by _free; from then on no task can be posted */
};

static inline void clave__loop_lock(clave_loop *l)
{
    pthread_mutex_lock(&l->mutex);
}

static inline void clave__loop_unlock(clave_loop *l)
{
    pthread_mutex_unlock(&l->mutex);
}

/* References keep the loop's memory and its mutex, for clients that are closed but still have
 * children; the thread itself ends with clave_loop_free. Any thread. */
static inline void clave__loop_ref(clave_loop *l)
{
    (void)__atomic_add_fetch(&l->refs, 1, __ATOMIC_RELAXED);
}
void clave__loop_unref(clave_loop *l);

bool clave__loop_is_current(const clave_loop *l);

/* Returns false if this process is a fork of the one that has the loop's thread. Nobody would
 * answer there, or release the mutex, so nothing else may be called. */
bool clave__loop_is_here(const clave_loop *l);

/* For calls that cannot return ELOOPTHREAD: aborts the program if called on the loop's thread. */
void clave__loop_must_not_be_current(const clave_loop *l, const char *call);

/* Queues a task; tasks run in the order in which they were posted. Any thread; call _locked with
 * the mutex held. */
void clave__loop_post(clave_loop *l, struct task *t);
void clave__loop_post_locked(clave_loop *l, struct task *t);
/* Removes a task. Returns true if it had not begun, and now will not. Call it with the mutex
 * held. */
bool clave__loop_unpost_locked(struct task *t);

/* To be called from a task: runs t once, after all tasks that are queued now. Posting it again
 * before then has no effect. */
void clave__loop_finally(clave_loop *l, struct task *t);

/* Posts a task and waits until it has run. ELOOPTHREAD: this is the loop's own thread. ECLOSED: the
 * thread is not in this process, or the loop is being freed. */
clave_err clave__loop_run(clave_loop *l, void (*fn)(void *arg), void *arg);

/* Lists all loops of this process at one moment, each with a reference that the caller must give
 * back, in an array that the caller must free (NULL if there are none), together with the totals of
 * loops that were freed before. ENOMEM. */
clave_err clave__loops_list(clave_loop ***out, size_t *n, struct client_totals *past);

/* The deadline for a timeout in ms; a negative one gives CLAVE_NEVER. */
int64_t clave__deadline_after(int64_t timeout_ms);

#endif
