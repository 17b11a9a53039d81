/* leader_watcher.h - somebody who looks on at an election, and is held against what it may be told.
 */
#ifndef CLAVE_SIM_LEADER_WATCHER_H
#define CLAVE_SIM_LEADER_WATCHER_H

#include "workload.h"

/* One of the process at this site, unless there is one. */
void follower_begin(struct workload *l, unsigned site);
void follower_end(struct workload *l, unsigned site);
/* What it was told last is that nobody leads. */
bool follower_sees_nobody(const struct workload *l, unsigned site);

/* It was told of this term, or of a later one. */
bool follower_sees(const struct workload *l, unsigned site, int64_t term);

#endif
