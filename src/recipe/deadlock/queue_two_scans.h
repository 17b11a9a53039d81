/* queue_two_scans.h - what two scans, one after the other, have in common, as queues of claims: a
 * node that both scans saw existed all the time between them. So all of these existed at one
 * moment, and waited for each other as the snapshot says. */
#ifndef CLAVE_RECIPE_DEADLOCK_QUEUE_TWO_SCANS_H
#define CLAVE_RECIPE_DEADLOCK_QUEUE_TWO_SCANS_H

#include "recipe/deadlock/queue_scan.h"
#include "recipe/deadlock/waitgraph.h"

struct queue_snapshot {
    const struct clave_mem *mem;
    struct wait_queue *queues; /* of claims */
    size_t n;
    struct wait_claim *claims;
    const struct queue_node **nodes; /* of the claims; they belong to the scan */
    size_t nclaims;
};

/* Of `now`, and as far as `before` has it too; NULL: all of it. ENOMEM. */
clave_err clave__queue_snapshot_init(struct queue_snapshot *p, const struct queue_scan *before,
                                     const struct queue_scan *now);
void clave__queue_snapshot_fini(struct queue_snapshot *p);

const struct queue_node *clave__queue_snapshot_node(const struct queue_snapshot *p, size_t queue,
                                                    size_t claim);

#endif
