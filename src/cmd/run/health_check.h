/* health_check.h - the health of the work under a lock or behind a registration (--health): runs
 * the checks beside it, each a shell command in a process group of its own, and has
 * supervise/health_policy.h judge. A check that hangs is killed and delays nothing: this process
 * only ever waits for it on the loop.
 *
 * The results of the checks decide whether the runner stands (before the command), whether child.c
 * has the command ended, and whether member.c keeps its node. */
#ifndef CLAVE_CMD_RUN_HEALTH_CHECK_H
#define CLAVE_CMD_RUN_HEALTH_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "cmd/cli/cmd_options.h"
#include "supervise/health_policy.h"
#include "supervise/kill_policy.h"

struct health_plan {
    const char *command; /* NULL: no check */
    struct health_terms terms;
    bool tuned; /* one of the terms was given */
};
/* The defaults; the timeout is that of a period unless it is given. */
#define HEALTH_PLAN_INIT                                                                           \
    {                                                                                              \
        .terms = {.every_ms = 5000, .grace_ms = 30000, .fails = 3 }                                \
    }

/* Parses a flag (ids in run_flags.h). false: it is not one of these or its value is invalid, and a
 * message has been printed. */
bool health_plan_take_flag(struct health_plan *p, struct options *o, int id);
/* Completes the plan, and checks that the flags go together. Returns EXIT_OK, or an exit code after
 * a message. */
int health_plan_check(struct health_plan *p, struct options *o, enum on_lost on_lost);

enum { HEALTH_LINE_CAP = 200, HEALTH_WHY_CAP = HEALTH_LINE_CAP + 112 };

/* The process whose work is checked. */
struct health_owner {
    /* Starts the user's command with its output going to the descriptor; returns as
     * hook_start_check. */
    pid_t (*start)(void *arg, const char *command, int output);
    void (*judged)(void *arg); /* the policy has been asked; it may have changed */
};

struct health_check {
    const struct health_plan *plan;
    const struct health_owner *owner;
    void *arg;
    uv_loop_t *loop;
    struct health_policy policy;
    bool on;
    uv_timer_t timer;
    uv_poll_t output;
    int ends[2]; /* of the pipe that all checks write to; -1: none */
    pid_t pid;   /* of the check that runs, and of its process group; 0: none does */
    /* What the check has printed: its last line that is not empty. */
    char line[HEALTH_LINE_CAP];
    bool line_ended;
    char why[HEALTH_WHY_CAP]; /* why the latest failed check failed; "": none has failed */
};

/* Opens its libuv handles, and keeps the pointers. Returns 0, or an error of libuv. */
int health_open(struct health_check *h, const struct health_plan *plan, uv_loop_t *loop,
                const struct health_owner *owner, void *arg);
/* Begins the checks. */
void health_begin(struct health_check *h);
/* The command is being started. */
void health_run(struct health_check *h);
/* Waits for the check if it has ended. */
void health_reap(struct health_check *h);
/* There is nothing left to check. A check that runs is killed. */
void health_stop(struct health_check *h);
void health_close(struct health_check *h); /* closes its libuv handles */
/* The part of it that passes to a program that replaces this one in place: a check that runs goes
 * on. */
struct health_passed {
    struct health_policy policy;
    bool on;
    int ends[2];
    pid_t pid;
    char line[HEALTH_LINE_CAP], why[HEALTH_WHY_CAP];
    bool line_ended;
};
void health_pass_on(const struct health_check *h, struct health_passed *out);
/* After health_open, and before the loop runs. */
void health_go_on(struct health_check *h, const struct health_passed *from);
/* True if this process may queue or be registered: it is healthy, or is not checked. */
bool health_lets_stand(const struct health_check *h);

#endif
