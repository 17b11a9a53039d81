/* snapshot_file.c - writes one snapshot (snapshot_file.h); the disk's thread and recovery call it.
 * The file gets its name when all of it is on the disk. */
#include "runtime/server/snapshot_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/server/file_io.h"
#include "runtime/server/file_names.h"

enum { PIECE = 1 << 20 };

int clave__snapshot_file_begin(struct snapshot_file *f, int dir, int64_t zxid, const void *p,
                               size_t n)
{
    int fd = openat(dir, FILE_UNFINISHED_SNAPSHOT, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    *f = (struct snapshot_file){.dir = dir, .fd = fd, .zxid = zxid, .p = p, .n = n};
    return 0;
}

static int snapshot_file_finish(struct snapshot_file *f)
{
    char name[FILE_NAME_SIZE];
    clave__file_name(name, FILE_SNAPSHOT, f->zxid);
    if (fsync(f->fd) != 0 || renameat(f->dir, FILE_UNFINISHED_SNAPSHOT, f->dir, name) != 0 ||
        fsync(f->dir) != 0)
        return errno;
    close(f->fd);
    f->fd = -1;
    return 0;
}

int clave__snapshot_file_step(struct snapshot_file *f, bool *finished)
{
    size_t left = f->n - f->done;
    size_t piece = left < PIECE ? left : PIECE;
    int err = clave__file_write(f->fd, f->p + f->done, piece, (int64_t)f->done);
    *finished = false;
    if (err != 0)
        return err;
    /* Written back as we go: otherwise the fsync at the end would delay that of the log after it.
     */
    sync_file_range(f->fd, (off_t)f->done, (off_t)piece, SYNC_FILE_RANGE_WRITE);
    f->done += piece;
    if (f->done < f->n)
        return 0;
    err = snapshot_file_finish(f);
    *finished = err == 0;
    return err;
}

void clave__snapshot_file_abort(struct snapshot_file *f)
{
    if (f->fd < 0)
        return;
    close(f->fd);
    f->fd = -1;
    unlinkat(f->dir, FILE_UNFINISHED_SNAPSHOT, 0);
}
