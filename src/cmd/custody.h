/* custody.h - what surrounds the command while the lock is held. Before it: the lock delay, and
 * whether it has been run already. Behind it: that on record, the minimum hold, and the mark of a
 * lock that is given back.
 *
 *   the lock is granted                                the command has ended
 *     └─▶ DELAYING ─▶ ASKING ─▶ (holder_begin) ─ ... ─▶ RECORDING ─▶ RESTING ─▶ (wrapper_leave)
 *            each is passed over when it was not asked for
 */
#ifndef CLAVE_CMD_CUSTODY_H
#define CLAVE_CMD_CUSTODY_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "clave/delay.h"
#include "clave/once.h"

struct lock_plan;
struct wrapper;

struct custody_plan {
    const char *once;  /* the job's key; NULL: it is run whenever it is started */
    int64_t period_ms; /* 0: once for all */
    bool at_most_once;
    int done_code;       /* the exit code when it is done already */
    int64_t min_hold_ms; /* 0: none */
    bool marks;          /* leaves a mark, and waits when it finds one: */
    int64_t lock_delay_ms;
};

struct custody {
    enum { NOT_GRANTED, DELAYING, ASKING, BEGUN, RECORDING, RESTING } phase;
    clave_delay *delay;
    clave_once *once;
    uv_timer_t rest;
    int code; /* to leave with */
};

/* The flags (ids in lock.h). False: not one of them, or told. */
bool custody_take_flag(struct lock_plan *p, int id);
/* Do they make sense together? EXIT_OK, or the exit code, having told why. */
int custody_check(const struct lock_plan *p);

void custody_open(struct wrapper *w); /* its handle */
/* The lock is granted: ends in holder_begin, or in wrapper_leave. */
void custody_begin(struct wrapper *w);
/* The command has ended, or was not started: ends in wrapper_leave. */
void custody_end(struct wrapper *w, int code);
/* The lock is lost before the command was started, or behind its end. */
void custody_lost(struct wrapper *w, clave_err why);
/* Somebody wants the lock, or a signal the end: there is no rest. */
void custody_hurry(struct wrapper *w);
/* The lock is about to be given back. */
void custody_release(struct wrapper *w);
void custody_close(struct wrapper *w); /* its handle */
void custody_free(struct wrapper *w);

#endif
