/* suspend_resume.c - a cancelable timerfd per loop (suspend_resume.h). uv_client.c adds one sleeper
 * for each client. */
#include "runtime/suspend_resume.h"

#include <sys/timerfd.h>
#include <unistd.h>

static void suspend_resume_on_jump(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    struct wakeup *w = poll->data;
    struct list due, *e;
    uint64_t times;
    ssize_t n =
        read(w->fd, &times,
             sizeof times); /* this returns ECANCELED, after which the timer is quiet again */
    (void)n;
    list_init(&due);
    list_splice(&due, &w->sleepers);
    while ((e = list_pop_front(&due))) {
        struct sleeper *s = LIST_ENTRY(e, struct sleeper, link);
        list_push_back(&w->sleepers, e);
        s->woke(s);
    }
}

void clave__wakeup_open(struct wakeup *w, uv_loop_t *loop)
{
    list_init(&w->sleepers);
    w->poll.data = w;
    w->fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (w->fd < 0)
        return;
    /* so far in the future that only a jump of the clock ends it */
    const struct itimerspec never = {.it_value.tv_sec = INT32_MAX * (int64_t)64};
    const int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
    if (timerfd_settime(w->fd, flags, &never, NULL) != 0 ||
        uv_poll_init(loop, &w->poll, w->fd) != 0) {
        close(w->fd);
        w->fd = -1;
        return;
    }
    uv_poll_start(&w->poll, UV_READABLE, suspend_resume_on_jump);
    uv_unref((uv_handle_t *)&w->poll);
}

static void suspend_resume_on_closed(uv_handle_t *h)
{
    struct wakeup *w = h->data;
    close(w->fd);
    if (w->closed)
        w->closed(w->arg);
}

void clave__wakeup_close(struct wakeup *w, void (*closed)(void *arg), void *arg)
{
    w->closed = closed;
    w->arg = arg;
    if (w->fd >= 0)
        uv_close((uv_handle_t *)&w->poll, suspend_resume_on_closed);
    else if (closed)
        closed(arg);
}
