/* wakeup.h - tells who wants to know that the machine has slept. The loop's timers stand still
 * while it does, the time of sessions and holds (clave_now) goes on: after a sleep what is due is
 * looked at at once, not when the timers would have gone off.
 *
 * The kernel tells of it with a timer that is never due and is cancelled when the wall clock jumps
 * against CLOCK_MONOTONIC: it does so too when somebody sets the clock, and then nothing is due. */
#ifndef CLAVE_RUNTIME_WAKEUP_H
#define CLAVE_RUNTIME_WAKEUP_H

#include <uv.h>

#include "base/list.h"

struct sleeper {
    struct list link;
    void (*woke)(struct sleeper *s); /* on the loop's thread; may take any of them out */
};

struct wakeup {
    uv_poll_t poll;
    int fd;               /* -1: the kernel has none to give; all is told by the timers, later */
    struct list sleepers; /* of struct sleeper: put in and taken out by themselves */
    void (*closed)(void *arg);
    void *arg;
};

/* Does not keep the loop alive. */
void clave__wakeup_open(struct wakeup *w, uv_loop_t *loop);
/* `closed` (may be NULL) is called later, on the loop, or at once when there was no handle. */
void clave__wakeup_close(struct wakeup *w, void (*closed)(void *arg), void *arg);

#endif
