/* worker.h - calls that may take long and cannot be interrupted, such as a name lookup, on threads
 * of their own. A thread is started when there is work, up to four of them, and ends when there is
 * none left: a process that waits for nothing has none.
 *
 * libuv's pool would do the same, but it aborts the program if the system refuses one of its
 * threads. */
#ifndef CLAVE_RUNTIME_WORKER_H
#define CLAVE_RUNTIME_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "base/list.h"

/*   QUEUED ──a thread takes it──▶ RUNNING ──▶ ENDED: `finished` is called on the loop
 *      └──────────────┴──────────────────┴── _abandon: it is not, and the loop may go at once */
struct job {
    struct list link; /* while it is queued */
    uv_async_t done;
    atomic_uint refs; /* the loop's and the thread's */
    bool abandoned;
    void (*run)(struct job *j);      /* on a thread; touches nothing but the job */
    void (*finished)(struct job *j); /* on the loop's thread, once */
    void (*free)(struct job *j);     /* last, on either thread */
};

/* Sets the job going: run, finished and free are set. 0, or an errno if there is no thread for it;
 * then nothing is called and the job is the caller's. On the loop's thread. */
int clave__job_start(struct job *j, uv_loop_t *loop);
/* On the loop's thread, before `finished`: nobody wants the result. It may still run. */
void clave__job_abandon(struct job *j);

#endif
