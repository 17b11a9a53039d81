/* tally.h - what a process does with a counter that all share: it adds, and is told how that ended.
 */
#ifndef CLAVE_SIM_TALLY_H
#define CLAVE_SIM_TALLY_H

#include "workload.h"

struct checker;

/* The sums of all that was added. */
struct tally_world {
    int64_t acknowledged;
    int64_t pending; /* not answered yet */
    int64_t unknown; /* told as unknown, or the process has ended before the answer */
};

/* Nothing of them happens in a workload without a counter. */
void tally_begin(struct workload *l);
void tally_act(struct workload *l);
/* Frees the counter. */
void tally_put_away(struct workload *l);
/* The client has been freed. */
void tally_ended(struct workload *l);
/* Nobody waits. */
bool tally_is_done(const struct workload *l);
/* After every step: the sum is right. */
void tally_world_look(struct checker *c);

#endif
