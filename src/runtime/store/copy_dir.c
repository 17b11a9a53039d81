/* copy_dir.c - makes a data directory from the bytes of another one (datadir.h), for `clave data
 * backup` and `clave data restore`. Each file is synced before the directory gets its name. */
#include "runtime/store/datadir.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/store/file_io.h"

static clave_err copy_dir_fault(const struct copy_dir *c, int number, const char *what,
                                const char *name, const struct fault *f)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s%s%s", c->to.path, DATADIR_COPY, name ? "/" : "",
             name ? name : "");
    return clave__start_error_errno(f, number, what, path);
}

/* Removes everything in the directory. Returns 0 or an errno. */
static int copy_dir_empty(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        int err = errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    const struct dirent *e;
    int err = 0;
    while (err == 0 && (errno = 0, e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(dir, e->d_name, 0) != 0)
            err = errno;
    err = err != 0 ? err : errno; /* from readdir */
    closedir(d);
    return err;
}

/* Opens the directory for the copy. A copy that was killed has left its part there. */
static int copy_dir_open(struct copy_dir *c)
{
    c->top = open(c->to.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->top < 0 || (mkdirat(c->top, DATADIR_COPY, 0700) != 0 && errno != EEXIST))
        return errno;
    c->to.dir = openat(c->top, DATADIR_COPY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return c->to.dir >= 0 ? copy_dir_empty(c->to.dir) : errno;
}

clave_err clave__copy_dir_begin(struct copy_dir *c, const char *path, const struct log *log,
                                const struct fault *f)
{
    *c = (struct copy_dir){.to = {.lock = -1, .dir = -1}, .top = -1};
    clave_err err = clave__datadir_open_empty(&c->to, path, log, f);
    if (err != CLAVE_OK)
        return err;
    int number = copy_dir_open(c);
    return number == 0 ? CLAVE_OK : copy_dir_fault(c, number, "cannot create", NULL, f);
}

clave_err clave__copy_dir_put(struct copy_dir *c, const char *name, const void *p, size_t n,
                              const struct fault *f)
{
    assert(c->to.dir >= 0 && c->top >= 0);
    int number = clave__file_save(c->to.dir, name, 0600, p, n);
    if (number != 0)
        return copy_dir_fault(c, number, "cannot write", name, f);
    c->files++;
    c->bytes += (int64_t)n;
    return CLAVE_OK;
}

clave_err clave__copy_dir_clear(struct copy_dir *c, const struct fault *f)
{
    c->files = 0;
    c->bytes = 0;
    int number = copy_dir_empty(c->to.dir);
    return number == 0 ? CLAVE_OK : copy_dir_fault(c, number, "cannot empty", NULL, f);
}

clave_err clave__copy_dir_finish(struct copy_dir *c, const struct fault *f)
{
    assert(c->to.dir >= 0 && c->top >= 0);
    bool named = fsync(c->to.dir) == 0 && renameat(c->top, DATADIR_COPY, c->top, "version-2") == 0;
    bool synced = named && fsync(c->top) == 0;
    int number = synced ? 0 : errno;
    /* Under that name, _end must not empty it: a server would take it for a new directory. */
    if (synced || (named && renameat(c->top, "version-2", c->top, DATADIR_COPY) != 0)) {
        close(c->top);
        c->top = -1;
    }
    return synced ? CLAVE_OK : copy_dir_fault(c, number, "cannot finish", NULL, f);
}

void clave__copy_dir_end(struct copy_dir *c)
{
    if (c->top >= 0) {
        if (c->to.dir >= 0 && copy_dir_empty(c->to.dir) == 0)
            unlinkat(c->top, DATADIR_COPY, AT_REMOVEDIR);
        close(c->top);
        c->top = -1;
    }
    clave__datadir_close(&c->to);
}
