/* run_slot.h - the slot that a command of `clave slot run` owns: a stage of once_and_min_hold.h. It
 * is taken when the lock of the run is held, before the command, and given back after it, or kept.
 * Also how `clave slot` and this stage say that a slot was not taken or not given. */
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
    bool id_defaulted; /* the id is this machine's */
    int64_t wait_ms;   /* as in run_plan */
    enum slot_keep keep;
};

/* A slot that is owned by the machine's id, and from another host: false after a message, with
 * EXIT_REFUSED in mind. */
bool run_slot_is_ours(const struct options *o, const struct run_slot_plan *p,
                      const clave_slot *slot);
/* The id owned the slot before. */
void run_slot_say_owned(const struct options *o, const char *path, const clave_slot *slot);
/* What a take knew of the room when it was told to wait, or refused. */
struct run_slot_room {
    bool known;
    size_t ahead, owned;
    int64_t limit;
    char strange[RUN_SLOT_NODE_CAP];   /* the path of a node that takes room, and is no slot; "" */
    char left_over[RUN_SLOT_NODE_CAP]; /* the name of the node before it, which no session owns; ""
                                        */
};
void run_slot_note_room(struct run_slot_room *r, const clave_slots_event *ev);
/* A take that waits. */
void run_slot_say_waiting(const struct options *o, const char *path, const struct run_slot_room *r);
/* A child of the owners that is no slot. */
void run_slot_say_strange(const struct options *o, const char *path, const char *node);
/* The node of the limit holds none. Returns EXIT_PATH. */
int run_slot_bad_limit(const struct options *o, const char *path);
/* A take ended with this error; `fault` is the client's latest. Returns the exit code. */
int run_slot_not_taken(const struct options *o, const char *path, clave_err err,
                       const struct run_slot_room *r, const struct client_fault *fault);
/* Likewise of a give or a break. */
int run_slot_not_given(const struct options *o, const char *path, clave_err err,
                       const struct client_fault *fault);

/* Takes the slot: ends in the event cleared, or in leave. */
void run_slot_begin(struct runner *r);
/* The command has ended with this code. true: the slot is being given back, and `given` follows
 * with the code to leave with. */
bool run_slot_end(struct runner *r, int code, void (*given)(struct runner *r, int code));
/* The command has ended, and the lock of the run had been lost: the slot is kept, and that is said
 * unless --keep always asks for it. */
void run_slot_lost(const struct runner *r);
/* What the command's environment says of the slot. */
void run_slot_put(const struct runner *r, struct guardian_task *t);
/* The session ends: says so if a take is pending. */
void run_slot_release(struct runner *r);
void run_slot_free(struct runner *r);

#endif
