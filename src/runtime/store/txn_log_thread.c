/* txn_log_thread.c - writes batches to the log, and runs the loop (txn_log_thread.h); the server
 * posts the batches.
 *
 * What must stay true: a log gets its name once its header is on the disk. A batch is durable when
 * clave__txn_log_file_append has returned, and is not reported before. After a fault of the disk
 * the server posts no more batches, because what a failed sync left in the page cache would be
 * taken for durable. */
#include "runtime/store/txn_log_thread.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/store/file_io.h"
#include "runtime/store/file_names.h"
#include "runtime/thread_start.h"
#include "server/server.h"

/* ---- the file -------------------------------------------------------------------------------- */

/* By how much a log is extended: by its present length, within these bounds. */
enum { LEAST_ROOM = 64 * 1024, MOST_ROOM = 8 * 1024 * 1024 };
/* FILL: how many bytes of zeros are written ahead after a batch; FILL_BATCH: the longest batch
 * after which this is done; FILL_PIECE: the length of one write. After a longer batch the zeros
 * would cost more than they save. The pieces are short because appending to a page of the cache
 * that came from a longer write takes longer. */
enum { FILL = 256 * 1024, FILL_BATCH = 32 * 1024, FILL_PIECE = 16 * 1024 };

int clave__txn_log_file_create(struct txn_log_file *f, int dir, int64_t first_zxid)
{
    char name[FILE_NAME_SIZE];
    uint8_t header[SERVER_LOG_HEADER];
    clave__file_name(name, FILE_LOG, first_zxid);
    clave__server_log_header(header);
    f->fd = openat(dir, FILE_UNFINISHED_LOG, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (f->fd < 0)
        return errno;
    f->end = f->room = f->filled = sizeof header;
    int err = clave__file_write(f->fd, header, sizeof header, 0);
    if (err == 0 && (fdatasync(f->fd) != 0 || renameat(dir, FILE_UNFINISHED_LOG, dir, name) != 0 ||
                     fsync(dir) != 0))
        err = errno;
    if (err != 0) {
        close(f->fd);
        f->fd = -1;
    }
    return err;
}

/* Makes room for n bytes and some more. Where that is not possible, on a full disk or a file system
 * without fallocate, the file grows as it is written. */
static void log_file_make_room(struct txn_log_file *f, size_t n)
{
    int64_t need = f->end + (int64_t)n;
    if (f->room == 0 || need <= f->room)
        return;
    int64_t more = need < LEAST_ROOM ? LEAST_ROOM : need;
    if (more > MOST_ROOM)
        more = MOST_ROOM;
    if (fallocate(f->fd, 0, (off_t)f->room, (off_t)(need + more - f->room)) == 0)
        f->room = need + more;
    else
        f->room = 0;
}

/* Writes zeros into the room behind a batch of n bytes that ends at `end`, because the first sync
 * of a block that was only allocated waits for the file system's journal. If this fails, the sync
 * of the batch reports it, or nothing is lost except time. */
static void log_file_fill(struct txn_log_file *f, size_t n, int64_t end)
{
    static uint8_t zeros[FILL_PIECE];
    if (n > FILL_BATCH || end <= f->filled)
        return;
    f->filled = end + FILL < f->room ? end + FILL : f->room;
    for (int64_t at = end, piece; at < f->filled; at += piece) {
        piece = FILL_PIECE - at % FILL_PIECE;
        piece = piece < f->filled - at ? piece : f->filled - at;
        if (clave__file_write(f->fd, zeros, (size_t)piece, at) != 0)
            return;
    }
}

/* Cuts the file off after its records, which removes the room ahead of them and what a failed
 * append left. A failure is not reported, because readers skip the zeros. */
static void log_file_cut(struct txn_log_file *f)
{
    if (f->room != f->end && ftruncate(f->fd, (off_t)f->end) == 0)
        f->room = f->end;
}

int clave__txn_log_file_append(struct txn_log_file *f, const void *p, size_t n)
{
    assert(f->fd >= 0 && f->room != INT64_MAX);
    log_file_make_room(f, n);
    int err = clave__file_write(f->fd, p, n, f->end);
    if (err == 0)
        log_file_fill(f, n, f->end + (int64_t)n);
    if (err == 0 && fdatasync(f->fd) != 0)
        err = errno;
    if (err == 0) {
        f->end += (int64_t)n;
    } else { /* the bytes may be in the page cache and never reach the disk */
        f->room = INT64_MAX;
        log_file_cut(f);
    }
    return err;
}

void clave__txn_log_file_close(struct txn_log_file *f)
{
    if (f->fd < 0)
        return;
    log_file_cut(f);
    close(f->fd);
    f->fd = -1;
}

/* ---- the threads ----------------------------------------------------------------------------- */

/* The longest wait for sockets during a write. A connection that becomes readable meanwhile, and a
 * deadline that moves closer, are noticed by the next wait. */
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

/* Without a write, nobody else wants the turn. */
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
    int ms = uv_backend_timeout(
        t->loop); /* 0: the loop already has more to do; -1: there is no deadline */
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
