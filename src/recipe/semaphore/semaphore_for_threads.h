/* semaphore_for_threads.h - what the blocking semaphore needs beyond clave/async/semaphore.h. The
 * folder:
 *
 *   semaphore.c      a semaphore, its acquires and its leases
 *   shared_count.c   the limit that processes share in a node */
#ifndef CLAVE_RECIPE_SEMAPHORE_SEMAPHORE_FOR_THREADS_H
#define CLAVE_RECIPE_SEMAPHORE_SEMAPHORE_FOR_THREADS_H

#include "clave/async/semaphore.h"

/* From now on requests are made for this owner, a number as in clave_async_mutex_acquire; 0:
 * unspecified. */
void clave__semaphore_set_task(clave_async_semaphore *s, uint64_t task);

#endif
