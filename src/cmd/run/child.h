/* child.h - the command of `clave lock` or `clave elect`, from its start through the guardian until
 * nothing is left of it. runner.c calls this; what it has to report goes through runner_events. */
#ifndef CLAVE_CMD_RUN_CHILD_H
#define CLAVE_CMD_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "clave/err.h"

struct runner;

/* The terminal, which the command borrows. */
struct foreground_group {
    int fd;     /* -1: this process has none */
    pid_t lent; /* the group that it is lent to; 0: none */
};

/* Milliseconds, derived from the session timeout that the server granted: from SIGTERM to SIGKILL,
 * and from SIGKILL to the hold deadline. */
int64_t child_grace(const struct runner *r);
int64_t child_lead(const struct runner *r);
/* Before the loop: finds the terminal of this process. */
void child_open_terminal(struct runner *r);
/* The lock is held: starts the command. */
void child_begin(struct runner *r);
/* At the end of every pass over the client: the deadline may have moved. */
void child_publish(struct runner *r);
void child_lost(struct runner *r, clave_err why);
/* Another participant asks for the lock, or the leader to resign: ends the command, in time. */
void child_asked(struct runner *r);
void child_on_signal(struct runner *r, int sig);
/* SIGCHLD: waits for whatever child has ended. There are hooks, orphans that come to a sub-reaper,
 * and any orphan at all to process 1 of a container. true: this process has no child. */
bool child_reap(struct runner *r);
/* SIGCONT: continues the command too, if the lock allows it. */
void child_on_continued(struct runner *r);
void child_on_reports(uv_poll_t *poll, int status, int events);
void child_on_watchdog(uv_timer_t *timer);

#endif
