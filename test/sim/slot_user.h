/* slot_user.h - what a process does with slots: its hands take, give and break them for ids that
 * all processes share, and change the limit. */
#ifndef CLAVE_SIM_SLOT_USER_H
#define CLAVE_SIM_SLOT_USER_H

#include "workload.h"

/* Nothing of them happens in a workload without slots. */
void slot_user_begin(struct workload *l);
void slot_user_act(struct workload *l);
/* Frees the slots; what they owe is still to be told. */
void slot_user_put_away(struct workload *l);
/* The client has been freed. */
void slot_user_ended(struct workload *l);
/* Everybody has heard of all faults: nobody waits for long while a slot is free. */
void slot_user_look(const struct workload *l);
/* Nobody waits, and all was told. */
bool slot_user_is_done(const struct workload *l);

#endif
