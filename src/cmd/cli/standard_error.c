/* standard_error.c - writes messages without blocking while a lock is held (see standard_error.h).
 * diag.c and all others that print messages write to its stream; the runner and the guardian say
 * when it must not block.
 *
 * What must stay true: text that had to be kept is written before any later text. */
#include "cmd/cli/standard_error.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clave/mem.h"

enum { STREAM_CAP = 32768, KEPT_CAP = 65536, LINGER_MS = 1000 };

static FILE *standard_error_stream; /* NULL: stderr itself */
static struct {
    size_t n;
    char text[KEPT_CAP];
} kept;

FILE *standard_error(void)
{
    return standard_error_stream ? standard_error_stream : stderr;
}

/* The environment variable JOURNAL_STREAM contains the device and inode of the stream; see
 * systemd.exec(5). */
bool standard_error_is_journal(void)
{
    const char *given = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    return given && sscanf(given, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

const char *standard_error_priority(int level)
{
    static const char *const priorities[] = {[CLAVE_LOG_ERROR] = "<3>",
                                             [CLAVE_LOG_WARN] = "<4>",
                                             [CLAVE_LOG_INFO] = "<6>",
                                             [CLAVE_LOG_DEBUG] = "<7>"};
    assert(level >= CLAVE_LOG_ERROR && level <= CLAVE_LOG_DEBUG);
    return standard_error_is_journal() ? priorities[level] : "";
}

/* Writes what can be written without blocking. That poll reports room is not enough, since other
 * processes write to the same place; and O_NONBLOCK must not be set on our descriptor, since its
 * file description is shared with the command. So a pipe or a terminal is opened a second time.
 * Where this is not possible, at most PIPE_BUF bytes are written, which fit in a pipe that has any
 * room. */
static ssize_t standard_error_write_now(const char *text, size_t n)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct stat is;
    if (fstat(STDERR_FILENO, &is) != 0)
        return -1;
    if (S_ISSOCK(is.st_mode))
        return send(STDERR_FILENO, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (S_ISREG(is.st_mode))
        return write(STDERR_FILENO, text, n);
    if (poll(&room, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    int own = -1;
    if (S_ISFIFO(is.st_mode) || isatty(STDERR_FILENO))
        own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0)
        return write(STDERR_FILENO, text, n < PIPE_BUF ? n : PIPE_BUF);
    ssize_t written = write(own, text, n);
    int error = errno;
    close(own);
    errno = error;
    return written;
}

/* false: some of the text is left. */
static bool standard_error_write_kept(void)
{
    while (kept.n > 0) {
        ssize_t n = standard_error_write_now(kept.text, kept.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        size_t done =
            n > 0 ? (size_t)n
                  : kept.n; /* after an error the text is dropped: nobody will ever read it */
        kept.n -= done;
        memmove(kept.text, kept.text + done, kept.n);
    }
    return true;
}

static ssize_t standard_error_put(void *unused, const char *text, size_t n)
{
    (void)unused;
    standard_error_write_kept();
    if (n <= sizeof kept.text - kept.n) {
        memcpy(kept.text + kept.n, text, n);
        kept.n += n;
        standard_error_write_kept();
    }
    return (ssize_t)n;
}

void standard_error_never_wait(void)
{
    static char buffer[STREAM_CAP]; /* for a whole message */
    const cookie_io_functions_t functions = {.write = standard_error_put};
    if (standard_error_stream)
        return;
    standard_error_stream = fopencookie(NULL, "w", functions);
    if (standard_error_stream)
        setvbuf(standard_error_stream, buffer, _IOFBF, sizeof buffer);
}

void standard_error_retry(void)
{
    FILE *out = standard_error();
    flockfile(out);
    standard_error_write_kept();
    funlockfile(out);
}

void standard_error_may_wait(void)
{
    if (!standard_error_stream)
        return;
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    while (!standard_error_write_kept() && poll(&room, 1, LINGER_MS) > 0)
        continue;
    kept.n = 0;
    fclose(standard_error_stream);
    standard_error_stream = NULL;
}
