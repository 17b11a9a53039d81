/* deadlock_list.h - the deadlocks of a snapshot, as the user gets them. */
#ifndef CLAVE_RECIPE_DEADLOCK_DEADLOCK_LIST_H
#define CLAVE_RECIPE_DEADLOCK_DEADLOCK_LIST_H

#include "clave/async/deadlock.h"
#include "recipe/deadlock/queue_snapshot.h"

struct deadlocks_found {
    const struct clave_mem *mem;
    clave_deadlock *list;           /* points into the scan */
    clave_deadlock_member *members; /* of all */
    size_t n;
};

/* Of the snapshot of `scan`, and what the graph said of it. ENOMEM: it is empty. */
clave_err clave__deadlocks_found_init(struct deadlocks_found *f, const struct scan *scan,
                                      const struct queue_snapshot *p, const struct wait_verdict *v);
void clave__deadlocks_found_fini(struct deadlocks_found *f);

#endif
