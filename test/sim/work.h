/* work.h - what a command works at, and the checks of its health: it falls ill and recovers, a
 * check of it is slow, hangs, or cannot even be killed. When it is checked and given up is decided
 * by the shipped supervise/health_policy. */
#ifndef CLAVE_SIM_WORK_H
#define CLAVE_SIM_WORK_H

#include "supervise/health_policy.h"
#include "world.h"

struct work {
    struct world *w; /* NULL: its health is not checked */
    struct rand_state *rng;
    struct alarm turn; /* it falls ill, or recovers */
    bool ill;
    bool hangs; /* ill: checks of it hang */
    /* Some time, so that a check may have failed: was_late also of the process that checks, which
     * may be stopped between its look at the clock and the start of a check. */
    bool was_ill, was_late;
    int64_t ill_from; /* true time */

    struct health_policy policy;
    struct alarm check; /* it ends */
    bool runs, ended, passed;
    void (*changed)(void *owner); /* a check has ended */
    void *owner;
};

/* The command is about to be started, by a candidate that was healthy. */
void work_begin(struct work *k, struct world *w, struct rand_state *rng, int64_t session_ms,
                int64_t now);
void work_fini(struct work *k);
/* What is due at this time of the clock of the process that checks; what has ended comes first. */
void work_look(struct work *k, int64_t now);
/* Ill for so long, as true time, since `from` at the latest, that it should be over. */
bool work_is_neglected(const struct work *k, int64_t from, int64_t kill_ms);

#endif
