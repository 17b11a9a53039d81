/* once_and_min_hold.h - the stages before and after the command while the lock is held. Before it:
 * the fence (run_fence.h) and the lock delay, then either the question whether the command has been
 * run already (--once), or taking a slot (run_slot.h). After it: recording the run, or giving the
 * slot back; the minimum hold; and clearing the mark that --fence and --lock-delay leave.
 *
 *   the lock is granted                                the command has ended
 *     └─▶ DELAYING ─▶ ASKING ─▶ (cleared) ─ ... ─▶ RECORDING ─▶ RESTING ─▶ (leave)
 *                     TAKING                       GIVING
 *            each is skipped when it was not asked for
 *
 * The names in parentheses are callbacks of struct runner_events (runner.h). */
#ifndef CLAVE_CMD_RUN_RUN_STAGES_H
#define CLAVE_CMD_RUN_RUN_STAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "clave/async/lock_delay.h"
#include "clave/async/once.h"
#include "clave/async/slots.h"
#include "cmd/run/stages/run_fence.h"
#include "cmd/run/stages/run_slot.h"

struct run_plan;
struct runner;
struct run_slot_plan;

enum { RUN_STAGES_SLOT_CAP = 448 }; /* length of a slot's node name */

struct run_stages_plan {
    const char *once;  /* key of --once; NULL: run the command every time */
    int64_t period_ms; /* 0: only once, ever */
    bool at_most_once;
    int done_code;       /* exit code when it has been run already */
    int64_t min_hold_ms; /* 0: none */
    bool marks;          /* leave a mark while holding, and if one is found, run the fence and wait
                            this long: */
    int64_t lock_delay_ms;
    struct run_fence_plan fence;
    const struct run_slot_plan *slot; /* NULL: no slot */
};

struct run_stages {
    enum { NOT_GRANTED, DELAYING, ASKING, TAKING, BEGUN, RECORDING, GIVING, RESTING } phase;
    clave_async_delay *delay;
    struct run_fence fence;
    clave_async_once *once;
    clave_async_slots *slots;
    int64_t slot_token; /* 0: not taken */
    char slot_name[RUN_STAGES_SLOT_CAP];
    struct run_slot_room slot_room;
    void (*given)(struct runner *r, int code);
    uv_timer_t rest;
    int code; /* exit code to leave with */
};

/* Parses a flag (ids in run_flags.h). false: the flag is not one of these or its value is invalid,
 * and a message has been printed. */
bool run_stages_take_flag(struct run_plan *p, int id);
/* Checks that the flags go together. Returns EXIT_OK, or an exit code after a message. */
int run_stages_check(struct run_plan *p);

/* The path of the mark, to be freed by the caller; NULL: no memory. */
char *run_stages_mark(const struct run_plan *p);

void run_stages_open(struct runner *r); /* opens its libuv handle */
/* The lock is granted. Ends in `cleared` or in `leave`. */
void run_stages_begin(struct runner *r);
/* The command has ended, or was not started. Ends in `leave`. */
void run_stages_end(struct runner *r, int code);
/* The lock was lost before the command was started or after its end. */
void run_stages_lost(struct runner *r, clave_err why);
/* Another participant asks for the lock, or a signal asks us to end: skips the rest of a wait. */
void run_stages_cut_short(struct runner *r);
/* The lock is about to be released. */
void run_stages_release(struct runner *r);
void run_stages_close(struct runner *r); /* closes its libuv handle */
void run_stages_free(struct runner *r);

#endif
