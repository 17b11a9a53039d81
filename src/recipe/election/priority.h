/* priority.h - the priority of a candidate, which its node's name tells everybody who lists:
 *
 *     _c_<uuid>-priority-10-latch-0000000007
 *
 * Curator and kazoo look at what stands behind the last "latch-" only. */
#ifndef CLAVE_RECIPE_ELECTION_PRIORITY_H
#define CLAVE_RECIPE_ELECTION_PRIORITY_H

#include <stddef.h>
#include <stdint.h>

enum { CLAVE_PRIORITY_TAG = sizeof "priority-2147483647-" };

/* What stands before "latch-" in the name of such a candidate; "" for 0. */
void clave__priority_tag(int32_t priority, char out[CLAVE_PRIORITY_TAG]);
/* 0: none. */
int32_t clave__priority_of(const char *name);
/* Rendezvous hashing: a number above 0 that is as good as random for each pair, so that in each
 * of many elections another candidate has the highest. */
int32_t clave__priority_spread(const char *path, const char *id);
/* The index in `order` of the first of those with the highest; n > 0. */
size_t clave__priority_highest(const char *const *names, const size_t *order, size_t n);

#endif
