/* purge.c - removes the files that no recovery needs any more (purge.h); the disk's thread calls it
 * after each snapshot. Snapshots go before the logs that continue them: whatever a crash leaves can
 * be recovered. */
#include "runtime/server/purge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/server/file_names.h"

enum { KEEP_SNAPSHOTS = 3, PURGE_PIECE = 4 << 20 };

/* Does the file have no other name, and has nobody else opened it? A backup may read it still. Only
 * then does the kernel grant this lease, which ends with the descriptor. */
static bool purge_is_last(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_nlink == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
}

/* Gives the blocks of a removed file back piece by piece. All at once, the file system frees them,
 * and tells the disk, in one step that the log's next sync waits for. */
static void purge_shrink(int fd, int64_t size)
{
    while (size > PURGE_PIECE && ftruncate(fd, (off_t)(size -= PURGE_PIECE)) == 0 && fsync(fd) == 0)
        continue;
}

static int purge_one(int dir, enum file_kind kind, int64_t zxid, int64_t *bytes)
{
    char name[FILE_NAME_SIZE];
    struct stat st;
    clave__file_name(name, kind, zxid);
    int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    int err = fstatat(dir, name, &st, 0) == 0 && unlinkat(dir, name, 0) == 0 ? 0 : errno;
    if (err == 0) {
        *bytes += st.st_size;
        if (purge_is_last(fd))
            purge_shrink(fd, st.st_size);
    }
    if (fd >= 0)
        close(fd);
    return err == ENOENT ? 0 : err;
}

int clave__purge(int dir, struct purged *out)
{
    struct file_list snapshots, logs;
    *out = (struct purged){0};
    int err = clave__file_list_read(dir, FILE_SNAPSHOT, &snapshots);
    if (err != 0 || snapshots.n <= KEEP_SNAPSHOTS) {
        clave__file_list_free(&snapshots);
        return err;
    }
    size_t surplus = snapshots.n - KEEP_SNAPSHOTS;
    int64_t oldest = snapshots.zxid[surplus];
    for (size_t i = 0; i < surplus && err == 0; i++)
        err = purge_one(dir, FILE_SNAPSHOT, snapshots.zxid[i], &out->snapshots);
    clave__file_list_free(&snapshots);
    if (err == 0)
        err = clave__file_list_read(dir, FILE_LOG, &logs);
    if (err != 0)
        return err;
    for (size_t i = 0; i + 1 < logs.n && err == 0 && logs.zxid[i + 1] <= oldest; i++)
        err = purge_one(dir, FILE_LOG, logs.zxid[i], &out->logs);
    clave__file_list_free(&logs);
    return err;
}
