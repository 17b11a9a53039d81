/* file_names.c - lists, writes and removes the files of version-2 (file_names.h). recover.c reads
 * by it, the disk's thread writes by it. A file gets its final name only when its contents are on
 * disk. */
#include "runtime/server/file_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/server.h"

enum { KEEP_SNAPSHOTS = 3, PIECE = 1 << 20 };
/* How far a log is extended: as much again as it has, within these bounds. */
enum { LEAST_ROOM = 64 * 1024, MOST_ROOM = 8 * 1024 * 1024 };

/* Neither "log." nor "snapshot.": Apache ignores it. */
static const char temporary[] = "unfinished.snapshot";
static const char temporary_log[] = "unfinished.log";

/* ---- names ---------------------------------------------------------------------------------- */

/* The zxid after "log." or "snapshot.", in lower-case hexadecimal without leading zeros as Apache
 * writes it; *rest is what follows. */
static bool read_zxid(const char *s, int64_t *zxid, const char **rest)
{
    uint64_t v = 0;
    size_t n = strspn(s, "0123456789abcdef");
    if (n == 0 || n > 16 || (n > 1 && *s == '0'))
        return false;
    for (size_t i = 0; i < n; i++)
        v = v << 4 | (uint64_t)(s[i] <= '9' ? s[i] - '0' : s[i] - 'a' + 10);
    *zxid = (int64_t)v;
    *rest = s + n;
    return *zxid >= 0 && *zxid < INT64_MAX;
}

enum file_kind clave__file_kind(const char *name, int64_t *zxid)
{
    const char *rest;
    *zxid = -1;
    if (strncmp(name, "log.", 4) == 0 && read_zxid(name + 4, zxid, &rest) && *rest == '\0')
        return FILE_LOG;
    if (strncmp(name, "snapshot.", 9) == 0 && read_zxid(name + 9, zxid, &rest)) {
        if (*rest == '\0')
            return FILE_SNAPSHOT;
        if (strcmp(rest, ".gz") == 0 || strcmp(rest, ".snappy") == 0)
            return FILE_COMPRESSED;
    }
    if (strcmp(name, temporary) == 0 || strcmp(name, temporary_log) == 0)
        return FILE_TEMPORARY;
    if (strcmp(name, "currentEpoch") == 0 || strcmp(name, "acceptedEpoch") == 0)
        return FILE_KNOWN;
    return FILE_UNKNOWN;
}

