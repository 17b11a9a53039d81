/* slot_take.h - one take: is a slot owned already, a place in the queue, room, the transaction.
 * slot_take.c has its states, its end and its times, slot_take_steps.c what it does in them.
 *
 *     LOOKING ──> QUEUEING ──> COUNTING <──> FULL
 *      │  ^ ^         │           │
 *      │  │ │         v           v
 *      │  │ └─────────────── TAKING
 *      │  └──> PREPARING (and from COUNTING)
 *      v
 *     READING ──> ENDED (from every state)
 *
 * Invariant: the name of the slot is chosen once, so whatever becomes of the transaction, a reading
 * after a sync tells whether it was done. */
#ifndef CLAVE_RECIPE_SLOTS_SLOT_TAKE_H
#define CLAVE_RECIPE_SLOTS_SLOT_TAKE_H

#include "recipe/slots/slot_data.h"
#include "recipe/slots/slot_owners_and_limit.h"

enum slot_take_state {
    TAKE_LOOKING,   /* does the id own a slot, and is there a limit? */
    TAKE_PREPARING, /* the nodes are being made */
    TAKE_QUEUEING,  /* others are before it */
    TAKE_COUNTING,  /* first in the queue: is there room? */
    TAKE_FULL,      /* no: an event will tell of room */
    TAKE_TAKING,    /* the transaction is under way */
    TAKE_READING,   /* the id owns a slot: what does it say? */
    TAKE_ENDED,
};

struct slot_take {
    struct list link; /* in the slots' until it is answered */
    clave_async_slots *slots;
    uint64_t request;
    enum slot_take_state state;
    clave_slot as; /* its texts follow in the same block */
    char *node;    /* the path of the slot that it makes */
    char *data;    /* what that says */
    size_t ndata;
    int64_t deadline;
    bool trying;
    bool canceled;
    bool again;      /* something changed while it was counted */
    clave_err doubt; /* the error of a transaction that may have been done; OK: there is none */
    struct slot_count count;
    uint64_t full_on; /* connection of the newest count, if it found no room; else 0 */
    struct slots_prepare prepare;
    struct contender *place; /* NULL: none, or it was lost */
    struct timer limit;
    struct timer pause;
    struct listener listener;
    unsigned busy;           /* requests of its own under way */
    clave_slot slot;         /* that it owns, when it ends so: its own, or: */
    struct slot_copy *found; /* one that the id owned before */
    struct client_task due;
    clave_err verdict;
    clave_async_slots_take_cb *cb;
    void *arg;
    char texts[];
};

/* ---- slot_take.c ----------------------------------------------------------------------------- */

/* The only function that changes the state. */
void clave__slot_take_enter(struct slot_take *t, enum slot_take_state to);
/* Ends it: the callback runs after this call. */
void clave__slot_take_answer(struct slot_take *t, clave_err err);
/* After an answer that came too late: frees a take that has ended, unless others are to come. */
void clave__slot_take_settle(struct slot_take *t);
/* A request failed: again a little later, or this is the end. */
void clave__slot_take_retry_or_fail(struct slot_take *t, clave_err err);
/* Gives up the place; `spent`: its node is gone. */
void clave__slot_take_leave(struct slot_take *t, bool spent);
/* Its deadline has passed, perhaps unnoticed in a stopped process. */
bool clave__slot_take_is_late(const struct slot_take *t);
/* What one that took no slot reports. */
clave_err clave__slot_take_not_in_time(const struct slot_take *t);

/* ---- slot_take_steps.c ----------------------------------------------------------------------- */

/* LOOKING. */
void clave__slot_take_look(struct slot_take *t);
/* To COUNTING. */
void clave__slot_take_count(struct slot_take *t);
/* The count's calls. */
void clave__slot_take_on_count(struct slot_count *c);
void clave__slot_take_on_changed(struct slot_count *c);

#endif
