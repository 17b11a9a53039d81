/* worker.h - runs calls that may take long and cannot be interrupted, such as a name lookup, on
 * threads of their own. A thread is started when there is work, up to four of them, and ends when
 * there is none left, so a process that waits for nothing has no such thread.
 *
 * libuv's pool does the same, but it aborts the program if the system refuses it a thread. */
#ifndef CLAVE_RUNTIME_WORKER_H
#define CLAVE_RUNTIME_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "base/list.h"

/*   QUEUED ──a thread takes it──▶ RUNNING ──▶ ENDED: `finished` is called on the loop
 *      └──────────────┴──────────────────┴── _abandon: it is not, and the loop may go at once */
struct job {
    struct list link; /* in the queue */
    uv_async_t done;
    atomic_uint refs; /* one for the loop, one for the thread */
    bool abandoned;
    void (*run)(struct job *j);      /* called on a thread; touches nothing but the job */
    void (*finished)(struct job *j); /* called once, on the loop's thread */
    void (*free)(struct job *j);     /* called last, on either thread */
};

/* Starts a job whose run, finished and free are set. Returns 0, or an errno if there is no thread
 * for it; then nothing is called and the job remains the caller's. To be called on the loop's
 * thread. */
int clave__job_start(struct job *j, uv_loop_t *loop);
/* On the loop's thread, before `finished`: nobody wants the result any more. The job may still
 * run. */
void clave__job_abandon(struct job *j);

#endif
