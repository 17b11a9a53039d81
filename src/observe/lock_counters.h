/* lock_counters.h - counters and durations of what happens to locks, of all clients. What is so now
 * (holders, waiters) is read from the model when a page is made: lock_metrics.h. */
#ifndef CLAVE_OBSERVE_LOCK_COUNTERS_H
#define CLAVE_OBSERVE_LOCK_COUNTERS_H

#include "base/histogram.h"
#include "observe/lock_end_cause.h"

struct lock_counters {
    struct histogram waited[LOCK_KINDS]; /* until they were granted */
    struct histogram left[LOCK_KINDS];   /* until they gave up, or their session ended */
    struct histogram held[LOCK_KINDS];
    uint64_t ends[LOCK_KINDS][LOCK_CAUSES];
};

void clave__lock_counters_init(struct lock_counters *m);

/* Each change of a place once, at that time by the wall clock. */
void clave__lock_counters_note(struct lock_counters *m, enum lock_change what,
                               const struct lock_node *p, int64_t at);
/* A slot was granted to one who was seen to go from the queue before. */
void clave__lock_counters_note_taken(struct lock_counters *m, const struct lock_end *waited);
/* Why a hold has ended is known. */
void clave__lock_counters_note_cause(struct lock_counters *m, const struct lock_end *end);

#endif