void clave__file_name(char out[FILE_NAME_SIZE], enum file_kind kind, int64_t zxid)
{
    snprintf(out, FILE_NAME_SIZE, "%s.%" PRIx64, kind == FILE_LOG ? "log" : "snapshot",
             (uint64_t)zxid);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int by_zxid(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int append_zxid(struct file_list *l, size_t *cap, int64_t zxid)
{
    if (l->n == *cap) {
        size_t grown = *cap ? *cap * 2 : 16;
        int64_t *p = realloc(l->zxid, grown * sizeof *p);
        if (!p)
            return ENOMEM;
        l->zxid = p;
        *cap = grown;
    }
    l->zxid[l->n++] = zxid;
    return 0;
}

int clave__files_list(int dir, enum file_kind kind, struct file_list *out)
{
    size_t cap = 0;
    int err = 0;
    *out = (struct file_list){NULL, 0};
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* its own position */
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        err = errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    const struct dirent *e;
    int64_t zxid;
    errno = 0;
    while (err == 0 && (e = readdir(d)))
        if (clave__file_kind(e->d_name, &zxid) == kind)
            err = append_zxid(out, &cap, zxid);
    if (err == 0)
        err = errno;
    closedir(d);
    if (err != 0)
        clave__files_free(out);
    else if (out->n > 0)
        qsort(out->zxid, out->n, sizeof *out->zxid, by_zxid);
    return err;
}

void clave__files_free(struct file_list *l)
{
    free(l->zxid);
    *l = (struct file_list){NULL, 0};
}

/* ---- writing -------------------------------------------------------------------------------- */

int clave__file_map(int dir, const char *name, struct file_content *out)
{
    struct stat st;
    int err = 0;
    *out = (struct file_content){NULL, 0};
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fstat(fd, &st) != 0) {
        err = errno;
    } else if (S_ISDIR(st.st_mode)) {
        err = EISDIR; /* mapping one fails with ENODEV */
    } else if (st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            err = errno;
        else
            *out = (struct file_content){p, (size_t)st.st_size};
    }
    close(fd);
    return err;
}

void clave__file_unmap(struct file_content *c)
{
    if (c->p)
        munmap(c->p, c->n);
    *c = (struct file_content){NULL, 0};
}

static int write_at(int fd, const void *p, size_t n, int64_t at)
{
    const uint8_t *bytes = p;
    while (n > 0) {
        ssize_t done = pwrite(fd, bytes, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        if (done == 0)
            return ENOSPC;
        bytes += done;
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

/* ---- logs ----------------------------------------------------------------------------------- */

int clave__logfile_create(struct log_writer *w, int dir, int64_t first_zxid)
{
    char name[FILE_NAME_SIZE];
    uint8_t header[SERVER_LOG_HEADER];
    clave__file_name(name, FILE_LOG, first_zxid);
    clave__server_log_header(header);
    w->fd = openat(dir, temporary_log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (w->fd < 0)
        return errno;
    w->end = w->room = sizeof header;
    int err = write_at(w->fd, header, sizeof header, 0);
    if (err == 0 &&
        (fdatasync(w->fd) != 0 || renameat(dir, temporary_log, dir, name) != 0 || fsync(dir) != 0))
        err = errno;
    if (err != 0) {
        close(w->fd);
        w->fd = -1;
    }
    return err;
}

/* Makes room for n bytes and some more. Where that is impossible, on a full disk or a file system
 * without fallocate, the file grows as it is written. */
static void make_room(struct log_writer *w, size_t n)
{
    int64_t need = w->end + (int64_t)n;
    if (w->room == 0 || need <= w->room)
        return;
    int64_t more = need < LEAST_ROOM ? LEAST_ROOM : need > MOST_ROOM ? MOST_ROOM : need;
    if (fallocate(w->fd, 0, (off_t)w->room, (off_t)(need + more - w->room)) == 0)
        w->room = need + more;
    else
        w->room = 0;
}

int clave__logfile_append(struct log_writer *w, const void *p, size_t n)
{
    make_room(w, n);
    int err = write_at(w->fd, p, n, w->end);
    if (err == 0 && fdatasync(w->fd) != 0)
        err = errno;
    if (err == 0)
        w->end += (int64_t)n;
    else /* _close cuts it off: it may be in the page cache and never reach the disk */
        w->room = INT64_MAX;
    return err;
}

void clave__logfile_close(struct log_writer *w)
{
    if (w->fd < 0)
        return;
    /* A failure is not reported: readers skip the zeros. */
    if (w->room != w->end && ftruncate(w->fd, (off_t)w->end) != 0)
        w->room = 0;
    close(w->fd);
    w->fd = -1;
}

/* ---- snapshots ------------------------------------------------------------------------------ */

int clave__snapshot_begin(struct snapshot_writer *w, int dir, int64_t zxid, const void *p, size_t n)
{
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    *w = (struct snapshot_writer){.dir = dir, .fd = fd, .zxid = zxid, .p = p, .n = n};
    return 0;
}

static int data_files_finish(struct snapshot_writer *w)
{
    char name[FILE_NAME_SIZE];
    clave__file_name(name, FILE_SNAPSHOT, w->zxid);
    if (fsync(w->fd) != 0 || renameat(w->dir, temporary, w->dir, name) != 0 || fsync(w->dir) != 0)
        return errno;
    close(w->fd);
    w->fd = -1;
    return 0;
}

int clave__snapshot_step(struct snapshot_writer *w, bool *finished)
{
    size_t left = w->n - w->done;
    size_t piece = left < PIECE ? left : PIECE;
    int err = write_at(w->fd, w->p + w->done, piece, (int64_t)w->done);
    *finished = false;
    if (err != 0)
        return err;
    /* Written back as we go: otherwise the fsync at the end would delay that of the log after it.
     */
    sync_file_range(w->fd, (off_t)w->done, (off_t)piece, SYNC_FILE_RANGE_WRITE);
    w->done += piece;
    if (w->done < w->n)
        return 0;
    err = data_files_finish(w);
    *finished = err == 0;
    return err;
}

void clave__snapshot_abort(struct snapshot_writer *w)
{
    if (w->fd < 0)
        return;
    close(w->fd);
    w->fd = -1;
    unlinkat(w->dir, temporary, 0);
}

/* ---- purging -----------------------------------------------------------------------------------
 */

static int remove_file(int dir, enum file_kind kind, int64_t zxid)
{
    char name[FILE_NAME_SIZE];
    clave__file_name(name, kind, zxid);
    return unlinkat(dir, name, 0) == 0 || errno == ENOENT ? 0 : errno;
}

int clave__files_purge(int dir)
{
    struct file_list snapshots, logs;
    int err = clave__files_list(dir, FILE_SNAPSHOT, &snapshots);
    if (err != 0 || snapshots.n <= KEEP_SNAPSHOTS) {
        clave__files_free(&snapshots);
        return err;
    }
    size_t surplus = snapshots.n - KEEP_SNAPSHOTS;
    int64_t oldest = snapshots.zxid[surplus];
    for (size_t i = 0; i < surplus && err == 0; i++)
        err = remove_file(dir, FILE_SNAPSHOT, snapshots.zxid[i]);
    clave__files_free(&snapshots);
    if (err == 0)
        err = clave__files_list(dir, FILE_LOG, &logs);
    if (err != 0)
        return err;
    for (size_t i = 0; i + 1 < logs.n && err == 0 && logs.zxid[i + 1] <= oldest; i++)
        err = remove_file(dir, FILE_LOG, logs.zxid[i]);
    clave__files_free(&logs);
    return err;
}
