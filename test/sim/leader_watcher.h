/* leader_watcher.h - a process that watches who leads an election; what it is told is checked.
 */
#ifndef CLAVE_SIM_LEADER_WATCHER_H
#define CLAVE_SIM_LEADER_WATCHER_H

#include "workload.h"

/* One of the process at this lock, unless there is one. */
void leader_watcher_begin(struct workload *l, unsigned lock);
void leader_watcher_end(struct workload *l, unsigned lock);
/* The last that it was told is that nobody leads. */
bool leader_watcher_sees_nobody(const struct workload *l, unsigned lock);

/* It was told of this term, or of a later one. */
bool leader_watcher_sees(const struct workload *l, unsigned lock, int64_t term);

#endif
