/* session_file.c - see session_file.h. */
#include "runtime/client/session_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/handed_session.h"

/* Without the advice of clave__start_error_errno, which is about a data directory. */
static clave_err file_fault(const struct fault *f, int number, const char *what, const char *file)
{
    return clave__start_error(f, clave__err_of_errno(number), "%s %s: %s", what, file,
                              strerror(number));
}

/* ---- resuming -------------------------------------------------------------------------------- */

enum { SESSION_FILE_MAX = 16 * 1024 * 1024 };

static clave_err resume_check(int fd, const char *file, struct stat *st, const struct fault *f)
{
    if (fstat(fd, st) != 0)
        return file_fault(f, errno, "cannot read the session in", file);
    if (!S_ISREG(st->st_mode))
        return clave__start_error(f, CLAVE_EINVAL, "%s is not a file, so no session can be resumed",
                                  file);
    if (st->st_uid != geteuid())
        return clave__start_error(f, CLAVE_EINVAL,
                                  "%s belongs to user %lu, not to this process's user %lu: a "
                                  "session is resumed only from a file of one's own",
                                  file, (unsigned long)st->st_uid, (unsigned long)geteuid());
    if (st->st_mode & (S_IRWXG | S_IRWXO))
        return clave__start_error(f, CLAVE_EINVAL,
                                  "%s has mode 0%03o: others may have read the session in it. It "
                                  "is resumed only with mode 0600",
                                  file, (unsigned)st->st_mode & 0777);
    if (st->st_size > SESSION_FILE_MAX)
        return clave__start_error(f, CLAVE_EINVAL, "%s has %lld bytes, more than any session: %d",
                                  file, (long long)st->st_size, (int)SESSION_FILE_MAX);
    return CLAVE_OK;
}

static clave_err resume_read(int fd, const char *file, size_t size, char **text,
                             const struct fault *f)
{
    size_t n = 0;
    ssize_t done = 1;
    *text = calloc(1, size + 1);
    if (!*text)
        return file_fault(f, ENOMEM, "cannot read the session in", file);
    while (n < size && done != 0) {
        done = read(fd, *text + n, size - n);
        if (done < 0 && errno != EINTR)
            return file_fault(f, errno, "cannot read the session in", file);
        n += done > 0 ? (size_t)done : 0;
    }
    const char *unfit = clave__handed_fault(*text);
    if (!unfit)
        return CLAVE_OK;
    return clave__start_error(f, CLAVE_EINVAL,
                              "%s: %s. If the file is of no use, remove it: without one, the lock "
                              "is queued for as usual",
                              file, unfit);
}

clave_err clave__session_file_read(const char *file, char **text, const struct fault *f)
{
    struct stat st = {0};
    *text = NULL;
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ELOOP)
        return clave__start_error(
            f, CLAVE_EINVAL, "%s is a symbolic link, which is not followed: name the file", file);
    if (fd < 0)
        return file_fault(f, errno, "cannot read the session in", file);
    clave_err err = resume_check(fd, file, &st, f);
    if (err == CLAVE_OK)
        err = resume_read(fd, file, (size_t)st.st_size, text, f);
    close(fd);
    return err;
}

clave_err clave__session_file_remove(const char *file, const struct fault *f)
{
    if (unlink(file) == 0)
        return CLAVE_OK;
    if (errno == ENOENT)
        return clave__start_error(f, CLAVE_EINVAL,
                                  "another process has just taken the session in %s", file);
    return file_fault(f, errno, "cannot remove the session's file", file);
}

/* ---- handing over ---------------------------------------------------------------------------- */

static clave_err hand_over_fault(const struct fault *f, const char *file, int number)
{
    clave_err err = file_fault(f, number, "cannot write the session to", file);
    return err == CLAVE_ENOMEM ? err : CLAVE_EIO;
}

clave_err clave__session_file_begin(struct session_file *o, const char *file, const struct fault *f)
{
    enum { ROOM = 64 * 1024 };
    struct stat st;
    size_t n = strlen(file) + sizeof ".tmp";
    *o = (struct session_file){.file = file, .temporary = malloc(n), .fd = -1};
    if (!o->temporary)
        return CLAVE_ENOMEM;
    snprintf(o->temporary, n, "%s.tmp", file);
    if (lstat(file, &st) == 0 && !S_ISREG(st.st_mode))
        return hand_over_fault(f, file, S_ISDIR(st.st_mode) ? EISDIR : EEXIST);
    (void)unlink(o->temporary); /* left by a process that was killed meanwhile */
    o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (o->fd < 0)
        return hand_over_fault(f, o->temporary, errno);
    int number = fchmod(o->fd, 0600) == 0 ? posix_fallocate(o->fd, 0, ROOM) : errno;
    bool cannot = number == EOPNOTSUPP || number == EINVAL;
    return number == 0 || cannot ? CLAVE_OK : hand_over_fault(f, o->temporary, number);
}

static int file_write(int fd, const char *text, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t done = write(fd, text + at, n - at);
        if (done < 0 && errno != EINTR)
            return errno;
        at += done > 0 ? (size_t)done : 0;
    }
    return ftruncate(fd, (off_t)n) == 0 ? 0 : errno;
}

clave_err clave__session_file_end(struct session_file *o, const char *text, const struct fault *f)
{
    clave_err err = CLAVE_OK;
    int number = text ? file_write(o->fd, text, strlen(text)) : 0;
    if (text && number == 0 && rename(o->temporary, o->file) != 0)
        number = errno;
    if (number != 0)
        err = hand_over_fault(f, o->file, number);
    if (o->fd >= 0)
        close(o->fd);
    if (o->fd >= 0 && (!text || number != 0))
        (void)unlink(o->temporary);
    free(o->temporary);
    return err;
}
