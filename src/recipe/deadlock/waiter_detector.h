/* waiter_detector.h - a waiting contender looks for a deadlock that it is part of: after a delay,
 * and then again after longer and longer ones, since the member that closes a cycle finds it at its
 * first look. It gives up when the rule of clave/async/deadlock.h makes it the victim. The folder:
 *
 *   waiter_detector.c  when to look, and whether to give up
 *   deadlock_search.c  two scans, and the cycles in what both have
 *   queue_scan.c       one reading of the queues
 *   queue_snapshot.c   owners and waits of both
 *   waitgraph.c        the graph and its cycles
 *   report.c           a deadlock in words
 *   deadlock_list.c    deadlocks as the user gets them */
#ifndef CLAVE_RECIPE_DEADLOCK_WAITER_DETECTOR_H
#define CLAVE_RECIPE_DEADLOCK_WAITER_DETECTOR_H

#include "client/client_internal.h"
#include "recipe/deadlock/deadlock_search.h"

/* Of all attempts of one recipe. */
struct detector_terms {
    const struct clave_mem *mem;
    int64_t delay_ms; /* 0: no detection */
    char **roots;
    size_t nroots;
};

struct detector_options {
    int64_t delay_ms;
    const char *const *roots; /* none: the parent of the lock's path */
    size_t nroots;
    const void
        *data; /* the data of the nodes: in clave's form or empty, so that fields can be added */
    size_t len;
};

/* For locks at `path`. EINVAL; EPATH, with the client's fault; ENOMEM. _fini is harmless after any.
 */
clave_err clave__detector_terms_init(struct detector_terms *t, clave_async_client *c,
                                     const char *path, const struct detector_options *o);
void clave__detector_terms_fini(struct detector_terms *t);

/* A copy of `text` in place of *kept; NULL where there is no memory. */
void clave__detector_keep_text(const struct clave_mem *mem, char **kept, const char *text);

/* Part of a contender. */
struct detector {
    clave_async_client *client;
    const struct detector_terms *terms; /* NULL: it does not look */
    struct timer timer;
    unsigned looks;                          /* so far */
    struct deadlock_search *deadlock_search; /* under way */
    /* The node at this path must give up. `text` is NULL if there was no memory for it. */
    void (*on_deadlock)(struct detector *d, const char *text);
    const char *node;
};

void clave__detector_init(struct detector *d, clave_async_client *c,
                          void (*on_deadlock)(struct detector *d, const char *text));
/* The contender waits, with this node, whose text must stay where it is. Does nothing if it looks
 * already. */
void clave__detector_begin(struct detector *d, const struct detector_terms *terms,
                           const char *node);
/* The contender no longer waits. */
void clave__detector_end(struct detector *d);

#endif
