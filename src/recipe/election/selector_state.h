/* selector_state.h - the rules of a LeaderSelector: when its task is queued, whether the lock it
 * was granted means leadership, what interrupts its function, whether it is queued again. Nothing
 * here waits or wakes a thread: that is left to whoever runs the task (runtime/blocking/selector.c
 * with threads), with one mutex around all of this.
 *
 *            start          elect
 *     LATENT ─────> QUEUED ───────> LEADING
 *           requeue ^ │ │              │ end
 *                   │ v └──────────────┤ end, when the lock does not mean leadership
 *                  IDLE <──────────────┘ or QUEUED again by itself (auto_requeue)
 */
#ifndef CLAVE_RECIPE_ELECTION_SELECTOR_STATE_H
#define CLAVE_RECIPE_ELECTION_SELECTOR_STATE_H

#include "clave/async/latch.h"
#include "clave/async/mutex.h"

enum selector_state_phase {
    SELECTOR_STATE_LATENT, /* not started */
    SELECTOR_STATE_IDLE,
    SELECTOR_STATE_QUEUED,
    SELECTOR_STATE_LEADING, /* its function runs */
};

struct selector_state {
    enum selector_state_phase phase;
    clave_latch_policy policy;
    bool auto_requeue;
    bool closed;      /* in every phase: a task goes on until its function has returned */
    bool interrupted; /* the function is to return; stays until the next task begins */
    bool suspended;   /* the connection's state: it matters at the moment of the grant, too */
    clave_err err;    /* of the last task */
};

/* EINVAL: started before, or closed. */
clave_err clave__selector_state_start(struct selector_state *s);
/* EBUSY: it is queued or leads. ECLOSED; EINVAL: not started. */
clave_err clave__selector_state_requeue(struct selector_state *s);

/* ---- the task: begin, acquire, elect, the function, end, release -------------------------- */

/* ECLOSED: there is nothing to acquire, and the task has ended. */
clave_err clave__selector_state_begin(struct selector_state *s);
/* The lock is granted, and valid by the clock or not any more: is the function called? */
bool clave__selector_state_elect(struct selector_state *s, bool valid);
/* The function has returned or was not called, and the lock is not yet released: from here on a
 * requeue succeeds. */
void clave__selector_state_end(struct selector_state *s, clave_err err);
/* The next task follows at once. */
bool clave__selector_state_goes_on(const struct selector_state *s);
/* The task that is queued will not be run: IDLE. */
void clave__selector_state_rest(struct selector_state *s);

/* ---- what happens to it -------------------------------------------------------------------- */

void clave__selector_state_connection(struct selector_state *s, clave_state state);
/* Of the lock. True: this acquire is to be cancelled. */
bool clave__selector_state_event(struct selector_state *s, clave_mutex_event_kind kind);
/* ENOTHELD: it does not lead. */
clave_err clave__selector_state_interrupt(struct selector_state *s);
/* True: it is queued, and its acquire is to be cancelled. */
bool clave__selector_state_close(struct selector_state *s);
/* As far as this knows: its hold must be valid, too. */
bool clave__selector_state_leads(const struct selector_state *s);

#endif
