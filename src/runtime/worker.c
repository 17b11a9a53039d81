/* worker.c - the queue of jobs and the threads that take them (worker.h). One mutex guards the
 * queue and the number of threads; it is never held during a job. */
#include "runtime/worker.h"

#include <assert.h>
#include <pthread.h>

#include "runtime/thread_start.h"

/* A name server that does not answer blocks one of them for as long as the resolver waits. */
enum { MOST_WORKERS = 4 };

static pthread_mutex_t worker_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list worker_queue = {&worker_queue, &worker_queue};
static unsigned worker_threads;
static pthread_once_t worker_once = PTHREAD_ONCE_INIT;
static int worker_once_fault;

/* In a fork: it has none of the threads, and the loops of the queued jobs are not there. */
static void worker_forget(void)
{
    pthread_mutex_init(&worker_mutex, NULL);
    list_init(&worker_queue);
    worker_threads = 0;
}

static void worker_prepare(void)
{
    worker_once_fault = pthread_atfork(NULL, NULL, worker_forget);
}

static void job_unref(struct job *j)
{
    if (atomic_fetch_sub(&j->refs, 1) == 1)
        j->free(j);
}

static void job_on_closed(uv_handle_t *done)
{
    job_unref(done->data);
}

static void job_on_done(uv_async_t *done)
{
    struct job *j = done->data;
    uv_close((uv_handle_t *)done, job_on_closed);
    j->finished(j);
}

static void *worker_main(void *arg)
{
    struct list *e;
    (void)arg;
    pthread_mutex_lock(&worker_mutex);
    while ((e = list_pop_front(&worker_queue))) {
        struct job *j = LIST_ENTRY(e, struct job, link);
        pthread_mutex_unlock(&worker_mutex);
        j->run(j);
        pthread_mutex_lock(&worker_mutex);
        if (!j->abandoned)
            uv_async_send(&j->done); /* under the mutex, because _abandon closes it */
        pthread_mutex_unlock(&worker_mutex);
        job_unref(j);
        pthread_mutex_lock(&worker_mutex);
    }
    assert(worker_threads > 0);
    worker_threads--;
    pthread_mutex_unlock(&worker_mutex);
    return NULL;
}

/* Call it with the mutex held. Returns 0 if there is a thread that will come to the queue. */
static int worker_begin(void)
{
    pthread_t thread;
    if (worker_threads == MOST_WORKERS)
        return 0;
    int err = clave__thread_start(&thread, "clave-lookup", worker_main, NULL);
    if (err != 0)
        return worker_threads > 0 ? 0 : err;
    pthread_detach(thread);
    worker_threads++;
    return 0;
}

int clave__job_start(struct job *j, uv_loop_t *loop)
{
    assert(j->run && j->finished && j->free);
    pthread_once(&worker_once, worker_prepare);
    if (worker_once_fault != 0)
        return worker_once_fault;
    pthread_mutex_lock(&worker_mutex);
    int err = worker_begin();
    if (err == 0)
        err = -uv_async_init(loop, &j->done, job_on_done);
    if (err == 0) {
        j->done.data = j;
        j->abandoned = false;
        atomic_init(&j->refs, 2);
        list_push_back(&worker_queue, &j->link);
    }
    pthread_mutex_unlock(&worker_mutex);
    return err;
}

void clave__job_abandon(struct job *j)
{
    pthread_mutex_lock(&worker_mutex);
    assert(!j->abandoned);
    bool queued = !list_empty(&j->link);
    list_remove(&j->link);
    j->abandoned = true;
    pthread_mutex_unlock(&worker_mutex);
    if (queued)
        job_unref(j);
    uv_close((uv_handle_t *)&j->done, job_on_closed);
}
