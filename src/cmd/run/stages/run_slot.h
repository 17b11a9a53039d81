/* run_slot.h - the slot that a command of `clave slot run` owns; a stage of once_and_min_hold.h. It
 * is taken before the command, once the lock of the run is held, and given back or kept after it.
 * This file also has the messages that `clave slot` and this stage print when a slot is not taken
 * or not given back. */
#ifndef CLAVE_CMD_RUN_RUN_SLOT_H
#define CLAVE_CMD_RUN_RUN_SLOT_H

#include "clave/async/slots.h"
#include "client/errmsg.h"
#include "cmd/cli/cmd_options.h"

struct runner;
struct guardian_task;

enum { RUN_SLOT_NODE_CAP = 1024 };
enum slot_keep { SLOT_KEEP_NEVER, SLOT_KEEP_FAILED, SLOT_KEEP_ALWAYS };

struct run_slot_plan {
    const char *path;
    clave_slot as;
    bool id_defaulted; /* the id is this machine's id */
    int64_t wait_ms;   /* as in struct run_plan */
    enum slot_keep keep;
};

/* false, after a message, if the slot belongs to this machine's id but was taken by another host,
 * as with cloned machines. The caller then exits with EXIT_REFUSED. */
bool run_slot_is_ours(const struct options *o, const struct run_slot_plan *p,
                      const clave_slot *slot);
/* Says that the id owned the slot already. */
void run_slot_say_owned(const struct options *o, const char *path, const clave_slot *slot);
/* What a take knew about free slots when it had to wait or was refused. */
struct run_slot_room {
    bool known;
    size_t ahead, owned;
    int64_t limit;
    /* path of a node among the owners that is not a slot, but counts as one; "": none */
    char strange[RUN_SLOT_NODE_CAP];
    /* name of a node before ours that no session owns; "": none */
    char left_over[RUN_SLOT_NODE_CAP];
};
void run_slot_note_room(struct run_slot_room *r, const clave_slots_event *ev);
/* Says what a take is waiting for. */
void run_slot_say_waiting(const struct options *o, const char *path, const struct run_slot_room *r);
/* Says that a child of the owners' node is not a slot. */
void run_slot_say_strange(const struct options *o, const char *path, const char *node);
/* Says that the node of the limit contains no number. Returns EXIT_PATH. */
int run_slot_bad_limit(const struct options *o, const char *path);
/* Says why a take failed; `fault` is the client's latest fault. Returns the exit code. */
int run_slot_not_taken(const struct options *o, const char *path, clave_err err,
                       const struct run_slot_room *r, const struct client_fault *fault);
/* The same for a give or a break. */
int run_slot_not_given(const struct options *o, const char *path, clave_err err,
                       const struct client_fault *fault);

/* Takes the slot. Ends in `cleared` or in `leave`. */
void run_slot_begin(struct runner *r);
/* The command has ended with this code. true: the slot is being given back, and `given` is called
 * later with the code to leave with. false: there is nothing to do. */
bool run_slot_end(struct runner *r, int code, void (*given)(struct runner *r, int code));
/* The command has ended, but the lock of the run had been lost: the slot is kept. Says so, unless
 * --keep=always asked for that. */
void run_slot_lost(const struct runner *r);
/* Adds what the command's environment says about the slot. */
void run_slot_put(const struct runner *r, struct guardian_task *t);
/* The session is about to end: says so if a take is still waiting. */
void run_slot_release(struct runner *r);
void run_slot_free(struct runner *r);

#endif
