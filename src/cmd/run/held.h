/* held.h - since when a lock is held, as far as its node says. A node's ctime is when its owner
 * came. That is the grant's, too, unless he had to wait: who knows that is the holder, so `clave
 * lock` writes it into its node then, once, behind the grant: the node's mtime is the grant's from
 * then on. Other clients do not say. */
#ifndef CLAVE_CMD_RUN_HELD_H
#define CLAVE_CMD_RUN_HELD_H

#include "cmd/run/lock_flags.h"

/* Appends what the node of a participant says of that before the grant to its data, n of cap bytes.
 * Returns how many there are now. */
size_t held_promise(const struct lock_plan *plan, char *data, size_t n, size_t cap);
/* Granted, after it was waited for: says so in the node (its path). What the node says of others'
 * wishes meanwhile is left as it is. Nobody waits for this, nor hears that it failed. */
void held_since_now(clave_async_client *c, const struct lock_plan *plan, const char *node);
/* By the server's clock, in milliseconds since the epoch; of who holds it, by what stands in its
 * node. -1: it does not say. */
int64_t held_since(const void *data, size_t n, const clave_stat *stat);

#endif
