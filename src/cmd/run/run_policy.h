/* run_policy.h - what surrounds the command while the lock is held. Before it: the lock delay, and
 * whether it has been run already. Behind it: that on record, the minimum hold, and the mark of a
 * lock that is given back.
 *
 *   the lock is granted                                the command has ended
 *     └─▶ DELAYING ─▶ ASKING ─▶ (child_begin) ─ ... ─▶ RECORDING ─▶ RESTING ─▶ (runner_leave)
 *            each is passed over when it was not asked for
 */
#ifndef CLAVE_CMD_RUN_RUN_POLICY_H
#define CLAVE_CMD_RUN_RUN_POLICY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "clave/async/lock_delay.h"
#include "clave/async/once.h"

struct lock_plan;
struct runner;

struct run_policy_plan {
    const char *once;  /* the job's key; NULL: it is run whenever it is started */
    int64_t period_ms; /* 0: once for all */
    bool at_most_once;
    int done_code;       /* the exit code when it is done already */
    int64_t min_hold_ms; /* 0: none */
    bool marks;          /* leaves a mark, and waits when it finds one: */
    int64_t lock_delay_ms;
};

struct run_policy {
    enum { NOT_GRANTED, DELAYING, ASKING, BEGUN, RECORDING, RESTING } phase;
    clave_async_delay *delay;
    clave_async_once *once;
    uv_timer_t rest;
    int code; /* to leave with */
};

/* The flags (ids in lock_flags.h). False: not one of them, or told. */
bool run_policy_take_flag(struct lock_plan *p, int id);
/* Do they make sense together? EXIT_OK, or the exit code, having told why. */
int run_policy_check(const struct lock_plan *p);

void run_policy_open(struct runner *r); /* its handle */
/* The lock is granted: ends in child_begin, or in runner_leave. */
void run_policy_begin(struct runner *r);
/* The command has ended, or was not started: ends in runner_leave. */
void run_policy_end(struct runner *r, int code);
/* The lock is lost before the command was started, or behind its end. */
void run_policy_lost(struct runner *r, clave_err why);
/* Somebody wants the lock, or a signal the end: there is no rest. */
void run_policy_hurry(struct runner *r);
/* The lock is about to be given back. */
void run_policy_release(struct runner *r);
void run_policy_close(struct runner *r); /* its handle */
void run_policy_free(struct runner *r);

#endif
