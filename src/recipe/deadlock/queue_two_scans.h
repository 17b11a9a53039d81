/* queue_two_scans.h - what two scans, one after the other, have in common, as queues of claims. A
 * node that both scans saw existed all the time in between. So all nodes in the snapshot existed at
 * one moment, and waited for each other as the snapshot says. */
#ifndef CLAVE_RECIPE_DEADLOCK_QUEUE_TWO_SCANS_H
#define CLAVE_RECIPE_DEADLOCK_QUEUE_TWO_SCANS_H

#include "recipe/deadlock/queue_scan.h"
#include "recipe/deadlock/waitgraph.h"

struct queue_snapshot {
    const struct clave_mem *mem;
    struct wait_queue *queues; /* queues of claims */
    size_t n;
    struct wait_claim *claims;
    const struct queue_node **nodes; /* one per claim; they belong to the scan */
    size_t nclaims;
};

/* Makes a snapshot of what `now` and `before` have in common or, if `before` is NULL, of all of
 * `now`. ENOMEM. */
clave_err clave__queue_snapshot_init(struct queue_snapshot *p, const struct queue_scan *before,
                                     const struct queue_scan *now);
void clave__queue_snapshot_fini(struct queue_snapshot *p);

const struct queue_node *clave__queue_snapshot_node(const struct queue_snapshot *p, size_t queue,
                                                    size_t claim);

#endif
