/* snapshot_thread.c - writes the pieces of a snapshot (snapshot_thread.h); the server posts them.
 * A file has its final name only when all of it is on disk. */
#include "runtime/store/snapshot_thread.h"

static int snapshot_thread_write(struct snapshot_thread *t)
{
    const struct buf *bytes = &t->thread.bytes;
    int fault = 0;
    if (t->file.fd < 0)
        fault = clave__snapshot_file_begin(&t->file, t->dir);
    if (fault == 0)
        fault =
            clave__snapshot_file_append(&t->file, clave__buf_bytes(bytes), clave__buf_len(bytes));
    if (fault == 0 && t->job == SNAPSHOT_LAST)
        fault = clave__snapshot_file_finish(&t->file, t->zxid);
    if (fault == 0 && t->job == SNAPSHOT_LAST)
        t->purge_fault = clave__purge(t->dir, &t->purged);
    return fault;
}

static int snapshot_thread_job(struct disk_thread *thread)
{
    struct snapshot_thread *t = (struct snapshot_thread *)(void *)thread; /* its first member */
    bool writes = t->job == SNAPSHOT_PIECE || t->job == SNAPSHOT_LAST;
    int fault = writes ? snapshot_thread_write(t) : 0;
    if (fault != 0 || t->job == SNAPSHOT_ABANDON)
        clave__snapshot_file_abort(&t->file);
    if (t->job == SNAPSHOT_MEASURE)
        t->files = clave__process_measure();
    t->space = clave__disk_space_measure(t->dir);
    return fault;
}

clave_err clave__snapshot_thread_start(struct snapshot_thread *t, int dir,
                                       const struct clave_mem *mem, struct notifier *done)
{
    t->dir = dir;
    t->file.fd = -1;
    return clave__disk_thread_start(&t->thread, "clave-snapshot", snapshot_thread_job, mem, done);
}

void clave__snapshot_thread_stop(struct snapshot_thread *t)
{
    if (!t->thread.running)
        return;
    clave__disk_thread_stop(&t->thread);
    clave__snapshot_file_abort(&t->file);
}
