/* candidacy.h - the rules of a LeaderSelector: when its task stands, whether the lock it was
 * granted means leadership, what interrupts its function, whether it stands again. Nothing here
 * waits, and nobody is woken: that is for who runs the task (drive/selector.c has threads for it),
 * with one mutex around all of this.
 *
 *       start, requeue      elect          end
 *   IDLE ───────────▶ QUEUED ──▶ LEADING ──▶ IDLE, or QUEUED again by itself
 *                        └──────────────────▲ refused, or in doubt                            */
#ifndef CLAVE_RECIPE_CANDIDACY_H
#define CLAVE_RECIPE_CANDIDACY_H

#include "clave/latch.h"
#include "clave/mutex.h"

enum candidacy_phase { CANDIDACY_IDLE, CANDIDACY_QUEUED, CANDIDACY_LEADING };

struct candidacy {
    enum candidacy_phase phase;
    clave_latch_policy policy;
    bool auto_requeue;
    bool started, closed;
    bool interrupted; /* the function is to return; until the next task begins */
    bool suspended;   /* the connection is away: only the standard policy minds */
    clave_err err;    /* of the last task */
};

/* EINVAL: started before, or closed. */
clave_err clave__candidacy_start(struct candidacy *c);
/* EBUSY: it stands or leads. ECLOSED; EINVAL: not started. */
clave_err clave__candidacy_requeue(struct candidacy *c);

/* ---- the task: begin, acquire, elect, the function, end, release -------------------------- */

/* ECLOSED: there is nothing to acquire, and the task has ended. */
clave_err clave__candidacy_begin(struct candidacy *c);
/* The lock is granted, and valid by the clock or not any more: is the function called? */
bool clave__candidacy_elect(struct candidacy *c, bool valid);
/* The function has returned or was not called, and the lock is not yet released: from here on a
 * requeue succeeds. */
void clave__candidacy_end(struct candidacy *c, clave_err err);
/* The next task follows at once. */
bool clave__candidacy_goes_on(const struct candidacy *c);

/* ---- what happens to it -------------------------------------------------------------------- */

void clave__candidacy_connection(struct candidacy *c, clave_state state);
/* Of the lock. True: this acquire is to be cancelled. */
bool clave__candidacy_event(struct candidacy *c, clave_mutex_event_kind kind);
/* ENOTHELD: it does not lead. */
clave_err clave__candidacy_interrupt(struct candidacy *c);
/* True: it stands, and its acquire is to be cancelled. */
bool clave__candidacy_close(struct candidacy *c);
/* As far as this knows: its hold has to be valid, too. */
bool clave__candidacy_leads(const struct candidacy *c);

#endif
