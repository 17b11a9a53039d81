/* deadlock_search.h - a search for deadlocks that is under way: two scans, and what they show. */
#ifndef CLAVE_RECIPE_DEADLOCK_DEADLOCK_SEARCH_H
#define CLAVE_RECIPE_DEADLOCK_DEADLOCK_SEARCH_H

#include "clave/async/deadlock.h"

struct deadlock_search;

struct deadlock_search_options {
    const char *const *roots;
    size_t nroots;
    size_t max_nodes;
};
/* Implements clave_async_deadlocks_find. The search frees itself after its callback. *out (`out`
 * may be NULL) can be passed to _abandon. */
clave_err clave__deadlock_search_start(struct deadlock_search **out, clave_async_client *c,
                                       const struct deadlock_search_options *o,
                                       clave_async_deadlocks_cb *cb, void *arg);
/* Abandons the search: its callback will not run. */
void clave__deadlock_search_abandon(struct deadlock_search *s);

#endif
