/* selector_state.h - the rules of a LeaderSelector: when its task is queued, whether being granted
 * the lock means leadership, what interrupts its function, and whether it is queued again. Nothing
 * here waits or wakes a thread. That is up to the code that runs the task
 * (runtime/blocking/selector.c, with threads), which must hold one mutex around all of these calls.
 *
 *            start          elect
 *     LATENT ─────> QUEUED ───────> LEADING
 *           requeue ^ │ │              │ end
 *                   │ v └──────────────┤ end, when the lock does not mean leadership
 *                  IDLE <──────────────┘ or QUEUED again by itself (auto_requeue) */
#ifndef CLAVE_RECIPE_ELECTION_SELECTOR_STATE_H
#define CLAVE_RECIPE_ELECTION_SELECTOR_STATE_H

#include "clave/async/latch.h"
#include "clave/async/mutex.h"

enum selector_state_phase {
    SELECTOR_STATE_LATENT, /* not started */
    SELECTOR_STATE_IDLE,
    SELECTOR_STATE_QUEUED,
    SELECTOR_STATE_LEADING, /* its function is running */
};

struct selector_state {
    enum selector_state_phase phase;
    clave_latch_policy policy;
    bool auto_requeue;
    bool closed;      /* set in any phase: a task continues until its function has returned */
    bool interrupted; /* the function should return; stays set until the next task begins */
    bool suspended; /* the state of the connection, which also matters at the moment of the grant */
    clave_err err;  /* of the last task */
};

/* EINVAL: it was started before, or is closed. */
clave_err clave__selector_state_start(struct selector_state *s);
/* EBUSY: it is queued or leads. ECLOSED; EINVAL: it was not started. */
clave_err clave__selector_state_requeue(struct selector_state *s);

/* ---- the task: begin, acquire, elect, run the function, end, release ------------------------- */

/* ECLOSED: there is nothing to acquire, and the task has ended. */
clave_err clave__selector_state_begin(struct selector_state *s);
/* The lock was granted; `valid` tells whether that still holds by the clock. Returns true if the
 * function should be called. */
bool clave__selector_state_elect(struct selector_state *s, bool valid);
/* The function has returned or was not called, and the lock is not released yet. From here on a
 * requeue succeeds. */
void clave__selector_state_end(struct selector_state *s, clave_err err);
/* True if the next task follows at once. */
bool clave__selector_state_goes_on(const struct selector_state *s);
/* The queued task will not be run: IDLE. */
void clave__selector_state_rest(struct selector_state *s);

/* ---- events ---------------------------------------------------------------------------------- */

void clave__selector_state_connection(struct selector_state *s, clave_state state);
/* An event of the lock. Returns true if this acquire should be cancelled. */
bool clave__selector_state_event(struct selector_state *s, clave_mutex_event_kind kind);
/* ENOTHELD: it does not lead. */
clave_err clave__selector_state_interrupt(struct selector_state *s);
/* Returns true if it is queued and its acquire should be cancelled. */
bool clave__selector_state_close(struct selector_state *s);
/* True if it leads as far as this state knows; its hold must also be valid. */
bool clave__selector_state_leads(const struct selector_state *s);

#endif
