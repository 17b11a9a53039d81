/* disk_thread.h - a thread that does one kind of disk work, one job at a time: snapshot_thread.h,
 * audit_log.h and serve_log.h.
 *
 * No lock: what a job needs belongs to the loop's thread while the state is FREE or DONE and to the
 * disk's thread while it is POSTED; the state hands it over. */
#ifndef CLAVE_RUNTIME_STORE_DISK_THREAD_H
#define CLAVE_RUNTIME_STORE_DISK_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "base/buf.h"
#include "clave/err.h"
#include "runtime/notifier.h"

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
