/* thread_mutex.h - what several locks as one (multilock.c) need of a clave_mutex. */
#ifndef CLAVE_RUNTIME_BLOCKING_THREAD_MUTEX_H
#define CLAVE_RUNTIME_BLOCKING_THREAD_MUTEX_H

#include "clave/mutex.h"
#include "recipe/queue/queue_order.h"
#include "runtime/blocking/call.h"

/* As clave_mutex_new, for a queue with another rule; NULL: as the options say. */
clave_err clave__mutex_new_for_threads(clave_mutex **out, clave_client *c, const char *path,
                                       const clave_mutex_options *o,
                                       const struct queue_order_rule *rule);
/* Any thread. The owner holds it, and no loss of it is known. */
bool clave__mutex_is_good_for_thread(clave_mutex *m, uint64_t owner);

#endif
