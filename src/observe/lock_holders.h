/* lock_holders.h - who holds in a queue, kept up to date as places come and go. */
#ifndef CLAVE_OBSERVE_LOCK_HOLDERS_H
#define CLAVE_OBSERVE_LOCK_HOLDERS_H

#include "observe/lock_model.h"

/* The marks of a place in the set of its queue: its kind, and whether it waits, holds or is left
 * over; and these. */
enum {
    LOCK_MARK_LIMIT = 1 << 21, /* its data says the semaphore's limit */
    LOCK_MARK_LINKED = 1 << 22
};
uint32_t clave__lock_marks(const struct lock_node *p);
uint32_t clave__lock_mark_waiting(unsigned kinds);
uint32_t clave__lock_mark_holding(unsigned kinds);
uint32_t clave__lock_mark_left_over(unsigned kinds);

/* The queue's own mark, after those of its places have changed. */
void clave__lock_queue_mark(struct lock_model *m, struct lock_queue *q);
/* A place of the session (NULL: of none) has come, gone, begun or ended to wait. */
void clave__lock_link(struct lock_model *m, struct lock_session *s);

/* After a place came or went: grants, and takes back what was granted too early when nodes came out
 * of order. `fresh` was just added; NULL. */
void clave__lock_grants_update(struct lock_model *m, struct lock_queue *q, int64_t at,
                               const struct lock_node *fresh);

#endif
