/* disk_thread.h - a thread that does one kind of disk work, one job at a time (snapshot_thread.h,
 * audit_log.h, serve_log.h, the gate's replay), and the notifier with which it wakes the loop that
 * posted the job.
 *
 * There is no lock: the data of a job belongs to the loop's thread while the state is FREE or DONE,
 * and to the disk's thread while it is POSTED; changing the state hands it over.
 *
 * The loop is woken by an eventfd that it polls, and not by a uv_async_t. A loop that is woken
 * while the sender is still in uv_async_send spins in libuv 1.44 until the sender has left it. If
 * the loop has a higher priority than the sender, it thereby keeps the sender off the processor:
 * turns of 50 to 136 ms were measured (bench/stalls --realtime loop). */
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

/* Opens a notifier. `notified` is called on the loop's thread, once or more after each _send;
 * notifications that come together count as one. Keeps the loop alive. Returns 0 or an errno, after
 * which only _close may be called. */
int clave__notifier_open(struct notifier *n, uv_loop_t *loop, void (*notified)(void *arg),
                         void *arg);
/* Any thread; never waits. `notified` sees whatever the sender wrote before. */
void clave__notifier_send(struct notifier *n);
/* On the loop's thread, when nobody sends any more. `notified` is not called again. The loop uses
 * the memory until its next turn is over. */
void clave__notifier_close(struct notifier *n);

/* ---- the thread ------------------------------------------------------------------------------ */

enum job_state { JOB_FREE, JOB_POSTED, JOB_DONE };

struct disk_thread {
    pthread_t thread;
    bool running;
    uv_sem_t work;
    atomic_bool ending;
    atomic_int state;
    int (*job)(struct disk_thread *t); /* returns 0 or an errno */
    struct notifier *done; /* woken when a job is DONE; NULL: on_done is called instead */
    void (*on_done)(
        struct disk_thread *t); /* called on the disk's thread; it may post the next job */
    struct buf bytes;           /* the job's input, filled by the loop's thread */
    int fault;                  /* an errno; 0: the job succeeded */
};

/* Starts the thread under this name (at most 15 characters). ENOMEM. ETHREAD: it cannot be started.
 * `done` belongs to the caller and must outlive the thread; if it is NULL, set t->on_done first. */
clave_err clave__disk_thread_start(struct disk_thread *t, const char *name,
                                   int (*job)(struct disk_thread *t), const struct clave_mem *mem,
                                   struct notifier *done);
/* Lets the current job finish, and ends the thread. Does nothing if the thread was not started. */
void clave__disk_thread_stop(struct disk_thread *t);

static inline enum job_state clave__disk_thread_state(struct disk_thread *t)
{
    return (enum job_state)atomic_load_explicit(&t->state, memory_order_acquire);
}
/* Posts a job, whose bytes are filled. The state must be FREE. */
void clave__disk_thread_post(struct disk_thread *t);
/* Takes a DONE job back. Its fault remains readable; at most `keep` bytes of its buffer are
 * kept. */
void clave__disk_thread_take(struct disk_thread *t, size_t keep);

#endif
