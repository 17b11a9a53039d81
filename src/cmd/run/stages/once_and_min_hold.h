/* once_and_min_hold.h - what surrounds the command while the lock is held. Before it: the lock
 * delay, and whether the command has been run already, or a slot (run_slot.h). After it: recording
 * the run, or giving the slot back, the minimum hold, and clearing the mark of a lock that is
 * released.
 *
 *   the lock is granted                                the command has ended
 *     └─▶ DELAYING ─▶ ASKING ─▶ (cleared) ─ ... ─▶ RECORDING ─▶ RESTING ─▶ (leave)
 *                     TAKING                       GIVING
 *            each is skipped when it was not asked for
 *
 * What is in brackets is an event of runner.h, by which the runner learns of it. */
#ifndef CLAVE_CMD_RUN_RUN_STAGES_H
#define CLAVE_CMD_RUN_RUN_STAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "clave/async/lock_delay.h"
#include "clave/async/once.h"
#include "clave/async/slots.h"
#include "cmd/run/stages/run_slot.h"

struct run_plan;
struct runner;
struct run_slot_plan;

enum { RUN_STAGES_SLOT_CAP = 448 }; /* the name of a slot's node */

struct run_stages_plan {
    const char *once;  /* the key of --once; NULL: run it every time */
    int64_t period_ms; /* 0: once and for all */
    bool at_most_once;
    int done_code;       /* the exit code when it is done already */
    int64_t min_hold_ms; /* 0: none */
    bool marks;          /* --lock-delay: leaves a mark, and when it finds one waits for */
    int64_t lock_delay_ms;
    const struct run_slot_plan *slot; /* NULL: none */
};

struct run_stages {
    enum { NOT_GRANTED, DELAYING, ASKING, TAKING, BEGUN, RECORDING, GIVING, RESTING } phase;
    clave_async_delay *delay;
    clave_async_once *once;
    clave_async_slots *slots;
    int64_t slot_token; /* 0: not taken */
    char slot_name[RUN_STAGES_SLOT_CAP];
    struct run_slot_room slot_room;
    void (*given)(struct runner *r, int code);
    uv_timer_t rest;
    int code; /* to leave with */
};

/* Parses a flag (ids in run_flags.h). false: not one of ours, or invalid, after a message. */
bool run_stages_take_flag(struct run_plan *p, int id);
/* Checks that the flags are consistent. EXIT_OK, or the exit code after a message. */
int run_stages_check(const struct run_plan *p);

void run_stages_open(struct runner *r); /* its libuv handle */
/* The lock is granted: ends in the event cleared, or in leave. */
void run_stages_begin(struct runner *r);
/* The command has ended, or was not started: ends in the event leave. */
void run_stages_end(struct runner *r, int code);
/* The lock is lost before the command was started, or after its end. */
void run_stages_lost(struct runner *r, clave_err why);
/* Another participant asks for the lock, or a signal for the end: skips what is left of the waits.
 */
void run_stages_cut_short(struct runner *r);
/* The lock is about to be released. */
void run_stages_release(struct runner *r);
void run_stages_close(struct runner *r); /* its libuv handle */
void run_stages_free(struct runner *r);

#endif
