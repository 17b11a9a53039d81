/* channel.c - sockets, their states and their filters (channel.h). All calls of libuv that concern
 * a connected socket are here. */
#include "runtime/channel.h"

#include <assert.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"

enum { MAX_WRITE = 1 << 30, MAX_UNSENT = 64 * 1024 };

/* What the kernel has not taken at once. */
struct unsent {
    uv_write_t req;
    struct channel *channel;
    char bytes[];
};

/* ---- states --------------------------------------------------------------------------------- */

#define TO(state) (1u << CHANNEL_##state)
static const unsigned channel_moves[] = {
    [CHANNEL_CLOSED] = TO(CONNECTING),
    [CHANNEL_CONNECTING] = TO(SECURING) | TO(CLOSING),
    [CHANNEL_SECURING] = TO(OPEN) | TO(LINGERING) | TO(CLOSING),
    [CHANNEL_OPEN] = TO(LINGERING) | TO(CLOSING),
    [CHANNEL_LINGERING] = TO(CLOSING),
    [CHANNEL_CLOSING] = TO(CLOSED),
};
#undef TO

static void channel_enter(struct channel *ch, enum channel_state to)
{
    bool allowed = channel_moves[ch->state] & (1u << to);
    assert(allowed);
    (void)allowed;
    ch->state = to;
}

void clave__channel_init(struct channel *ch, const struct channel_ops *ops,
                         const struct clave_mem *mem)
{
    assert(ch->state == CHANNEL_CLOSED && ops->closing && ops->closed);
    ch->ops = ops;
    ch->mem = mem;
}

void clave__channel_add_filter(struct channel *ch, struct filter *f, const struct filter_ops *ops)
{
    assert(ch->state == CHANNEL_SECURING);
    struct filter **last = &ch->filter;
    while (*last)
        last = &(*last)->above;
    *last = f;
    *f = (struct filter){ops, ch, NULL};
}

void clave__channel_opened(struct channel *ch)
{
    channel_enter(ch, CHANNEL_OPEN);
}

void clave__channel_linger(struct channel *ch)
{
    channel_enter(ch, CHANNEL_LINGERING);
}

/* ---- closing -------------------------------------------------------------------------------- */

static void channel_on_closed(uv_handle_t *h)
{
    struct channel *ch = h->data;
    channel_enter(ch, CHANNEL_CLOSED);
    ch->ops->closed(ch);
}

static void channel_say_farewell(struct channel *ch)
{
    const void *p;
    struct filter *f = ch->filter;
    size_t n = f && f->ops->farewell && !ch->writing ? f->ops->farewell(f, &p) : 0;
    if (n == 0)
        return;
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);
    uv_try_write(&ch->socket.stream, &buf, 1);
}

void clave__channel_finish(struct channel *ch)
{
    assert(clave__channel_is_live(ch));
    uv_os_fd_t fd;
    channel_say_farewell(ch);
    if (ch->state != CHANNEL_LINGERING)
        channel_enter(ch, CHANNEL_LINGERING);
    if (uv_fileno(&ch->socket.handle, &fd) == 0)
        shutdown(fd, SHUT_WR);
}

size_t clave__channel_unsent(const struct channel *ch)
{
    assert(clave__channel_is_live(ch));
    uv_os_fd_t fd;
    int bytes;
    bool is_known = uv_fileno(&ch->socket.handle, &fd) == 0 && ioctl(fd, SIOCOUTQ, &bytes) == 0;
    return is_known && bytes > 0 ? (size_t)bytes : 0;
}

void clave__channel_close(struct channel *ch, int why)
{
    enum channel_state was = ch->state;
    struct filter *f;
    if (was == CHANNEL_CLOSED || was == CHANNEL_CLOSING)
        return;
    channel_say_farewell(ch);
    channel_enter(ch, CHANNEL_CLOSING);
    ch->reading = ch->writing = false;
    ch->ops->closing(ch, was, why);
    while ((f = ch->filter)) {
        ch->filter = f->above;
        f->ops->free(f);
    }
    uv_close(&ch->socket.handle, channel_on_closed);
}

/* ---- opening -------------------------------------------------------------------------------- */

static int channel_begin(struct channel *ch, uv_loop_t *loop, bool is_tcp)
{
    int err = is_tcp ? uv_tcp_init(loop, &ch->socket.tcp) : uv_pipe_init(loop, &ch->socket.pipe, 0);
    if (err != 0)
        return err;
    ch->socket.handle.data = ch;
    if (is_tcp)
        uv_tcp_nodelay(&ch->socket.tcp, 1); /* takes effect when there is a socket */
    channel_enter(ch, CHANNEL_CONNECTING);
    return 0;
}

static void channel_end_connecting(struct channel *ch, int err)
{
    assert(ch->state == CHANNEL_CONNECTING);
    if (err != 0)
        clave__channel_close(ch, err);
    else
        channel_enter(ch, CHANNEL_SECURING);
}

