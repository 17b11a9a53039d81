/* deadlock_list.h - the deadlocks of a snapshot, as the user gets them. */
#ifndef CLAVE_RECIPE_DEADLOCK_DEADLOCK_LIST_H
#define CLAVE_RECIPE_DEADLOCK_DEADLOCK_LIST_H

#include "clave/async/deadlock.h"
#include "recipe/deadlock/queue_two_scans.h"

struct deadlock_list {
    const struct clave_mem *mem;
    clave_deadlock *list;           /* points into the scan */
    clave_deadlock_member *members; /* those of all deadlocks */
    size_t n;
};

/* Lists the deadlocks that the graph found in the snapshot of `scan`. ENOMEM: the list is empty. */
clave_err clave__deadlock_list_init(struct deadlock_list *f, const struct queue_scan *scan,
                                    const struct queue_snapshot *p, const struct wait_verdict *v);
void clave__deadlock_list_fini(struct deadlock_list *f);

#endif
