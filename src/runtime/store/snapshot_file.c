/* snapshot_file.c - writes one snapshot piece by piece (snapshot_file.h); snapshot_thread.c calls
 * it. The file gets its name when all of it is on the disk. */
#include "runtime/store/snapshot_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "runtime/store/file_io.h"
#include "runtime/store/file_names.h"

int clave__snapshot_file_begin(struct snapshot_file *f, int dir)
{
    int fd = openat(dir, FILE_UNFINISHED_SNAPSHOT, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    *f = (struct snapshot_file){.dir = dir, .fd = fd};
    return 0;
}

int clave__snapshot_file_append(struct snapshot_file *f, const void *p, size_t n)
{
    assert(f->fd >= 0);
    int err = clave__file_write(f->fd, p, n, f->end);
    if (err != 0)
        return err;
    /* Written back as we go: otherwise the fsync at the end would delay those of the log. */
    sync_file_range(f->fd, (off_t)f->end, (off_t)n, SYNC_FILE_RANGE_WRITE);
    f->end += (int64_t)n;
    return 0;
}

int clave__snapshot_file_finish(struct snapshot_file *f, int64_t zxid)
{
    assert(f->fd >= 0);
    char name[FILE_NAME_SIZE];
    clave__file_name(name, FILE_SNAPSHOT, zxid);
    if (fsync(f->fd) != 0 || renameat(f->dir, FILE_UNFINISHED_SNAPSHOT, f->dir, name) != 0 ||
        fsync(f->dir) != 0)
        return errno;
    close(f->fd);
    f->fd = -1;
    return 0;
}

void clave__snapshot_file_abort(struct snapshot_file *f)
{
    if (f->fd < 0)
        return;
    close(f->fd);
    f->fd = -1;
    unlinkat(f->dir, FILE_UNFINISHED_SNAPSHOT, 0);
}
