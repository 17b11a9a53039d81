/* lock_holders.h - decides who holds in a queue, and keeps that up to date as places come and
 * go. */
#ifndef CLAVE_OBSERVE_LOCK_HOLDERS_H
#define CLAVE_OBSERVE_LOCK_HOLDERS_H

#include "observe/lock_model.h"

/* The marks of a place in the set of its queue. They encode its kind and whether it waits, holds or
 * is left over, and also: */
enum {
    LOCK_MARK_LIMIT = 1 << 21, /* its data names the semaphore's limit */
    LOCK_MARK_LINKED = 1 << 22
};
uint32_t clave__lock_marks(const struct lock_node *p);
uint32_t clave__lock_mark_waiting(unsigned kinds);
uint32_t clave__lock_mark_holding(unsigned kinds);
uint32_t clave__lock_mark_left_over(unsigned kinds);

/* Updates the queue's own mark; call it after marks of its places have changed. */
void clave__lock_queue_mark(struct lock_model *m, struct lock_queue *q);
/* Updates whether the session's places are linked; call it when one of them has appeared, gone, or
 * begun or ceased to wait. The session may be NULL. */
void clave__lock_link(struct lock_model *m, struct lock_session *s);

/* Call it after a place came or went: grants places, and revokes what was granted too early because
 * nodes arrived out of order. `fresh` is the place just added, or NULL. */
void clave__lock_grants_update(struct lock_model *m, struct lock_queue *q, int64_t at,
                               const struct lock_node *fresh);

#endif
