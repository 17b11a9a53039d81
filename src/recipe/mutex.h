/* mutex.h - what guarded writes need to know of a mutex. */
#ifndef CLAVE_RECIPE_MUTEX_H
#define CLAVE_RECIPE_MUTEX_H

#include "clave/mutex.h"

/* The client and the owner's lock node. ENOTHELD; ELOST when it was held. */
clave_err clave__mutex_node(const clave_mutex *m, uint64_t owner, clave_client **client,
                            const char **node);

#endif
