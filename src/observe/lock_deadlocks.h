/* lock_deadlocks.h - who waits for whom among all locks of the model, and the deadlocks there are.
 * Only places that can be part of one are looked at (lock_model.h: linked). The model has the
 * places of one moment, so one look is enough: see docs of clave/async/deadlock.h for what counts
 * as an owner. */
#ifndef CLAVE_OBSERVE_LOCK_DEADLOCKS_H
#define CLAVE_OBSERVE_LOCK_DEADLOCKS_H

#include "base/list.h"
#include "observe/lock_model.h"

struct lock_deadlock {
    struct list link;
    uint64_t id;  /* of its members' tokens, and whether it is certain */
    bool certain; /* otherwise possible: see clave_deadlock.certain */
    bool fresh;   /* found by the last look, and not by the one before */
    size_t npaths;
    const char *const *paths; /* of the locks that are waited for */
    const char *data;         /* JSON */
};

struct lock_deadlocks {
    const struct clave_mem *mem; /* borrowed */
    uint64_t seed;
    struct list found; /* of lock_deadlock */
    size_t nfound;
    size_t ncertain; /* of these */
    uint64_t total;  /* certain ones, ever found */
    size_t nplaces;  /* that the last look looked at */
    bool complete;   /* it did not look at MOST_PLACES or more, or run out of memory */
};

void clave__lock_deadlocks_init(struct lock_deadlocks *w, const struct clave_mem *mem,
                                uint64_t seed);
void clave__lock_deadlocks_fini(struct lock_deadlocks *w);

/* Looks again. Without memory, and beyond MOST_PLACES, nothing is found. */
void clave__lock_deadlocks_look(struct lock_deadlocks *w, const struct lock_model *m);

/* A certain one waits at this lock; of a semaphore, at one of its sides. */
bool clave__lock_deadlocks_has(const struct lock_deadlocks *w, const struct lock_queue *q);

#endif
