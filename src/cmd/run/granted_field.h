/* granted_field.h - since when a lock is held, as far as its node tells. A node's ctime is when its
 * owner queued, which is the time of the grant too unless it had to wait. Only the holder knows
 * that, so `clave lock` then writes to its node once, after the grant: from then on the node's
 * mtime is the time of the grant, unless a later field says it in numbers. Other clients do not
 * record it. */
#ifndef CLAVE_CMD_RUN_GRANTED_FIELD_H
#define CLAVE_CMD_RUN_GRANTED_FIELD_H

#include "cmd/run/run_flags.h"

/* Appends to a participant's data (n of cap bytes) the field that marks it as waiting. Returns the
 * new length. */
size_t held_since_promise(const struct run_plan *plan, char *data, size_t n, size_t cap);
/* Granted after a wait: records that in the node at this path. Requests that others have written to
 * the node meanwhile are left alone. Nothing waits for the write, and its failure is not
 * reported. */
void held_since_record(clave_async_client *c, const struct run_plan *plan, const char *node);
/* Adds `text` to the node at this path, once: what others should know of its holder besides. Since
 * when it is held stays in it. Nothing waits for that, nor is its failure reported. */
void held_since_add_text(clave_async_client *c, const struct run_plan *plan, const char *node,
                         const char *text);
/* When the holder got the lock, by the server's clock, in milliseconds since the epoch, from the
 * data and the Stat of its node. -1: the node does not tell. */
int64_t held_since(const void *data, size_t n, const clave_stat *stat);

#endif