/* If the channel is closed in the meantime, this is called before _closed. */
static void channel_on_connect(uv_connect_t *req, int status)
{
    struct channel *ch = req->handle->data;
    clave__mem_free(ch->mem, req);
    if (ch->state != CHANNEL_CONNECTING)
        return;
    channel_end_connecting(ch, status);
    if (status == 0)
        ch->ops->connected(ch);
}

int clave__channel_connect(struct channel *ch, uv_loop_t *loop, const struct sockaddr *addr)
{
    const char *path =
        addr->sa_family == AF_UNIX ? ((const struct sockaddr_un *)addr)->sun_path : NULL;
    int err = channel_begin(ch, loop, !path);
    if (err != 0)
        return err;
    uv_connect_t *req = clave__mem_alloc(ch->mem, sizeof *req);
    if (!req)
        err = UV_ENOMEM;
    else if (path)
        uv_pipe_connect(req, &ch->socket.pipe, path, channel_on_connect);
    else
        err = uv_tcp_connect(req, &ch->socket.tcp, addr, channel_on_connect);
    if (err != 0) {
        clave__mem_free(ch->mem, req);
        clave__channel_close(ch, err);
    }
    return 0;
}

int clave__channel_adopt(struct channel *ch, uv_loop_t *loop, int fd, bool is_tcp)
{
    int begun = channel_begin(ch, loop, is_tcp), err = begun;
    if (begun == 0)
        err = is_tcp ? uv_tcp_open(&ch->socket.tcp, fd) : uv_pipe_open(&ch->socket.pipe, fd);
    if (err != 0)
        close(fd);
    if (begun == 0)
        channel_end_connecting(ch, err);
    return begun;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void channel_on_alloc(uv_handle_t *h, size_t suggested, uv_buf_t *buf)
{
    struct channel *ch = h->data;
    (void)suggested;
    *buf = ch->ops->buffer(ch);
}

static void channel_on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct channel *ch = stream->data;
    bool goes_on = n >= 0;
    ch->full_reads = n > 0 && (size_t)n == buf->len ? ch->full_reads + 1 : 0;
    if (n == UV_ENOBUFS) {
        clave__channel_set_reading(ch, false);
        return;
    }
    if (n > 0 && ch->state == CHANNEL_LINGERING)
        ch->thrown_away += (size_t)n;
    else if (n > 0)
        goes_on = clave__channel_input(ch, ch->filter, buf->base, (size_t)n);
    if (ch->ops->release)
        ch->ops->release(ch, buf->base); /* NULL if the end was found without a read */
    if (n < 0 && ch->ops->hung_up)
        ch->ops->hung_up(ch, (int)n);
    else if (!goes_on)
        clave__channel_close(ch, n < 0 ? (int)n : 0);
    else if (n > 0)
        ch->ops->received(ch);
}

void clave__channel_set_reading(struct channel *ch, bool wanted)
{
    assert(!wanted || clave__channel_is_live(ch));
    if (wanted == ch->reading)
        return;
    ch->reading = wanted;
    if (wanted)
        uv_read_start(&ch->socket.stream, channel_on_alloc, channel_on_read);
    else
        uv_read_stop(&ch->socket.stream);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void channel_on_written(uv_write_t *req, int status)
{
    struct unsent *u = req->data;
    struct channel *ch = u->channel;
    clave__mem_free(ch->mem, u);
    if (!clave__channel_is_live(ch)) /* it was closed in the meantime */
        return;
    ch->writing = false;
    if (status < 0)
        clave__channel_close(ch, status);
    else
        ch->ops->drained(ch);
}

/* Returns how many bytes were taken, or an error. They are copied, because the next call of what is
 * above may move them. */
static int channel_write_later(struct channel *ch, const void *p, size_t n)
{
    assert(!ch->writing && n > 0);
    n = n < MAX_UNSENT ? n : MAX_UNSENT;
    struct unsent *u = clave__mem_alloc(ch->mem, sizeof *u + n);
    if (!u)
        return UV_ENOMEM;
    u->req.data = u;
    u->channel = ch;
    memcpy(u->bytes, p, n);
    uv_buf_t buf = uv_buf_init(u->bytes, (unsigned)n);
    int err = uv_write(&u->req, &ch->socket.stream, &buf, 1, channel_on_written);
    if (err != 0) {
        clave__mem_free(ch->mem, u);
        return err;
    }
    ch->writing = true;
    return (int)n;
}

bool clave__channel_write(struct channel *ch)
{
    const void *p;
    if (!clave__channel_is_live(ch) || ch->writing)
        return false;
    size_t n = clave__channel_output(ch, ch->filter, &p);
    if (n == 0) {
        if (clave__channel_is_done(ch, ch->filter))
            clave__channel_close(ch, 0);
        return false;
    }
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)p, (unsigned)(n < MAX_WRITE ? n : MAX_WRITE));
    int taken = uv_try_write(&ch->socket.stream, &buf, 1);
    if (taken == UV_EAGAIN)
        taken = channel_write_later(ch, p, n);
    if (taken < 0) {
        clave__channel_close(ch, taken);
        return false;
    }
    clave__channel_sent(ch, ch->filter, (size_t)taken);
    return !ch->writing;
}
