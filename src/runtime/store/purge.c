/* purge.c - removes the files that no recovery needs any more (purge.h); the disk's thread calls it
 * after each snapshot. Snapshots go before the logs that continue them: whatever a crash leaves can
 * be recovered. */
#include "runtime/store/purge.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clave/uv.h"
#include "runtime/store/file_names.h"

enum { KEEP_SNAPSHOTS = 3, PURGE_PIECE = 4 << 20 };
/* A server that stops waits for it. */
enum { PURGE_MOST_MS = 2000 };

struct purge {
    int dir;
    int64_t until;
};

/* Does the file have no other name, and has nobody else opened it? A backup may read it still. Only
 * then does the kernel grant this lease, which ends with the descriptor. Who opens the file all the
 * same has resolved its name before; the signal that tells of it is one that nobody dies of. */
static bool purge_is_last(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_nlink == 0 && fcntl(fd, F_SETSIG, SIGURG) == 0 &&
           fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
}

/* Gives the blocks of a removed file back piece by piece. All at once, the file system frees them,
 * and tells the disk, in one step that the log's next sync waits for. That it has no name any more
 * is durable before, or a power cut could leave part of it. */
static void purge_shrink(const struct purge *p, int fd, int64_t size)
{
    if (size <= PURGE_PIECE || !purge_is_last(fd) || fsync(p->dir) != 0)
        return;
    while (size > PURGE_PIECE && fcntl(fd, F_GETLEASE) == F_WRLCK && clave_now() < p->until &&
           ftruncate(fd, (off_t)(size -= PURGE_PIECE)) == 0 && fsync(fd) == 0)
        continue;
}

static int purge_one(const struct purge *p, enum file_kind kind, int64_t zxid, int64_t *bytes)
{
    char name[FILE_NAME_SIZE];
    struct stat st;
    clave__file_name(name, kind, zxid);
    int fd = openat(p->dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int err = fstatat(p->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && unlinkat(p->dir, name, 0) == 0
                  ? 0
                  : errno;
    if (err == 0) {
        *bytes += st.st_size;
        purge_shrink(p, fd, st.st_size);
    }
    if (fd >= 0)
        close(fd);
    return err == ENOENT ? 0 : err;
}

int clave__purge(int dir, struct purged *out)
{
    const struct purge p = {dir, clave_now() + PURGE_MOST_MS};
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
        err = purge_one(&p, FILE_SNAPSHOT, snapshots.zxid[i], &out->snapshots);
    clave__file_list_free(&snapshots);
    if (err == 0)
        err = clave__file_list_read(dir, FILE_LOG, &logs);
    if (err != 0)
        return err;
    for (size_t i = 0; i + 1 < logs.n && err == 0 && logs.zxid[i + 1] <= oldest; i++)
        err = purge_one(&p, FILE_LOG, logs.zxid[i], &out->logs);
    clave__file_list_free(&logs);
    return err;
}
