/* parent_watch.c - see parent_watch.h. run_flags.c and ctdb_lock.c open a watch. The parent-death
 * signal (PR_SET_PDEATHSIG) would not do: it is sent when the thread that started us ends, not the
 * process, and the kernel forgets it when a set-user-ID program is executed. */
#include "cmd/run/parent_watch.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cmd/cli/diag.h"
#include "cmd/run/guardian/proctree.h"

enum { PARENT_WATCH_POLL_MS = 200 };
/* Passed from this program to itself when it executes another verb: the id of the process that
 * started the first one. */
static const char passed_on[] = "CLAVE_WITH_PARENT";

/* ---- without a pidfd ------------------------------------------------------------------------- */

/* Used without a pidfd. Without /proc, or where it hides other users' processes, only the number
 * can be checked. */
static bool parent_watch_number_has_ended(const struct parent_watch *w)
{
    assert(w->pid > 0 && w->fd < 0);
    struct proc now;
    if (proc_read(w->pid, &now))
        return now.dead || (w->start != 0 && proc_start_time(w->pid) != w->start);
    return kill(w->pid, 0) != 0 && errno == ESRCH;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The process id in the environment, 0: none. Removes the variable, so that the command does not
 * get it. */
static pid_t parent_watch_passed_on(void)
{
    const char *text = getenv(passed_on);
    pid_t pid = text ? (pid_t)atoi(text) : 0;
    unsetenv(passed_on);
    return pid;
}

static int parent_watch_refuse(const struct options *o, const char *path, const char *why)
{
    return diag_end(o, path, EXIT_REFUSED, "refused: %s, so that its end would go unnoticed%s", why,
                    o->verb->runs_command ? "; to name another process: --with-parent=PID" : "");
}

static int parent_watch_gone(const struct parent_watch *w, const struct options *o,
                             const char *path)
{
    char text[PARENT_WATCH_TEXT_CAP];
    return diag_end(o, path, EXIT_LOST, "not started: %s", parent_watch_text(w, text));
}

static int parent_watch_open_fd(struct parent_watch *w, struct options *o, const char *path)
{
    w->fd = (int)syscall(SYS_pidfd_open, w->pid, 0u);
    if (w->fd >= 0)
        return EXIT_OK;
    int error = errno;
    if (error == ESRCH)
        return parent_watch_gone(w, o, path);
    if (error == ENOSYS || error == EPERM) { /* before Linux 5.3, or a filter of system calls */
        w->start = proc_start_time(w->pid);
        return EXIT_OK;
    }
    if (error == EINVAL || error == ENOENT)
        return diag_usage(o, "--with-parent=%d is the number of a thread, not of a process",
                          (int)w->pid);
    return diag_end(o, path, EXIT_INTERNAL, "cannot watch process %d: %s", (int)w->pid,
                    strerror(error));
}

int parent_watch_open(struct parent_watch *w, struct options *o, const char *path, pid_t pid)
{
    pid_t first = parent_watch_passed_on();
    bool is_parent = pid == 0 && first == 0;
    if (pid == 0)
        pid = is_parent ? o->inherited.parent : first;
    *w = (struct parent_watch){.pid = pid, .fd = -1};
    if (pid == getpid())
        return diag_usage(o, "--with-parent=%d is the process of clave %s itself", (int)pid,
                          o->verb->name);
    if (pid <= 0)
        return parent_watch_refuse(o, path,
                                   "the process that started this one is in another PID namespace");
    if (pid == 1)
        return parent_watch_refuse(o, path,
                                   "process 1 started this one, or the process that did has ended");
    int code = parent_watch_open_fd(w, o, path);
    if (code != EXIT_OK)
        return code;
    /* The number may have been reused by another process before the pidfd was opened. That is
     * impossible as long as it is still our parent's. */
    bool other = is_parent && getppid() != pid;
    return other || parent_watch_has_ended(w) ? parent_watch_gone(w, o, path) : EXIT_OK;
}

void parent_watch_close(struct parent_watch *w)
{
    if (w->pid > 0 && w->fd >= 0)
        close(w->fd);
    *w = (struct parent_watch){.pid = 0, .fd = -1};
}

bool parent_watch_pass_on(const struct parent_watch *w)
{
    char text[16];
    if (w->pid == 0)
        return true;
    snprintf(text, sizeof text, "%d", (int)w->pid);
    return setenv(passed_on, text, 1) == 0;
}

/* ---- watching -------------------------------------------------------------------------------- */

int parent_watch_fd(const struct parent_watch *w)
{
    return w->pid > 0 ? w->fd : -1;
}

int parent_watch_pause_ms(const struct parent_watch *w)
{
    return w->pid > 0 && w->fd < 0 ? PARENT_WATCH_POLL_MS : -1;
}

bool parent_watch_has_ended(const struct parent_watch *w)
{
    struct pollfd end = {.fd = parent_watch_fd(w), .events = POLLIN};
    if (w->pid == 0)
        return false;
    return w->fd < 0 ? parent_watch_number_has_ended(w) : poll(&end, 1, 0) > 0;
}

const char *parent_watch_text(const struct parent_watch *w, char out[PARENT_WATCH_TEXT_CAP])
{
    assert(w->pid > 0);
    snprintf(out, PARENT_WATCH_TEXT_CAP, "process %d, with which this one is to end, has ended",
             (int)w->pid);
    return out;
}

/* ---- on a loop ------------------------------------------------------------------------------- */

static void parent_alarm_look(struct parent_alarm *a)
{
    if (!parent_watch_has_ended(a->watch))
        return;
    uv_timer_stop(&a->timer);
    if (a->watch->fd >= 0)
        uv_poll_stop(&a->poll);
    a->ended(a->arg);
}

static void parent_alarm_on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    parent_alarm_look(poll->data);
}

static void parent_alarm_on_timer(uv_timer_t *timer)
{
    parent_alarm_look(timer->data);
}

int parent_alarm_start(struct parent_alarm *a, uv_loop_t *loop)
{
    const struct parent_watch *w = a->watch;
    assert(w && a->ended);
    a->poll.data = a->timer.data = a;
    uv_timer_init(loop, &a->timer);
    if (w->pid > 0 && w->fd < 0)
        uv_timer_start(&a->timer, parent_alarm_on_timer, PARENT_WATCH_POLL_MS,
                       PARENT_WATCH_POLL_MS);
    if (parent_watch_fd(w) < 0)
        return 0;
    int err = uv_poll_init(loop, &a->poll, w->fd);
    return err != 0 ? err : uv_poll_start(&a->poll, UV_READABLE, parent_alarm_on_readable);
}

void parent_alarm_close(struct parent_alarm *a)
{
    uv_close((uv_handle_t *)&a->timer, NULL);
    if (parent_watch_fd(a->watch) >= 0)
        uv_close((uv_handle_t *)&a->poll, NULL);
}
