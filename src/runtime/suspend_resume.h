/* suspend_resume.h - tells clients that the machine has slept. The loop's timers stand still during
 * a sleep, while the time of sessions and holds (clave_now) goes on; so after a sleep, what is due
 * is handled at once instead of when the timers fire.
 *
 * The kernel reports a sleep through a timer that never fires, and that it cancels when the wall
 * clock jumps relative to CLOCK_MONOTONIC. That also happens when the clock is set, but then
 * nothing is due. */
#ifndef CLAVE_RUNTIME_SUSPEND_RESUME_H
#define CLAVE_RUNTIME_SUSPEND_RESUME_H

#include <uv.h>

#include "base/list.h"

struct sleeper {
    struct list link;
    void (*woke)(struct sleeper *s); /* called on the loop's thread; may remove any sleeper */
};

struct wakeup {
    uv_poll_t poll;
    /* -1: the kernel has none to give; then timers notice everything, only later */
    int fd;
    struct list sleepers; /* of struct sleeper, which their owners add and remove */
    void (*closed)(void *arg);
    void *arg;
};

/* Starts watching; does not keep the loop alive. */
void clave__wakeup_open(struct wakeup *w, uv_loop_t *loop);
/* `closed` (may be NULL) is called later, on the loop, or at once if there was no handle. */
void clave__wakeup_close(struct wakeup *w, void (*closed)(void *arg), void *arg);

#endif
