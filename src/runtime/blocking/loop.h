/* loop.h - the loop's thread, and how other threads get work done on it.
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

/* Work for the loop's thread. It is linked into the queue, so posting cannot fail. */
struct task {
    struct list link;
    void (*run)(struct task *t); /* on the loop's thread; may free t */
};

/* Where threads wait, under the mutex. */
struct cell {
    pthread_cond_t cond;
};
void clave__cell_init(struct cell *c);
void clave__cell_fini(struct cell *c);
void clave__cell_wake(struct cell *c); /* all of them */
/* Waits for a wake-up, until `deadline` (clave_now(); CLAVE_NEVER) at the latest. false: the
 * deadline has passed. */
bool clave__cell_wait(struct cell *c, clave_loop *l, int64_t deadline);

struct clave_loop {
    uv_loop_t uv;
    uv_async_t wake;
    struct wakeup wakeup;
    pthread_t thread;
    bool joined;         /* atomic: the thread has ended, and its id may be reused */
    unsigned refs;       /* atomic: references of the user and the clients */
    unsigned forks;      /* see _is_here */
    struct list finals;  /* the loop's thread only */
    struct list clients; /* likewise: struct clave_client */
    /* What the clients did that are closed: the loop's thread, while it runs. */
    struct client_totals past;
    struct list in_loops; /* of all loops of the process */
    pthread_mutex_t mutex;
    struct list tasks; /* under the mutex, as is everything below */
    bool ending;       /* by _free; from then on no task is posted */
};

static inline void clave__loop_lock(clave_loop *l)
{
    pthread_mutex_lock(&l->mutex);
}

static inline void clave__loop_unlock(clave_loop *l)
{
    pthread_mutex_unlock(&l->mutex);
}

/* References to the loop's memory and its mutex, for clients that are closed and still have
 * children: the thread itself ends with clave_loop_free. Any thread. */
static inline void clave__loop_ref(clave_loop *l)
{
    (void)__atomic_add_fetch(&l->refs, 1, __ATOMIC_RELAXED);
}
void clave__loop_unref(clave_loop *l);

bool clave__loop_is_current(const clave_loop *l);

/* false: this process is a fork of the one that has the loop's thread. Nothing would answer, or
 * release the mutex, so nothing else may be called then. */
bool clave__loop_is_here(const clave_loop *l);

/* For calls that cannot return ELOOPTHREAD: aborts the program on the loop's thread. */
void clave__loop_must_not_be_current(const clave_loop *l, const char *call);

/* Tasks run in the order of the calls. Any thread; _locked: with the mutex held. */
void clave__loop_post(clave_loop *l, struct task *t);
void clave__loop_post_locked(clave_loop *l, struct task *t);
/* true: the task had not begun, and will not. With the mutex held. */
bool clave__loop_unpost_locked(struct task *t);

/* From a task: runs t once, after all tasks that are queued now. Posting it again before that has
 * no effect. */
void clave__loop_finally(clave_loop *l, struct task *t);

/* Posts the task and waits until it has run. ELOOPTHREAD on the loop's own thread; ECLOSED: the
 * thread is not in this process, or the loop is being freed. */
clave_err clave__loop_run(clave_loop *l, void (*fn)(void *arg), void *arg);

/* All loops of this process at one moment, each with a reference that the caller gives back, in an
 * array that the caller frees (NULL for none), and what clients did on loops that were freed before
 * that. ENOMEM. */
clave_err clave__loops_list(clave_loop ***out, size_t *n, struct client_totals *past);

/* The deadline for a timeout in milliseconds: negative is CLAVE_NEVER. */
int64_t clave__deadline_after(int64_t timeout_ms);

#endif
