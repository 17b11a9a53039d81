/* thread_mutex.h - what a multilock (multilock.c) needs of a clave_mutex. */
#ifndef CLAVE_RUNTIME_BLOCKING_THREAD_MUTEX_H
#define CLAVE_RUNTIME_BLOCKING_THREAD_MUTEX_H

#include "clave/mutex.h"
#include "recipe/queue/queue_order.h"
#include "runtime/blocking/call.h"

/* As clave_mutex_new, for a queue with another rule; NULL: the rule that the options give. */
clave_err clave__mutex_new_for_threads(clave_mutex **out, clave_client *c, const char *path,
                                       const clave_mutex_options *o,
                                       const struct queue_order_rule *rule);
/* Any thread. True if the owner holds it and no loss is known. */
bool clave__mutex_is_good_for_thread(clave_mutex *m, uint64_t owner);

#endif
