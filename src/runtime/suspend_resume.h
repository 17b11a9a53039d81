/* suspend_resume.h - notifies clients that the machine has slept. The loop's timers stand still
 * meanwhile, but the time of sessions and holds (clave_now) goes on: after a sleep, what is due is
 * handled at once instead of when the timers fire.
 *
 * The kernel reports it by a timer that never fires and is cancelled when the wall clock jumps
 * against CLOCK_MONOTONIC. That happens too when the clock is set, and then nothing is due. */
#ifndef CLAVE_RUNTIME_SUSPEND_RESUME_H
#define CLAVE_RUNTIME_SUSPEND_RESUME_H

#include <uv.h>

#include "base/list.h"

struct sleeper {
    struct list link;
    void (*woke)(struct sleeper *s); /* runs on the loop's thread; may remove any of them */
};

struct wakeup {
    uv_poll_t poll;
    /* -1: the kernel has none to give; timers then notice everything, later */
    int fd;
    struct list sleepers; /* of struct sleeper, which are added and removed by their owners */
    void (*closed)(void *arg);
    void *arg;
};

/* Does not keep the loop alive. */
void clave__wakeup_open(struct wakeup *w, uv_loop_t *loop);
/* `closed` (may be NULL) is called later, on the loop, or at once if there was no handle. */
void clave__wakeup_close(struct wakeup *w, void (*closed)(void *arg), void *arg);

#endif
