/* snapshot_thread.c - writes snapshots piece by piece, and measures the disk and the process
 * (snapshot_thread.h). The server posts the jobs (runtime/server/server_loop.c), one at a time.
 * What must stay true: a file has its final name only once all of it is on the disk. */
#include "runtime/store/snapshot_thread.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/store/file_io.h"
#include "runtime/store/file_names.h"

/* ---- measuring ------------------------------------------------------------------------------- */

static int64_t process_count_open(void)
{
    /* not opendir, whose descriptor ThreadSanitizer does not recognise as a new one */
    int fd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    DIR *dir = fdopendir(fd);
    int64_t n = 0;
    if (!dir) {
        close(fd);
        return -1;
    }
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* without the descriptor used for looking */
}

static int64_t process_most_open(void)
{
    struct rlimit limit;
    bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return known ? (int64_t)limit.rlim_cur : -1;
}

static int64_t process_resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long long pages = -1;
    if (!f)
        return -1;
    if (fscanf(f, "%*d %lld", &pages) != 1)
        pages = -1;
    fclose(f);
    return pages >= 0 ? pages * sysconf(_SC_PAGESIZE) : -1;
}

struct process_files clave__process_measure(void)
{
    return (struct process_files){.open_files = process_count_open(),
                                  .max_files = process_most_open(),
                                  .resident_bytes = process_resident_bytes()};
}

/* ---- the thread ------------------------------------------------------------------------------ */

struct disk_space clave__disk_space_measure(int fd)
{
    struct statvfs v;
    if (fstatvfs(fd, &v) != 0)
        return (struct disk_space){-1, -1};
    return (struct disk_space){(int64_t)v.f_bavail * (int64_t)v.f_frsize,
                               (int64_t)v.f_blocks * (int64_t)v.f_frsize};
}

/* ---- the file -------------------------------------------------------------------------------- */

static int snapshot_file_begin(struct snapshot_file *f, int dir)
{
    int fd = openat(dir, FILE_UNFINISHED_SNAPSHOT, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    *f = (struct snapshot_file){.dir = dir, .fd = fd};
    return 0;
}

static int snapshot_file_append(struct snapshot_file *f, const void *p, size_t n)
{
    assert(f->fd >= 0);
    int err = clave__file_write(f->fd, p, n, f->end);
    if (err != 0)
        return err;
    /* Write back as we go; otherwise the fsync at the end would delay those of the log. */
    sync_file_range(f->fd, (off_t)f->end, (off_t)n, SYNC_FILE_RANGE_WRITE);
    f->end += (int64_t)n;
    return 0;
}

/* Everything was appended: renames the file to snapshot.<zxid>. */
static int snapshot_file_finish(struct snapshot_file *f, int64_t zxid)
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

/* Removes the file; does nothing after _finish. */
static void snapshot_file_abort(struct snapshot_file *f)
{
    if (f->fd < 0)
        return;
    close(f->fd);
    f->fd = -1;
    unlinkat(f->dir, FILE_UNFINISHED_SNAPSHOT, 0);
}

/* ---- snapshot thread ------------------------------------------------------------------------- */

static int snapshot_thread_write(struct snapshot_thread *t)
{
    const struct buf *bytes = &t->thread.bytes;
    int fault = 0;
    if (t->file.fd < 0)
        fault = snapshot_file_begin(&t->file, t->dir);
    if (fault == 0)
        fault = snapshot_file_append(&t->file, clave__buf_bytes(bytes), clave__buf_len(bytes));
    if (fault == 0 && t->job == SNAPSHOT_LAST)
        fault = snapshot_file_finish(&t->file, t->zxid);
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
        snapshot_file_abort(&t->file);
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
    snapshot_file_abort(&t->file);
}
