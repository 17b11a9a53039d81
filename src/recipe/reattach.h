/* reattach.h - where a recipe's user stands in a queue, by a UUID that the user chose: so
 * another process with the same session finds its node again. One acquire has one place; that of a
 * semaphore has several contenders, in <path>/locks and in <path>/leases. The place outlives them:
 * one that was given up may still look for its node by the UUID, and deletes it, whosever it is by
 * then. */
#ifndef CLAVE_RECIPE_REATTACH_H
#define CLAVE_RECIPE_REATTACH_H

#include "base/rand.h"
#include "clave/async/latch.h"
#include "clave/async/semaphore.h"

/* What stays when a contender is given up, since another process with the session may hold it. */
enum queue_place_spares {
    SPARES_NOTHING,
    SPARES_FOUND, /* a node for which the contender has sent no create */
    SPARES_ALL,   /* and one whose create it sent and got no answer to: it may be either's */
};

struct queue_place {
    char uuid[CLAVE_UUID_TEXT + 1];
    bool search;    /* such a node of this session may exist already */
    const char *at; /* its name, if that is known: nothing else is taken; NULL: it is not. Not of a
                     * semaphore's */
    uint64_t listed_on; /* the connection of the newest listing that told the place; 0: none has */
    bool final; /* while it waits, its node's end is its own, with ENONODE: another process with the
                 * session may have given it up. Otherwise it is taken anew */
    enum queue_place_spares spares;
    bool spared; /* one that was given up has left its node, which nobody here has now */
    /* As of client_named_create, with the place as its argument. NULL: it may have others. */
    const char *below;
    bool (*excludes)(void *place, const char *path);
    unsigned ncontenders;                  /* that have not ended */
    void (*unused)(struct queue_place *p); /* there is none any more; NULL: nobody asks */
};

typedef void queue_described(void *arg, clave_err err);

/* The place that its owner has or will have; borrowed. Before the only acquire. */
void clave__mutex_set_place(clave_async_mutex *m, struct queue_place *p);
/* Likewise. The leases of one acquire have names that are made of the UUID, the first the UUID's.
 */
void clave__semaphore_set_place(clave_async_semaphore *s, struct queue_place *p);
/* Before _start, of a candidate without a priority. */
void clave__latch_set_place(clave_async_latch *l, struct queue_place *p);

/* Its nodes say this from now on: host, name and command in clave's form, else `text`; NULL: as
 * before. `done` runs later, *n times, each time for one node: CLAVE_OK; ELOST,
 * ENONODE: it was lost; else as of clave_async_set. *n is 0 when there is no node yet. ENOMEM,
 * ECLOSED: `done` may run for some of them. */
clave_err clave__mutex_describe(clave_async_mutex *m, uint64_t owner, const clave_identity *said,
                                queue_described *done, void *arg, size_t *n);
clave_err clave__semaphore_describe(clave_async_semaphore *s, const clave_identity *said,
                                    queue_described *done, void *arg, size_t *n);
clave_err clave__latch_describe(clave_async_latch *l, const clave_identity *said,
                                queue_described *done, void *arg, size_t *n);

#endif
