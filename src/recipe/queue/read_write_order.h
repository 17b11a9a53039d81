/* read_write_order.h - when a reader and a writer may hold, in the one queue of a read-write lock:
 * a reader waits for the writers before it, a writer for every node before it. */
#ifndef CLAVE_RECIPE_QUEUE_READ_WRITE_ORDER_H
#define CLAVE_RECIPE_QUEUE_READ_WRITE_ORDER_H

#include "recipe/queue/queue_order.h"

/* Whether a node before ours keeps us waiting. `is_other`: it is of the other kind than ours. True
 * for every rule but a reader's. */
bool clave__read_write_blocks(const struct queue_order_rule *rule, bool is_other);

/* Nodes with the same number are ordered by their indices in the server's list. Theirs, or a
 * reader's own: it does not wait for a node with its number, which is the write node of a
 * downgrade. */
size_t clave__read_write_index(const struct queue_order_rule *rule, size_t theirs, size_t own);

#endif
