/* child.h - the command of `clave lock` and `clave elect`, from its start through the guardian
 * until no process of it is left. runner.c calls these functions; child.c reports back through
 * struct runner_events. */
#ifndef CLAVE_CMD_RUN_CHILD_H
#define CLAVE_CMD_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "clave/err.h"

struct fence_target;
struct runner;

/* The controlling terminal, which is lent to the command while it needs it. */
struct foreground_group {
    int fd;     /* -1: this process has no terminal */
    pid_t lent; /* the process group that has it; 0: not lent */
};

/* Both times are in milliseconds, and derived from the session timeout that the server granted:
 * child_grace is the time from SIGTERM to SIGKILL, child_lead the time from SIGKILL to the hold
 * deadline. */
int64_t child_grace(const struct runner *r);
int64_t child_lead(const struct runner *r);
/* Finds the terminal of this process. Called before the loop runs. */
void child_open_terminal(struct runner *r);
/* Returns false, having ended the runner, if there is no point in queueing: the session is too
 * short for a watchdog. */
bool child_lets_wait(struct runner *r);
/* The lock is held and the stages before the command are done: starts the command. */
void child_begin(struct runner *r);
/* The lock is held, and the last holder has to be fenced: starts the fence. Ends in
 * `fence_ended` or in `leave`. */
void child_fence(struct runner *r, const struct fence_target *target);
/* Writes the newest hold deadline to the page. Called after every turn of the client, since any
 * answer may have moved the deadline. */
void child_publish(struct runner *r);
void child_lost(struct runner *r, clave_err why);
/* This program has replaced another in place, and has that one's command and guardian; and it has
 * taken the lock up. */
void child_go_on(struct runner *r);
void child_taken_up(struct runner *r);
/* Another participant asks for the lock, or asks the leader to resign: ends the command with its
 * usual grace. */
void child_asked(struct runner *r);
/* The health of the command may have changed: shows it in the lock's node, and ends the command if
 * its health demands it. */
void child_on_judged(struct runner *r);
/* The command has reported something about its state, or is silent for too long: takes the lock as
 * --ready specifies, shows the status, and ends the command if the policy demands it. */
void child_on_notified(struct runner *r);
void child_on_signal(struct runner *r, int sig);
/* On SIGCHLD: waits for every child that has ended. Besides the guardian these are hooks, orphans
 * that a sub-reaper inherits and, if this is process 1 of a container, any orphan at all. true:
 * this process has no child left. */
bool child_reap(struct runner *r);
/* On SIGCONT: continues the command as well, unless it is too late for the lock. */
void child_on_continued(struct runner *r);
void child_on_reports(uv_poll_t *poll, int status, int events);
void child_on_watchdog(uv_timer_t *timer);

#endif
