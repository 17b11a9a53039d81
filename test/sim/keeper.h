/* keeper.h - what a process does with persistent nodes: it keeps one of its own and one that all
 * processes want, changes its data, stops and begins again, and deletes those of others. */
#ifndef CLAVE_SIM_KEEPER_H
#define CLAVE_SIM_KEEPER_H

#include "workload.h"

struct checker;

/* The node that all want, at the latest look. */
struct keeper_world {
    int64_t czxid;
    int64_t session; /* whose it is; 0: there was none */
};

/* Nothing of them happens in a workload without keepers. */
void keeper_begin(struct workload *l);
void keeper_act(struct workload *l);
/* Frees the nodes. */
void keeper_put_away(struct workload *l);
/* The client has been freed. */
void keeper_ended(struct workload *l);
/* Everybody has heard of all faults: each living owner has exactly its node. */
void keeper_look(struct workload *l);
/* After every step: nobody takes away what is another's. */
void keeper_world_look(struct checker *c);

#endif
