/* file_names.c - the files of version-2 by their names (file_names.h): their kinds, sorted lists of
 * them, and the removal of those that no snapshot needs any more. Files with unknown names are left
 * alone. */
#include "runtime/store/file_names.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clave/uv.h"

/* ---- names ---------------------------------------------------------------------------------- */

/* Parses the zxid after "log." or "snapshot.", in lower-case hexadecimal without leading zeros, as
 * Apache writes it; *rest is what follows. */
static bool file_name_zxid(const char *s, int64_t *zxid, const char **rest)
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
    if (strncmp(name, "log.", 4) == 0 && file_name_zxid(name + 4, zxid, &rest) && *rest == '\0')
        return FILE_LOG;
    if (strncmp(name, "snapshot.", 9) == 0 && file_name_zxid(name + 9, zxid, &rest)) {
        if (*rest == '\0')
            return FILE_SNAPSHOT;
        if (strcmp(rest, ".gz") == 0 || strcmp(rest, ".snappy") == 0)
            return FILE_COMPRESSED;
    }
    if (strncmp(name, FILE_UNFINISHED_PREFIX, strlen(FILE_UNFINISHED_PREFIX)) == 0)
        return FILE_UNFINISHED;
    if (strcmp(name, "currentEpoch") == 0 || strcmp(name, "acceptedEpoch") == 0 ||
        strcmp(name, FILE_LONGEST_SESSION) == 0)
        return FILE_KNOWN;
    return FILE_UNKNOWN;
}

void clave__file_name(char out[FILE_NAME_SIZE], enum file_kind kind, int64_t zxid)
{
    assert(kind == FILE_LOG || kind == FILE_SNAPSHOT);
    snprintf(out, FILE_NAME_SIZE, "%s.%" PRIx64, kind == FILE_LOG ? "log" : "snapshot",
             (uint64_t)zxid);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static int file_list_by_zxid(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static int file_list_append(struct file_list *l, size_t *cap, int64_t zxid)
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

int clave__file_list_read(int dir, enum file_kind kind, struct file_list *out)
{
    size_t cap = 0;
    int err = 0;
    *out = (struct file_list){NULL, 0};
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* has a position of its own */
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
            err = file_list_append(out, &cap, zxid);
    if (err == 0)
        err = errno;
    closedir(d);
    if (err != 0)
        clave__file_list_free(out);
    else if (out->n > 0)
        qsort(out->zxid, out->n, sizeof *out->zxid, file_list_by_zxid);
    return err;
}

void clave__file_list_free(struct file_list *l)
{
    free(l->zxid);
    *l = (struct file_list){NULL, 0};
}

/* ---- removing old ones ----------------------------------------------------------------------- */

enum { KEEP_SNAPSHOTS = 3, PURGE_PIECE = 4 << 20 };
/* A server that is stopping waits for the purge. */
enum { PURGE_MOST_MS = 2000 };

struct purge {
    int dir;
    int64_t until;
};

/* True if the file has no other name and nobody else has it open, as a backup may. Only then does
 * the kernel grant this lease, which ends with the descriptor. A process that opens the file
 * nevertheless had resolved its name before; the signal that the lease then causes is ignored by
 * default. */
static bool purge_is_last(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_nlink == 0 && fcntl(fd, F_SETSIG, SIGURG) == 0 &&
           fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
}

/* Releases the blocks of a removed file piece by piece. If they were released all at once, the file
 * system would free them, and tell the disk, in a single step for which the log's next sync would
 * have to wait. The removal of the name is durable before, since otherwise a power cut could leave
 * part of the file. */
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
