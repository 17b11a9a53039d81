/* top_order.h - the orders in which `clave top` can list locks, by their numbers. Locks of a
 * deadlock come first in each. */
#ifndef CLAVE_CMD_TOP_TOP_ORDER_H
#define CLAVE_CMD_TOP_TOP_ORDER_H

#include "cmd/top/top_feed.h"

/* After the last one, the first, which is 0. */
size_t top_order_next(size_t order);
/* "oldest wait", ... */
const char *top_order_name(size_t order);
void top_order_sort(size_t order, struct top_lock *locks, size_t n);

#endif
