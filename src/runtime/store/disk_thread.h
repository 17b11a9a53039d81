/* disk_thread.h - a thread that does one kind of disk work, one job at a time (snapshot_thread.h,
 * audit_log.h, serve_log.h, the gate's replay), and how it wakes the loop that gave it the work.
 *
 * No lock: what a job needs belongs to the loop's thread while the state is FREE or DONE and to the
 * disk's thread while it is POSTED; the state hands it over.
 *
 * The loop is woken by an eventfd that it polls, and not by a uv_async_t. A loop that is woken
 * while the sender is still in uv_async_send spins in libuv 1.44 until the sender has left it. If
 * the loop has a higher priority than the sender, it keeps it from the processor meanwhile: turns
 * of 50 to 136 ms were measured (bench/stalls --realtime loop). */
#ifndef CLAVE_RUNTIME_STORE_DISK_THREAD_H
#define CLAVE_RUNTIME_STORE_DISK_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "clave/err.h"

/* ---- waking a loop --------------------------------------------------------------------------- */

struct notifier {
    uv_poll_t poll;
    int fd;
    void (*notified)(void *arg);
    void *arg;
};

/* `notified` runs on the loop's thread, once or more after each _send: those that come together
 * are one. Keeps the loop alive. Returns 0 or an errno; then only _close is legal. */
int clave__notifier_open(struct notifier *n, uv_loop_t *loop, void (*notified)(void *arg),
                         void *arg);
/* On any thread; never waits. What the sender wrote before, `notified` sees. */
void clave__notifier_send(struct notifier *n);
/* On the loop's thread, when nobody sends any more. `notified` is not called again. The memory is
 * the loop's until its next turn is over. */
void clave__notifier_close(struct notifier *n);

/* ---- the thread ------------------------------------------------------------------------------ */

enum job_state { JOB_FREE, JOB_POSTED, JOB_DONE };

struct disk_thread {
    pthread_t thread;
    bool running;
    uv_sem_t work;
    atomic_bool ending;
    atomic_int state;
    int (*job)(struct disk_thread *t);      /* 0 or an errno */
    struct notifier *done;                  /* woken when a job is DONE; NULL: on_done is called */
    void (*on_done)(struct disk_thread *t); /* by the disk's thread; it may post the next job */
    struct buf bytes;                       /* of the job: the loop's thread fills it */
    int fault;                              /* errno; 0: it is on disk */
};

/* The name is the thread's (15 characters). ENOMEM. ETHREAD: cannot start it. `done` belongs to the
 * caller and outlives the thread; if it is NULL, t->on_done is set before. */
clave_err clave__disk_thread_start(struct disk_thread *t, const char *name,
                                   int (*job)(struct disk_thread *t), const struct clave_mem *mem,
                                   struct notifier *done);
/* Lets the current job finish. Does nothing if the thread was not started. */
void clave__disk_thread_stop(struct disk_thread *t);

static inline enum job_state clave__disk_thread_state(struct disk_thread *t)
{
    return (enum job_state)atomic_load_explicit(&t->state, memory_order_acquire);
}
/* Hands over a job, its bytes filled, while FREE. */
void clave__disk_thread_post(struct disk_thread *t);
/* Takes a DONE job back. The fault stays readable; of the buffer's memory at most `keep` bytes. */
void clave__disk_thread_take(struct disk_thread *t, size_t keep);

#endif
