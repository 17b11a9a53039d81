/* queue_place.h - where a recipe's user stands in a queue, by a UUID that the user chose: so
 * another process with the same session finds its node again. One acquire has one place; that of a
 * semaphore has several contenders, in <path>/locks and in <path>/leases. The place outlives them:
 * one that was given up may still look for its node by the UUID, and deletes it, whosever it is by
 * then. */
#ifndef CLAVE_RECIPE_QUEUE_PLACE_H
#define CLAVE_RECIPE_QUEUE_PLACE_H

#include "base/rand.h"
#include "clave/async/latch.h"
#include "clave/async/semaphore.h"

struct queue_place {
    char uuid[CLAVE_UUID_TEXT + 1];
    bool search; /* such a node of this session may exist already */
    bool final; /* while it waits, its node's end is its own, with ENONODE: another process with the
                 * session may have given it up. Otherwise it is taken anew */
    unsigned ncontenders;                  /* that have not ended */
    void (*unused)(struct queue_place *p); /* there is none any more; NULL: nobody asks */
};

/* The place that its owner has or will have; borrowed. Before the only acquire. */
void clave__mutex_set_place(clave_async_mutex *m, struct queue_place *p);
/* Likewise. */
void clave__semaphore_set_place(clave_async_semaphore *s, struct queue_place *p);
/* Before _start, of a candidate without a priority. */
void clave__latch_set_place(clave_async_latch *l, struct queue_place *p);

#endif
