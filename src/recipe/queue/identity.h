/* identity.h - who a lock node says it belongs to. */
#ifndef CLAVE_RECIPE_QUEUE_IDENTITY_H
#define CLAVE_RECIPE_QUEUE_IDENTITY_H

#include "base/memory.h"
#include "clave/async/mutex.h"

/* Reads what a node holds: clave's form, or printable text. `data` has n bytes and a NUL
 * after them; it is changed in place, and `out` points into it. */
void clave__identity_parse(char *data, size_t n, clave_identity *out);
/* Is it a `traceparent` of W3C Trace Context, of this or a later version? */
bool clave__identity_is_traceparent(const char *text);
/* Is it clave's form? Then more fields of clave_identity_format, without its first line, may be
 * appended. */
bool clave__identity_is_form(const void *data, size_t n);
/* Is it the request of Curator's Revoker, which has replaced what the node said? */
bool clave__identity_is_request(const void *data, size_t n);
/* The data, of that form or empty, with the fields of `more` after it, for the caller to free.
 * NULL: no memory. */
char *clave__identity_extend(const struct clave_mem *mem, const void *data, size_t n,
                             const clave_identity *more, size_t *out);

/* A field that only some recipes write, escaped as the others are. Appends it to data of that form,
 * n of cap bytes, and returns the new length, whether it fits or not. `value` NULL: nothing. */
size_t clave__identity_put_field(char *data, size_t n, size_t cap, const char *key,
                                 const char *value);
/* The value of a field, cut to what fits; false, and "": there is none. */
bool clave__identity_get_field(const void *data, size_t n, const char *key, char *out, size_t cap);

/* Where the value of the first line "key=value" begins, up to `end`; NULL: there is none. */
const char *clave__identity_find_value(const char *data, const char *end, const char *key);
/* 0: it is not a positive decimal number. */
int64_t clave__identity_number(const char *text);

/* A field of a lock node for others to read: its owner uses a lock delay
 * (clave/async/lock_delay.h), so that a grant alone does not begin its work. Appends it to data of
 * that form, n of cap bytes, if it fits; returns the new length. */
size_t clave__lock_delay_field_put(char *data, size_t n, size_t cap);
bool clave__lock_delay_field_is_set(const void *data, size_t n);
/* The token of the holder whose mark of a lock delay this is; 0: it is no mark. */
int64_t clave__lock_delay_mark_token(const void *data, size_t n);

#endif
