/* parent_watch.h - the process that a verb is to end with: the one that started it, or another one
 * that the user named. Runner, guardian and `clave ctdb-lock` watch it. */
#ifndef CLAVE_CMD_RUN_PARENT_WATCH_H
#define CLAVE_CMD_RUN_PARENT_WATCH_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "cmd/cli/cmd_options.h"

struct parent_watch {
    pid_t pid; /* 0: none */
    int fd;    /* its pidfd; -1: the kernel gives none, and its number is looked at now and then */
    /* Then: when it was started, which tells it from a later process with its number; 0: not known.
     */
    unsigned long long start;
};

/* Begins to watch `pid`, or the process that started this one (0). EXIT_OK, or the exit code after
 * a message: EXIT_LOST if that process has ended already. */
int parent_watch_open(struct parent_watch *w, struct options *o, const char *path, pid_t pid);
void parent_watch_close(struct parent_watch *w);
bool parent_watch_has_ended(const struct parent_watch *w);
/* "process 4711, with which this one is to end, has ended" */
enum { PARENT_WATCH_TEXT_CAP = 96 };
const char *parent_watch_text(const struct parent_watch *w, char out[PARENT_WATCH_TEXT_CAP]);

/* For poll(2): readable when the process has ended; -1: none. */
int parent_watch_fd(const struct parent_watch *w);
/* How long poll(2) may wait before parent_watch_has_ended is asked again, in ms; -1: for ever. */
int parent_watch_pause_ms(const struct parent_watch *w);

/* For the program that this process executes instead of itself: parent_watch_open(..., 0) there
 * watches the same process, whoever is its parent by then. false: no memory. */
bool parent_watch_pass_on(const struct parent_watch *w);

/* On a libuv loop: tells once when the process has ended. */
struct parent_alarm {
    const struct parent_watch *watch;
    void (*ended)(void *arg);
    void *arg;
    uv_poll_t poll; /* with a pidfd; otherwise */
    uv_timer_t timer;
};
/* Zero, or an error of libuv; `watch`, `ended` and `arg` are set. Close it after an error too. */
int parent_alarm_start(struct parent_alarm *a, uv_loop_t *loop);
void parent_alarm_close(struct parent_alarm *a);

#endif
