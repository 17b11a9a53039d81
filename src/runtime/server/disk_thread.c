/* disk_thread.c - the disk's thread (disk_thread.h); uv_server.c posts to it. Nothing is DONE
 * before its fsync has returned. */
#include "runtime/server/disk_thread.h"

#include <signal.h>

#include "runtime/server/purge.h"

enum { KEEP_BYTES = 1 << 20 };

/* ---- the disk's thread ---------------------------------------------------------------------- */

static void disk_finish(struct disk_thread *d, struct disk_slot *s, int fault)
{
    s->fault = fault;
    atomic_store_explicit(&s->state, SLOT_DONE, memory_order_release);
    uv_async_send(d->done);
}

static void disk_append(struct disk_thread *d)
{
    struct disk_slot *s = &d->append;
    int fault = 0;
    if (s->new_file || d->log_file.fd < 0) {
        clave__log_file_close(&d->log_file);
        fault = clave__log_file_create(&d->log_file, d->dir, s->first_zxid);
    }
    if (fault == 0)
        fault = clave__log_file_append(&d->log_file, clave__buf_bytes(&s->bytes),
                                       clave__buf_len(&s->bytes));
    d->failed = fault != 0;
    if (d->failed)
        clave__snapshot_file_abort(&d->snapshot_file);
    disk_finish(d, s, fault);
}

static void begin_snapshot(struct disk_thread *d)
{
    struct disk_slot *s = &d->snapshot;
    int fault = clave__snapshot_file_begin(&d->snapshot_file, d->dir, s->zxid,
                                           clave__buf_bytes(&s->bytes), clave__buf_len(&s->bytes));
    if (fault != 0)
        disk_finish(d, s, fault);
}

static void continue_snapshot(struct disk_thread *d)
{
    bool finished;
    int fault = clave__snapshot_file_step(&d->snapshot_file, &finished);
    if (finished)
        d->snapshot.purge_fault = clave__purge(d->dir);
    if (fault != 0)
        clave__snapshot_file_abort(&d->snapshot_file);
    if (finished || fault != 0)
        disk_finish(d, &d->snapshot, fault);
}

/* The log first: replies wait for it; nothing waits for a snapshot. */
static void *disk_main(void *arg)
{
    struct disk_thread *d = arg;
    for (;;) {
        bool snapping = d->snapshot_file.fd >= 0;
        if (snapping && uv_sem_trywait(&d->work) != 0) {
            continue_snapshot(d);
            continue;
        }
        if (!snapping)
            uv_sem_wait(&d->work);
        if (clave__disk_slot_state(&d->append) == SLOT_POSTED)
            disk_append(d);
        if (!snapping && !d->failed && clave__disk_slot_state(&d->snapshot) == SLOT_POSTED)
            begin_snapshot(d);
        if (atomic_load(&d->ending))
            break;
    }
    clave__snapshot_file_abort(&d->snapshot_file);
    clave__log_file_close(&d->log_file);
    return NULL;
}

/* ---- the loop's thread ---------------------------------------------------------------------- */

void clave__disk_slot_post(struct disk_thread *d, struct disk_slot *s)
{
    atomic_store_explicit(&s->state, SLOT_POSTED, memory_order_release);
    uv_sem_post(&d->work);
}

/* A snapshot is as large as the tree: do not keep its memory. */
void clave__disk_slot_take(struct disk_slot *s)
{
    clave__buf_clear(&s->bytes);
    clave__buf_trim(&s->bytes, KEEP_BYTES);
    atomic_store_explicit(&s->state, SLOT_FREE, memory_order_relaxed);
}

static int disk_start_thread(struct disk_thread *d)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&d->thread, NULL, disk_main, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err == 0)
        pthread_setname_np(d->thread, "clave-disk");
    return err;
}

clave_err clave__disk_thread_start(struct disk_thread *d, int dir, const struct clave_mem *mem,
                                   uv_async_t *done)
{
    d->dir = dir;
    d->log_file.fd = -1;
    d->snapshot_file.fd = -1;
    d->done = done;
    atomic_init(&d->ending, false);
    atomic_init(&d->append.state, SLOT_FREE);
    atomic_init(&d->snapshot.state, SLOT_FREE);
    clave__buf_init(&d->append.bytes, mem, SIZE_MAX / 2);
    clave__buf_init(&d->snapshot.bytes, mem, SIZE_MAX / 2);
    if (uv_sem_init(&d->work, 0) != 0)
        return CLAVE_EIO;
    if (disk_start_thread(d) == 0)
        return CLAVE_OK;
    uv_sem_destroy(&d->work);
    return CLAVE_EIO;
}

void clave__disk_thread_stop(struct disk_thread *d)
{
    atomic_store(&d->ending, true);
    uv_sem_post(&d->work);
    pthread_join(d->thread, NULL);
    uv_sem_destroy(&d->work);
    clave__buf_fini(&d->append.bytes);
    clave__buf_fini(&d->snapshot.bytes);
}
