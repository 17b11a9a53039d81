/* lock_deadlocks.h - finds deadlocks among all locks of the model. Only places that can be part of
 * one are looked at (`linked` in lock_model.h). The model has the places of a single moment, so
 * looking once is enough; clave/async/deadlock.h says what counts as an owner. */
#ifndef CLAVE_OBSERVE_LOCK_DEADLOCKS_H
#define CLAVE_OBSERVE_LOCK_DEADLOCKS_H

#include "base/list.h"
#include "observe/lock_model.h"

struct lock_deadlock {
    struct list link;
    uint64_t id;  /* a hash of its members' tokens and of whether it is certain */
    bool certain; /* otherwise it is only possible: see clave_deadlock.certain */
    bool fresh;   /* found by the last look but not by the one before */
    size_t npaths;
    const char *const *paths; /* of the locks that its members wait for */
    const char *data;         /* JSON */
};

struct lock_deadlocks {
    const struct clave_mem *mem; /* borrowed */
    uint64_t seed;
    struct list found; /* of struct lock_deadlock */
    size_t nfound;
    size_t ncertain; /* how many of them are certain */
    uint64_t total;  /* how many certain ones were ever found */
    size_t nplaces;  /* how many places the last look examined */
    bool complete;   /* the last look neither reached MOST_PLACES nor ran out of memory */
};

void clave__lock_deadlocks_init(struct lock_deadlocks *w, const struct clave_mem *mem,
                                uint64_t seed);
void clave__lock_deadlocks_fini(struct lock_deadlocks *w);

/* Looks again. Finds nothing if there is no memory or there are more than MOST_PLACES. */
void clave__lock_deadlocks_look(struct lock_deadlocks *w, const struct lock_model *m);

/* True if a certain deadlock involves somebody waiting at this lock or, for a semaphore, at either
 * of its sides. */
bool clave__lock_deadlocks_has(const struct lock_deadlocks *w, const struct lock_queue *q);

#endif
