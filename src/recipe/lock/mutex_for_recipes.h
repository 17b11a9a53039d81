/* mutex_for_recipes.h - mutexes as building blocks of other recipes: the two sides of a read-write
 * lock, the parts of a multi-lock. The folder:
 *
 *   mutex.c        a mutex and its owners
 *   rwlock.c       two mutexes in one queue
 *   multilock.c    several locks as one
 *   once.c         a job that runs once
 *   lock_delay.c   a pause after a lost holder
 *   record_node.c  the record node that once and lock_delay use
 *   revoke.c       asks a holder to release */
#ifndef CLAVE_RECIPE_LOCK_MUTEX_FOR_RECIPES_H
#define CLAVE_RECIPE_LOCK_MUTEX_FOR_RECIPES_H

#include "clave/async/mutex.h"
#include "recipe/contender/contender.h"
#include "recipe/queue/queue_order.h"

/* As clave_async_mutex_new, but with the node names of another rule; NULL: with those that the
 * options give. */
clave_err clave__mutex_new(clave_async_mutex **out, clave_async_client *c, const char *path,
                           const clave_mutex_options *o, const struct queue_order_rule *rule);
/* Sets a callback in place of the one in the options. */
void clave__mutex_listen(clave_async_mutex *m, clave_mutex_event_cb *cb, void *arg);
/* Pairs the two sides of a read-write lock until either is freed: an owner of `write` that acquires
 * `read` keeps its place, an owner of `read` is refused `write`. */
void clave__mutex_pair(clave_async_mutex *read, clave_async_mutex *write);
/* The place of an owner that waits or holds, for test/model to replay; NULL: it has none. */
const struct contender *clave__mutex_place(const clave_async_mutex *m, uint64_t owner);

#endif
