/* selector_state.h - the rules of a LeaderSelector: when its task stands, whether the lock it was
 * granted means leadership, what interrupts its function, whether it stands again. Nothing here
 * waits, and nobody is woken: that is for who runs the task (runtime/blocking/selector.c has
 * threads for it), with one mutex around all of this.
 *
 *       start, requeue      elect          end
 *   IDLE ───────────▶ QUEUED ──▶ LEADING ──▶ IDLE, or QUEUED again by itself
 *                        └──────────────────▲ refused, or in doubt                            */
#ifndef CLAVE_RECIPE_ELECTION_SELECTOR_STATE_H
#define CLAVE_RECIPE_ELECTION_SELECTOR_STATE_H

#include "clave/async/latch.h"
#include "clave/async/mutex.h"

enum selector_state_phase { SELECTOR_STATE_IDLE, SELECTOR_STATE_QUEUED, SELECTOR_STATE_LEADING };

struct selector_state {
    enum selector_state_phase phase;
    clave_latch_policy policy;
    bool auto_requeue;
    bool started, closed;
    bool interrupted; /* the function is to return; until the next task begins */
    bool suspended;   /* the connection is away: only the standard policy minds */
    clave_err err;    /* of the last task */
};

/* EINVAL: started before, or closed. */
clave_err clave__selector_state_start(struct selector_state *c);
/* EBUSY: it stands or leads. ECLOSED; EINVAL: not started. */
clave_err clave__selector_state_requeue(struct selector_state *c);

/* ---- the task: begin, acquire, elect, the function, end, release -------------------------- */

/* ECLOSED: there is nothing to acquire, and the task has ended. */
clave_err clave__selector_state_begin(struct selector_state *c);
/* The lock is granted, and valid by the clock or not any more: is the function called? */
bool clave__selector_state_elect(struct selector_state *c, bool valid);
/* The function has returned or was not called, and the lock is not yet released: from here on a
 * requeue succeeds. */
void clave__selector_state_end(struct selector_state *c, clave_err err);
/* The next task follows at once. */
bool clave__selector_state_goes_on(const struct selector_state *c);

/* ---- what happens to it -------------------------------------------------------------------- */

void clave__selector_state_connection(struct selector_state *c, clave_state state);
/* Of the lock. True: this acquire is to be cancelled. */
bool clave__selector_state_event(struct selector_state *c, clave_mutex_event_kind kind);
/* ENOTHELD: it does not lead. */
clave_err clave__selector_state_interrupt(struct selector_state *c);
/* True: it stands, and its acquire is to be cancelled. */
bool clave__selector_state_close(struct selector_state *c);
/* As far as this knows: its hold has to be valid, too. */
bool clave__selector_state_leads(const struct selector_state *c);

#endif
