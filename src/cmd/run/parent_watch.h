/* parent_watch.h - watches the process that a verb is to end with: the one that started it, or
 * another one that the user named. The runner, the guardian and `clave ctdb-lock` use it. */
#ifndef CLAVE_CMD_RUN_PARENT_WATCH_H
#define CLAVE_CMD_RUN_PARENT_WATCH_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "cmd/cli/cmd_options.h"

struct parent_watch {
    pid_t pid; /* 0: watches nothing */
    /* its pidfd; -1: the kernel has none for us, so /proc and the number are checked now and then
     */
    int fd;
    /* Used without a pidfd: the start time of the process, which tells it from a later process with
     * the same number; 0: not known. */
    unsigned long long start;
};

/* Begins to watch the process `pid` or, if that is 0, the one that started this process. Returns
 * EXIT_OK, or an exit code after a message; EXIT_LOST means that the process has ended already. */
int parent_watch_open(struct parent_watch *w, struct options *o, const char *path, pid_t pid);
void parent_watch_close(struct parent_watch *w);
bool parent_watch_has_ended(const struct parent_watch *w);
/* "process 4711, with which this one is to end, has ended" */
enum { PARENT_WATCH_TEXT_CAP = 96 };
const char *parent_watch_text(const struct parent_watch *w, char out[PARENT_WATCH_TEXT_CAP]);

/* A descriptor for poll(2), readable once the process has ended; -1: none. */
int parent_watch_fd(const struct parent_watch *w);
/* How many milliseconds poll(2) may wait before parent_watch_has_ended is asked again; -1:
 * forever. */
int parent_watch_pause_ms(const struct parent_watch *w);

/* For a program that this process is about to execute: parent_watch_open(..., 0) will watch the
 * same process there, whoever is the parent by then. false: no memory. */
bool parent_watch_pass_on(const struct parent_watch *w);

/* A watch on a libuv loop. Calls `ended` once, when the process has ended. */
struct parent_alarm {
    const struct parent_watch *watch;
    void (*ended)(void *arg);
    void *arg;
    uv_poll_t poll; /* if there is a pidfd; otherwise: */
    uv_timer_t timer;
};
/* Set `watch`, `ended` and `arg` first. Returns 0, or an error of libuv; call parent_alarm_close in
 * either case. */
int parent_alarm_start(struct parent_alarm *a, uv_loop_t *loop);
void parent_alarm_close(struct parent_alarm *a);

#endif
