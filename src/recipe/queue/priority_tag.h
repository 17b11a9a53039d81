/* priority_tag.h - the priority of a candidate, which is part of its node's name so that anyone who
 * lists the queue knows it:
 *
 *     _c_<uuid>-priority-10-latch-0000000007
 *
 * Curator and kazoo look only at what follows the last "latch-". */
#ifndef CLAVE_RECIPE_QUEUE_PRIORITY_TAG_H
#define CLAVE_RECIPE_QUEUE_PRIORITY_TAG_H

#include <stddef.h>
#include <stdint.h>

enum { CLAVE_PRIORITY_TAG = sizeof "priority-2147483647-" };

/* Writes what the name has before "latch-"; "" for priority 0. */
void clave__priority_tag(int32_t priority, char out[CLAVE_PRIORITY_TAG]);
/* The priority in a node's name; 0: it has none. */
int32_t clave__priority_of(const char *name);
/* The index in `order` of the first name with the highest priority; n must be greater than 0. */
size_t clave__priority_highest(const char *const *names, const size_t *order, size_t n);

#endif
