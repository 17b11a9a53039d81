/* identity.h - what a lock node says about its owner. */
#ifndef CLAVE_RECIPE_QUEUE_IDENTITY_H
#define CLAVE_RECIPE_QUEUE_IDENTITY_H

#include "base/memory.h"
#include "clave/async/mutex.h"

/* Parses the data of a node, which is in clave's form or printable text. `data` has n bytes
 * followed by a NUL; it is modified in place, and `out` points into it. */
void clave__identity_parse(char *data, size_t n, clave_identity *out);
/* True if this is a `traceparent` of W3C Trace Context, of the present or a later version. */
bool clave__identity_is_traceparent(const char *text);
/* True if this is clave's form. Then more fields as written by clave_identity_format, without its
 * first line, may be appended. */
bool clave__identity_is_form(const void *data, size_t n);
/* True if this is the request of Curator's Revoker, which has replaced what the node said. */
bool clave__identity_is_request(const void *data, size_t n);
/* Data in that form, or empty data, followed by the fields of `more`; to be freed by the caller.
 * NULL: no memory. */
char *clave__identity_extend(const struct clave_mem *mem, const void *data, size_t n,
                             const clave_identity *more, size_t *out);

/* Data in clave's form with the fields of `id`, followed by those fields of `base` that an identity
 * has no place for, because other recipes or versions have written them. The time of the grant is
 * told in digits, since the write changes the mtime of `stat`. To be freed by the caller; NULL: no
 * memory. */
char *clave__identity_rewrite(const struct clave_mem *mem, const clave_identity *id,
                              const void *base, size_t n, const clave_stat *stat, size_t *out);

/* Appends a field that only some recipes write, escaped like the others, to data in that form of n
 * bytes with room for cap. Returns the new length, whether or not it fits. If `value` is NULL,
 * appends nothing. */
size_t clave__identity_put_field(char *data, size_t n, size_t cap, const char *key,
                                 const char *value);
/* Copies the value of a field, cut to what fits. Returns false, and "", if there is none. */
bool clave__identity_get_field(const void *data, size_t n, const char *key, char *out, size_t cap);

/* Where the value of the first line "key=value" begins, searching up to `end`; NULL: there is
 * none. */
const char *clave__identity_find_value(const char *data, const char *end, const char *key);
/* The number in this text; 0: it is not a positive decimal number. */
int64_t clave__identity_number(const char *text);

/* Fields with which a client tells when it was granted the lock: WAITED, that its node was created
 * then; GRANTED takes the place of that after a wait, in the newest write to the node; AT, in
 * milliseconds since 1970, stays true when there are further writes. */
#define CLAVE_GRANTED_WAITED "granted=ctime\n"
#define CLAVE_GRANTED_GRANTED "granted=mtime\n"
#define CLAVE_GRANTED_AT "granted-at"
/* When the lock was granted according to these fields, by the servers' clock; -1: they do not say.
 * *promised: the time is right unless the client had to wait. */
int64_t clave__identity_granted(const void *data, size_t n, const clave_stat *stat, bool *promised);

/* Appends a field to data in that form, of n bytes with room for cap, if it fits, and returns the
 * new length. The field tells other clients that the owner uses a lock delay
 * (clave/async/lock_delay.h), so that being granted the lock does not yet mean that its work
 * begins. */
size_t clave__lock_delay_field_put(char *data, size_t n, size_t cap);
bool clave__lock_delay_field_is_set(const void *data, size_t n);
/* If this is the mark of a lock delay: the token of the holder that left it; otherwise 0. */
int64_t clave__lock_delay_mark_token(const void *data, size_t n);

#endif
