/* disk_thread.c - the thread and the hand-over of jobs (disk_thread.h), and the notifier that wakes
 * the loop, which is an eventfd with a uv_poll_t. Sender and loop share nothing but the kernel's
 * counter, so neither ever waits for the other. */
#include "runtime/store/disk_thread.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/thread_start.h"

/* ---- waking a loop --------------------------------------------------------------------------- */

static void notifier_on_readable(uv_poll_t *poll, int status, int events)
{
    struct notifier *n = poll->data;
    eventfd_t times;
    (void)status;
    (void)events;
    /* before the call, so that whatever is sent during it leads to another call */
    eventfd_read(n->fd, &times);
    n->notified(n->arg);
}

int clave__notifier_open(struct notifier *n, uv_loop_t *loop, void (*notified)(void *arg),
                         void *arg)
{
    n->notified = notified;
    n->arg = arg;
    n->poll.data = n;
    n->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (n->fd < 0)
        return errno;
    int err = -uv_poll_init(loop, &n->poll, n->fd);
    if (err != 0) {
        close(n->fd);
        n->fd = -1;
        return err;
    }
    return -uv_poll_start(&n->poll, UV_READABLE, notifier_on_readable);
}

void clave__notifier_send(struct notifier *n)
{
    assert(n->fd >= 0);
    /* fails only if 2^64 - 2 were sent since the last read, and then it is readable anyway */
    eventfd_write(n->fd, 1);
}

void clave__notifier_close(struct notifier *n)
{
    if (n->fd < 0)
        return;
    uv_close((uv_handle_t *)&n->poll, NULL); /* from here on the loop does not poll the fd */
    close(n->fd);
    n->fd = -1;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *disk_thread_main(void *arg)
{
    struct disk_thread *t = arg;
    for (;;) {
        uv_sem_wait(&t->work);
        if (clave__disk_thread_state(t) == JOB_POSTED) {
            t->fault = t->job(t);
            atomic_store_explicit(&t->state, JOB_DONE, memory_order_release);
            if (t->done)
                clave__notifier_send(t->done);
            else
                t->on_done(t);
        }
        if (atomic_load(&t->ending) && clave__disk_thread_state(t) != JOB_POSTED)
            return NULL;
    }
}

void clave__disk_thread_post(struct disk_thread *t)
{
    assert(t->running && clave__disk_thread_state(t) == JOB_FREE);
    atomic_store_explicit(&t->state, JOB_POSTED, memory_order_release);
    uv_sem_post(&t->work);
}

void clave__disk_thread_take(struct disk_thread *t, size_t keep)
{
    assert(clave__disk_thread_state(t) == JOB_DONE);
    clave__buf_clear(&t->bytes);
    clave__buf_trim(&t->bytes, keep);
    atomic_store_explicit(&t->state, JOB_FREE, memory_order_relaxed);
}

clave_err clave__disk_thread_start(struct disk_thread *t, const char *name,
                                   int (*job)(struct disk_thread *t), const struct clave_mem *mem,
                                   struct notifier *done)
{
    assert(!t->running);
    assert(done || t->on_done);
    t->job = job;
    t->done = done;
    atomic_init(&t->ending, false);
    atomic_init(&t->state, JOB_FREE);
    clave__buf_init(&t->bytes, mem, SIZE_MAX / 2);
    if (uv_sem_init(&t->work, 0) != 0)
        return CLAVE_ENOMEM;
    t->running = clave__thread_start(&t->thread, name, disk_thread_main, t) == 0;
    if (!t->running)
        uv_sem_destroy(&t->work);
    return t->running ? CLAVE_OK : CLAVE_ETHREAD;
}

void clave__disk_thread_stop(struct disk_thread *t)
{
    if (!t->running)
        return;
    atomic_store(&t->ending, true);
    uv_sem_post(&t->work);
    pthread_join(t->thread, NULL);
    uv_sem_destroy(&t->work);
    clave__buf_fini(&t->bytes);
    t->running = false;
}
