/* txn_log_thread.c - writes batches to the log, and runs the loop (txn_log_thread.h); the
 * server posts them. A batch is not reported before it is durable. After a fault the server posts
 * no more.
 */
#include "runtime/store/txn_log_thread.h"

#include <assert.h>
#include <poll.h>

#include "runtime/thread_start.h"

/* The longest wait for sockets during a write. A connection that begins to be read meanwhile, and a
 * deadline that comes nearer, are noticed by the next one. */
enum { WAIT_MS = 1 };

static _Thread_local const struct txn_log_thread *log_thread_current;

static int log_thread_append(struct txn_log_thread *t)
{
    int fault = 0;
    t->grown = -clave__txn_log_file_length(&t->file);
    if (t->new_file || t->file.fd < 0) {
        clave__txn_log_file_close(&t->file);
        t->grown += clave__txn_log_file_length(&t->file);
        fault = clave__txn_log_file_create(&t->file, t->dir, t->first_zxid);
    }
    t->took_ns = uv_hrtime();
    if (fault == 0)
        fault = clave__txn_log_file_append(&t->file, clave__buf_bytes(&t->bytes),
                                           clave__buf_len(&t->bytes));
    t->took_ns = uv_hrtime() - t->took_ns;
    t->grown += clave__txn_log_file_length(&t->file);
    return fault;
}

static void log_thread_write(struct txn_log_thread *t)
{
    bool waiting = t->waiting;
    t->state = LOG_WRITING;
    uv_mutex_unlock(&t->turn);
    if (!waiting)
        uv_cond_signal(&t->wanted);
    t->fault = log_thread_append(t);
    t->returning = true;
    uv_mutex_lock(&t->turn);
    t->returning = false;
    uv_cond_signal(&t->returned);
    if (t->ended)
        return;
    t->state = LOG_FREE;
    t->written(t->arg);
    if (!t->ended) /* a fault of the disk ends it */
        uv_run(t->loop, UV_RUN_NOWAIT);
}

/* Without a write nobody else wants the turn. */
static void log_thread_wait(struct txn_log_thread *t)
{
    if (t->state == LOG_FREE) {
        uv_run(t->loop, UV_RUN_ONCE);
        return;
    }
    uv_run(t->loop, UV_RUN_NOWAIT);
    if (t->ended)
        return;
    struct pollfd p = {.fd = uv_backend_fd(t->loop), .events = POLLIN};
    int ms = uv_backend_timeout(t->loop); /* 0: the loop has more to do already; -1: no deadline */
    t->waiting = true;
    uv_mutex_unlock(&t->turn);
    poll(&p, 1, ms < 0 || ms > WAIT_MS ? WAIT_MS : ms);
    uv_mutex_lock(&t->turn);
    while (t->returning)
        uv_cond_wait(&t->returned, &t->turn);
    t->waiting = false;
}

static void log_thread_take_turns(struct txn_log_thread *t)
{
    log_thread_current = t;
    while (!t->ended) {
        if (t->state == LOG_POSTED)
            log_thread_write(t);
        else if (t->waiting)
            uv_cond_wait(&t->wanted, &t->turn);
        else
            log_thread_wait(t);
    }
    uv_cond_signal(&t->wanted);
    log_thread_current = NULL;
}

void clave__txn_log_thread_run(struct txn_log_thread *t)
{
    assert(t->running);
    uv_mutex_lock(&t->turn);
    t->begun = true;
    log_thread_take_turns(t);
    uv_mutex_unlock(&t->turn);
}

static void *log_thread_main(void *arg)
{
    struct txn_log_thread *t = arg;
    uv_mutex_lock(&t->turn);
    while (!t->begun && !t->ended)
        uv_cond_wait(&t->wanted, &t->turn);
    log_thread_take_turns(t);
    uv_mutex_unlock(&t->turn);
    return NULL;
}

void clave__txn_log_thread_post(struct txn_log_thread *t)
{
    assert(t->running && t->state == LOG_FREE);
    t->state = LOG_POSTED;
}

void clave__txn_log_thread_end(struct txn_log_thread *t)
{
    t->ended = true;
}

bool clave__txn_log_thread_is_current(const struct txn_log_thread *t)
{
    return log_thread_current == t;
}

clave_err clave__txn_log_thread_start(struct txn_log_thread *t, int dir,
                                      const struct clave_mem *mem, uv_loop_t *loop,
                                      void (*written)(void *arg), void *arg)
{
    assert(!t->running && written);
    t->dir = dir;
    clave__buf_init(&t->bytes, mem, SIZE_MAX / 2);
    t->loop = loop;
    t->written = written;
    t->arg = arg;
    t->file.fd = -1;
    clave_err err = CLAVE_ENOMEM;
    if (uv_mutex_init(&t->turn) != 0)
        return err;
    if (uv_cond_init(&t->wanted) != 0)
        goto fail_wanted;
    if (uv_cond_init(&t->returned) != 0)
        goto fail_returned;
    t->running = clave__thread_start(&t->second, "clave-log", log_thread_main, t) == 0;
    if (t->running)
        return CLAVE_OK;
    err = CLAVE_ETHREAD;
    uv_cond_destroy(&t->returned);
fail_returned:
    uv_cond_destroy(&t->wanted);
fail_wanted:
    uv_mutex_destroy(&t->turn);
    return err;
}

void clave__txn_log_thread_stop(struct txn_log_thread *t)
{
    if (!t->running)
        return;
    uv_mutex_lock(&t->turn);
    t->ended = true;
    uv_cond_signal(&t->wanted);
    uv_mutex_unlock(&t->turn);
    pthread_join(t->second, NULL);
    uv_cond_destroy(&t->returned);
    uv_cond_destroy(&t->wanted);
    uv_mutex_destroy(&t->turn);
    clave__txn_log_file_close(&t->file);
    clave__buf_fini(&t->bytes);
    t->running = false;
}
