/* mutex_for_recipes.h - mutexes that other recipes are made of: the two sides of a read-write lock,
 * the parts of a multi-lock. The folder:
 *
 *   mutex.c        a mutex and its owners
 *   rwlock.c       two mutexes in one queue
 *   multilock.c    several locks as one
 *   once.c         a job that runs once
 *   lock_delay.c   a pause after a lost holder
 *   record_node.c  the record node of both
 *   revoke.c       asks a holder to release */
#ifndef CLAVE_RECIPE_LOCK_MUTEX_FOR_RECIPES_H
#define CLAVE_RECIPE_LOCK_MUTEX_FOR_RECIPES_H

#include "clave/async/mutex.h"
#include "recipe/contender/contender.h"
#include "recipe/queue/queue_order.h"

/* clave_async_mutex_new with the names of another rule; NULL: as the options say. */
clave_err clave__mutex_new(clave_async_mutex **out, clave_async_client *c, const char *path,
                           const clave_mutex_options *o, const struct queue_order_rule *rule);
/* In place of the callback of the options. */
void clave__mutex_listen(clave_async_mutex *m, clave_mutex_event_cb *cb, void *arg);
/* Until either is freed, an owner of `write` keeps its place when it acquires `read`; an owner of
 * `read` gets no `write`. */
void clave__mutex_pair(clave_async_mutex *read, clave_async_mutex *write);
/* The place of an owner that waits or holds, as test/model replays it; NULL: it has none. */
const struct contender *clave__mutex_place(const clave_async_mutex *m, uint64_t owner);

#endif
