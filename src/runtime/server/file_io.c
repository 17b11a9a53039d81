/* file_io.c - a whole file read, and bytes written to a place in one (file_io.h). Recovery and
 * `clave data` read by it, log_file.c and snapshot_file.c write by it. Nothing is durable because
 * it was written: the callers sync. */
#include "runtime/server/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
