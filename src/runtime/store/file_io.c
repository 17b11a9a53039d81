/* file_io.c - reads whole files, writes bytes at a position in a file, and makes files and
 * directories durable (file_io.h). Recovery and `clave data` read with it; txn_log_thread.c and
 * snapshot_thread.c write with it. What clave__file_write has written is durable once the caller
 * has synced the file. Files are never mapped, because a sector that cannot be read would be a
 * SIGBUS rather than an error. */
#include "runtime/store/file_io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/store/file_names.h"

/* Reads n bytes. If the file has become shorter in the meantime, the rest stays zero. */
static int file_fill(int fd, struct file_content *c, size_t n)
{
    while (c->n < n) {
        ssize_t done = pread(fd, (uint8_t *)c->p + c->n, n - c->n, (off_t)c->n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        c->n = done > 0 ? c->n + (size_t)done : n;
    }
    return 0;
}

/* Does not use the heap, so that the memory of a big file is given back at once. */
static int file_fill_new(int fd, struct file_content *c, size_t n)
{
    if (n == 0)
        return 0;
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return errno;
    c->p = p;
    int err = file_fill(fd, c, n);
    if (err != 0)
        munmap(p, n);
    if (err != 0)
        c->p = NULL;
    return err;
}

int clave__file_read(int dir, const char *name, struct file_content *out)
{
    struct stat st;
    *out = (struct file_content){NULL, 0};
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int err = fstat(fd, &st) != 0 ? errno : 0;
    if (err == 0 && S_ISDIR(st.st_mode))
        err = EISDIR;
    if (err == 0)
        err = file_fill_new(fd, out, (size_t)st.st_size);
    close(fd);
    return err;
}

void clave__file_read_fault(const struct file_content *c, int number, char *text, size_t cap)
{
    if (number == EIO)
        snprintf(text, cap,
                 "%s at offset %zu (the disk has failed there: copy what can be read, and "
                 "restore a backup onto another disk)",
                 strerror(number), c->n);
    else
        snprintf(text, cap, "%s", strerror(number));
}

void clave__file_free(struct file_content *c)
{
    if (c->p)
        munmap(c->p, c->n);
    *c = (struct file_content){NULL, 0};
}

int clave__file_write(int fd, const void *p, size_t n, int64_t at)
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

int clave__file_save(int dir, const char *name, mode_t mode, const void *p, size_t n)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    int err = fd >= 0 ? clave__file_write(fd, p, n, 0) : errno;
    if (err == 0 && fsync(fd) != 0)
        err = errno;
    if (fd >= 0 && close(fd) != 0 && err == 0)
        err = errno;
    return err;
}

int clave__file_replace(int dir, const char *name, mode_t mode, const void *p, size_t n)
{
    char unfinished[NAME_MAX + 1];
    assert(strlen(name) + strlen(FILE_UNFINISHED_PREFIX) < sizeof unfinished);
    snprintf(unfinished, sizeof unfinished, FILE_UNFINISHED_PREFIX "%s", name);
    int err = clave__file_save(dir, unfinished, mode, p, n);
    if (err == 0 && renameat(dir, unfinished, dir, name) != 0)
        err = errno;
    if (err != 0)
        unlinkat(dir, unfinished, 0);
    else if (fsync(dir) != 0)
        err = errno;
    return err;
}

/* Makes the names in a directory durable. */
static int file_sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int err = fd >= 0 && fsync(fd) == 0 ? 0 : errno;
    if (fd >= 0)
        close(fd);
    return err;
}

/* Syncs the name of a directory even if it already exists, since whoever made it may have been
 * killed before syncing. But then it may belong to another user, and failing to do so is no
 * error. */
int clave__make_directory(const char *path, mode_t mode)
{
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/');
    bool made = mkdir(path, mode) == 0;
    if (!made && errno != EEXIST)
        return errno;
    snprintf(above, sizeof above, "%.*s", slash > path ? (int)(slash - path) : 1,
             slash ? path : ".");
    int err = file_sync_directory(above);
    return made ? err : 0;
}

int clave__make_path(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    int err = 0;
    for (size_t i = 1; i <= n && n < sizeof part && err == 0; i++) {
        if ((path[i] != '/' && path[i] != '\0') || path[i - 1] == '/')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        err = clave__make_directory(part, mode);
    }
    return n < sizeof part ? err : ENAMETOOLONG;
}
