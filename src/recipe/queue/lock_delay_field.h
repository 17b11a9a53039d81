/* lock_delay_field.h - the field by which a lock node says that its owner uses a lock delay, and
 * the token in the mark of one. */
#ifndef CLAVE_RECIPE_QUEUE_LOCK_DELAY_FIELD_H
#define CLAVE_RECIPE_QUEUE_LOCK_DELAY_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A field of a lock node for others to read: its owner uses a lock delay
 * (clave/async/lock_delay.h), so that a grant alone does not begin its work. Appends it to data of
 * that form, n of cap bytes, if it fits; returns the new length. */
size_t clave__lock_delay_field_put(char *data, size_t n, size_t cap);
bool clave__lock_delay_field_is_set(const void *data, size_t n);
/* The token of the holder whose mark of a lock delay this is; 0: it is no mark. */
int64_t clave__lock_delay_mark_token(const void *data, size_t n);

#endif
