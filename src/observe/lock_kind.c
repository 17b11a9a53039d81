/* lock_kind.c - of which kind a lock is, and the word for it; see lock_model.h. Called by
 * everything that shows locks. Invariant: nothing is changed here. */
#include <assert.h>

#include "observe/lock_model.h"

enum lock_queue_kind clave__lock_kind(const struct lock_queue *q)
{
    const struct lock_queue *acquired = clave__lock_acquired(q);
    bool sides = q->of_kind[QUEUE_READ] + q->of_kind[QUEUE_WRITE] + q->of_kind[QUEUE_KAZOO_READ];
    bool latches = q->of_kind[QUEUE_LATCH], locks = q->of_kind[QUEUE_LOCK];
    if (acquired || q->leases)
        return clave__lock_is_slots(acquired ? acquired : q) ? LOCK_KIND_SLOT : LOCK_KIND_SEMAPHORE;
    if (sides + latches + locks > 1)
        return LOCK_KIND_MIXED;
    if (sides)
        return LOCK_KIND_RW;
    return latches ? LOCK_KIND_ELECTION : LOCK_KIND_LOCK;
}

const char *clave__lock_kind_name(enum lock_queue_kind kind)
{
    static const char *const names[LOCK_KINDS] = {
        [LOCK_KIND_LOCK] = "lock",           [LOCK_KIND_RW] = "rw",
        [LOCK_KIND_SEMAPHORE] = "semaphore", [LOCK_KIND_SLOT] = "slot",
        [LOCK_KIND_ELECTION] = "election",   [LOCK_KIND_MIXED] = "mixed",
    };
    assert(names[kind]);
    return names[kind];
}
