/* line_file.c - see line_file.h. Writing may block, so while clients are served it belongs on a
 * thread of its own. */
#include "runtime/line_file.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* How much is written to a pipe at once: what it accepts without blocking once poll() says that it
 * is writable. */
enum { PIPE_PIECE = 4096, WRITE_MS = 1000 };

/* The length of the next piece: whole lines, if at least one fits. */
static size_t line_file_piece(const uint8_t *p, size_t n)
{
    size_t end = n < PIPE_PIECE ? n : PIPE_PIECE, piece = end;
    while (piece > 0 && p[piece - 1] != '\n')
        piece--;
    return piece > 0 ? piece : end;
}

static ssize_t line_file_write_some(struct line_file *f, const uint8_t *p, size_t n)
{
    struct pollfd ready = {.fd = f->fd, .events = POLLOUT};
    if (poll(&ready, 1, WRITE_MS) == 0)
        errno = atomic_load(&f->waits) ? EINTR : ETIMEDOUT;
    else if (ready.revents & POLLOUT)
        return write(f->fd, p, line_file_piece(p, n));
    else if (ready.revents)
        errno = EPIPE;
    return -1;
}

/* Returns 0 or an errno; *done is the number of bytes written. */
static int line_file_write_bytes(struct line_file *f, const uint8_t *p, size_t n, size_t *done)
{
    struct stat st;
    bool file = fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode);
    *done = 0;
    while (*done < n) {
        const uint8_t *at = p + *done;
        ssize_t some = file ? write(f->fd, at, n - *done) : line_file_write_some(f, at, n - *done);
        if (some > 0) {
            *done += (size_t)some;
            f->torn = at[some - 1] != '\n';
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int clave__line_file_write(struct line_file *f, struct buf *lines)
{
    assert(f->fd >= 0);
    static const uint8_t end = '\n';
    size_t done = 0;
    int fault = 0;
    if (f->torn && clave__buf_len(lines) > 0)
        fault = line_file_write_bytes(f, &end, 1, &done);
    if (fault == 0) {
        fault = line_file_write_bytes(f, clave__buf_bytes(lines), clave__buf_len(lines), &done);
        clave__buf_consume(lines, done);
    }
    const uint8_t *at = clave__buf_bytes(lines);
    for (size_t n = clave__buf_len(lines); n > 0; n--)
        f->lost += *at++ == '\n';
    clave__buf_clear(lines);
    return fault;
}
