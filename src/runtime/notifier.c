/* notifier.c - an eventfd and a uv_poll_t on it (notifier.h). Sender and loop share nothing but the
 * kernel's counter, so neither ever waits for the other. */
#include "runtime/notifier.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void notifier_on_readable(uv_poll_t *poll, int status, int events)
{
    struct notifier *n = poll->data;
    eventfd_t times;
    (void)status;
    (void)events;
    /* Before the call, so that what is sent during it leads to another. */
    eventfd_read(n->fd, &times);
    n->notified(n->arg);
}

int clave__notifier_open(struct notifier *n, uv_loop_t *loop, void (*notified)(void *arg),
                         void *arg)
{
    n->notified = notified;
    n->arg = arg;
    n->poll.data = n;
    n->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (n->fd < 0)
        return errno;
    int err = -uv_poll_init(loop, &n->poll, n->fd);
    if (err != 0) {
        close(n->fd);
        n->fd = -1;
        return err;
    }
    return -uv_poll_start(&n->poll, UV_READABLE, notifier_on_readable);
}

void clave__notifier_send(struct notifier *n)
{
    assert(n->fd >= 0);
    /* Fails only if 2^64 - 2 were sent since the last read, and then it is readable. */
    eventfd_write(n->fd, 1);
}

void clave__notifier_close(struct notifier *n)
{
    if (n->fd < 0)
        return;
    uv_close((uv_handle_t *)&n->poll, NULL); /* from here on the loop does not look at the fd */
    close(n->fd);
    n->fd = -1;
}
