/* deadlock_schedule.h - lets a waiting contender look for a deadlock that it is part of: first
 * after a delay, then again after longer and longer ones, since the member that closes a cycle
 * finds it at its first look. The contender gives up if the rule in clave/async/deadlock.h makes it
 * the victim. The folder:
 *
 *   deadlock_schedule.c  a search: two scans, the second because a member may give up meanwhile,
 *                        and the cycles in what both have; when a contender looks
 *   queue_scan.c         one reading of the queues
 *   queue_two_scans.c    owners and waits of both
 *   waitgraph.c          the graph of who waits for whom, and the cycles in it
 *   deadlock_list.c      deadlocks as the user gets them, and in words */
#ifndef CLAVE_RECIPE_DEADLOCK_DEADLOCK_SCHEDULE_H
#define CLAVE_RECIPE_DEADLOCK_DEADLOCK_SCHEDULE_H

#include "client/client_for_recipes.h"

/* Settings for all attempts of one recipe. */
struct deadlock_terms {
    const struct clave_mem *mem;
    int64_t delay_ms; /* 0: deadlocks are not looked for */
    char **roots;
    size_t nroots;
};

struct deadlock_terms_options {
    int64_t delay_ms;
    const char *const *roots; /* if there are none: the parent of the lock's path */
    size_t nroots;
    const void *data; /* of the nodes: in clave's form or empty, so that fields can be added */
    size_t len;
};

/* Sets the terms for locks at `path`. EINVAL; EPATH sets the client's fault; ENOMEM. Calling _fini
 * is harmless after any of these. */
clave_err clave__deadlock_terms_init(struct deadlock_terms *t, clave_async_client *c,
                                     const char *path, const struct deadlock_terms_options *o);
void clave__deadlock_terms_fini(struct deadlock_terms *t);

/* Replaces *kept by a copy of `text`, or by NULL if there is no memory. */
void clave__deadlock_keep_text(const struct clave_mem *mem, char **kept, const char *text);

/* Part of a contender. */
struct deadlock_schedule {
    clave_async_client *client;
    const struct deadlock_terms *terms; /* NULL: it does not look for deadlocks */
    struct timer timer;
    unsigned looks;                          /* how often it has looked so far */
    struct deadlock_search *deadlock_search; /* the search under way */
    /* The contender with this node must give up. `text` is NULL if there was no memory for it. */
    void (*on_deadlock)(struct deadlock_schedule *s, const char *text);
    const char *node;
};

void clave__deadlock_schedule_init(struct deadlock_schedule *s, clave_async_client *c,
                                   void (*on_deadlock)(struct deadlock_schedule *s,
                                                       const char *text));
/* The contender waits with this node, whose path must not move. Does nothing if it is looking
 * already. */
void clave__deadlock_schedule_begin(struct deadlock_schedule *s, const struct deadlock_terms *terms,
                                    const char *node);
/* The contender no longer waits. */
void clave__deadlock_schedule_end(struct deadlock_schedule *s);

#endif
