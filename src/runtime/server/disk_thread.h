/* disk_thread.h - the thread that writes: log records, each batch durable before it is reported,
 * and between batches a snapshot, piece by piece.
 *
 * No lock: a slot belongs to the loop's thread while it is FREE or DONE and to the disk's thread
 * while it is POSTED; the state hands it over. */
#ifndef CLAVE_RUNTIME_SERVER_DISK_THREAD_H
#define CLAVE_RUNTIME_SERVER_DISK_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/buf.h"
#include "runtime/server/log_file.h"
#include "runtime/server/snapshot_file.h"

enum slot_state { SLOT_FREE, SLOT_POSTED, SLOT_DONE };

struct disk_slot {
    atomic_int state;
    struct buf bytes; /* the loop's thread fills it */
    int64_t zxid;     /* append: the newest in it; snapshot: its name */
    int64_t first_zxid;
    bool new_file;   /* append: start a file named by first_zxid */
    int fault;       /* errno; 0: it is on disk */
    int purge_fault; /* snapshot: errno of removing old files */
};

struct disk_thread {
    pthread_t thread;
    uv_sem_t work;
    atomic_bool ending;
    int dir;
    struct log_file log_file; /* the disk's thread only, as the other file */
    struct snapshot_file snapshot_file;
    bool failed; /* an append failed: write nothing more, nor a snapshot of records it lacks */
    struct disk_slot append;
    struct disk_slot snapshot;
    uv_async_t *done; /* woken when a slot becomes DONE */
};

/* EIO: cannot start the thread. `done` belongs to the caller and outlives the disk. */
clave_err clave__disk_thread_start(struct disk_thread *d, int dir, const struct clave_mem *mem,
                                   uv_async_t *done);
/* Lets the current append finish, abandons a snapshot, ends the thread. */
void clave__disk_thread_stop(struct disk_thread *d);

static inline enum slot_state clave__disk_slot_state(struct disk_slot *s)
{
    return (enum slot_state)atomic_load_explicit(&s->state, memory_order_acquire);
}
/* Hands a FREE slot, filled, to the disk's thread. */
void clave__disk_slot_post(struct disk_thread *d, struct disk_slot *s);
/* Takes a DONE slot back; its fault stays readable. */
void clave__disk_slot_take(struct disk_slot *s);

#endif
