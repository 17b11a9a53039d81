/* txn_log_thread.h - the log's file, its writes, and the two threads that take turns at them and at
 * the loop: the server's own, which calls _run, and a second one. The thread that has read a change
 * writes it to the log itself, and answers when it is durable; meanwhile the other thread waits for
 * the sockets. So nothing is handed over between a request and its answer, and nobody waits for the
 * other's write.
 *
 *   FREE ──_post──▶ POSTED ──a thread takes it──▶ WRITING ──▶ FREE, and `written` is called
 *                                                     └─▶ after _end it stays WRITING
 *
 * The turn is a lock: whichever thread has it runs the loop and owns everything in the server. It
 * gives the turn away for a write, and while it waits during one.
 *
 * The file is extended ahead of the records with zeros, which readers take for padding: an
 * fdatasync without a new length or new blocks to write does not wait for the file system's
 * journal. */
#ifndef CLAVE_RUNTIME_STORE_TXN_LOG_THREAD_H
#define CLAVE_RUNTIME_STORE_TXN_LOG_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "clave/err.h"

/* ---- the file -------------------------------------------------------------------------------- */

struct txn_log_file {
    int fd;         /* -1: none */
    int64_t end;    /* end of the records */
    int64_t room;   /* the length of the file; 0: it is not extended ahead */
    int64_t filled; /* up to where zeros were written, as opposed to merely allocated */
};
/* Creates a file, replacing one of the same name, which has no record yet. Its header is on the
 * disk before it gets its name, since ZooKeeper does not start with a log without one. */
int clave__txn_log_file_create(struct txn_log_file *f, int dir, int64_t first_zxid);
/* Appends; durable when it returns 0. After an error, what was written is cut off at once, because
 * what a failed sync left in the page cache would be taken for durable when read again. Nothing
 * more may be appended then. */
int clave__txn_log_file_append(struct txn_log_file *f, const void *p, size_t n);
/* Cuts off the extension and closes the file. */
void clave__txn_log_file_close(struct txn_log_file *f);

/* The length on the disk, including the extension; also of a closed file. */
static inline int64_t clave__txn_log_file_length(const struct txn_log_file *f)
{
    return f->room > f->end ? f->room : f->end;
}

/* ---- the threads ----------------------------------------------------------------------------- */

enum log_state { LOG_FREE, LOG_POSTED, LOG_WRITING };

struct txn_log_thread {
    pthread_t second;
    bool running;
    uv_mutex_t turn;
    uv_cond_t wanted; /* somebody has to wait for the sockets */
    bool waiting;     /* a thread is doing so */
    /* The thread that wrote wants the turn back. Mutexes are not fair: a thread that waits for no
     * time at all, because the loop has more to do, would take the turn again and again. */
    atomic_bool returning;
    uv_cond_t returned;
    bool begun; /* _run was called; until then the second thread does nothing */
    bool ended;
    uv_loop_t *loop;
    void (*written)(void *arg);
    void *arg;
    int dir;
    struct txn_log_file file;
    /* The batch. It belongs to the loop, except that it belongs to the thread that writes while the
     * state is WRITING. */
    enum log_state state;
    struct buf bytes;
    int64_t first_zxid;
    int64_t last_zxid;
    bool new_file;    /* start a new file, named by first_zxid */
    int fault;        /* an errno; 0: the batch is on the disk */
    int64_t grown;    /* by how many bytes the logs became longer */
    uint64_t took_ns; /* time taken by the write and the sync */
};

/* Starts the second thread. ENOMEM. ETHREAD: it cannot be started. `written` is called with the
 * turn held; not after _end. */
clave_err clave__txn_log_thread_start(struct txn_log_thread *t, int dir,
                                      const struct clave_mem *mem, uv_loop_t *loop,
                                      void (*written)(void *arg), void *arg);
/* Runs the loop until _end. */
void clave__txn_log_thread_run(struct txn_log_thread *t);
/* Makes _run return after this pass of the loop. */
void clave__txn_log_thread_end(struct txn_log_thread *t);
/* True if the calling thread is one of the two, inside _run of this loop. */
bool clave__txn_log_thread_is_current(const struct txn_log_thread *t);
/* Lets the current batch finish, and closes the file. Does nothing if it was not started. */
void clave__txn_log_thread_stop(struct txn_log_thread *t);
/* Posts a batch. The state must be FREE. */
void clave__txn_log_thread_post(struct txn_log_thread *t);

#endif
