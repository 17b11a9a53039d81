/* sized_options.h - the one way to read a caller's options struct and to fill a caller's struct of
 * results. The rule is that of clave/options.h.
 *
 * A field that a later version adds must lie after the last byte of the previous struct, not in
 * the padding at its end: an older program may have left garbage there. */
#ifndef CLAVE_BASE_SIZED_OPTIONS_H
#define CLAVE_BASE_SIZED_OPTIONS_H

#include <stddef.h>

#include "clave/err.h"

/* No struct is larger than this: a size above it was never initialised. */
enum { OPTIONS_SIZE_MAX = 4096 };

/* Fills the struct at `dst`, whose first member is its size, from the caller's struct `src` (NULL:
 * the defaults). Sets dst's own size to dst_size. EINVAL: clave__options_fault says why, and `dst`
 * has the defaults. */
clave_err clave__options_take(void *dst, size_t dst_size, const void *src);

/* Why the options are refused: "has size 0 ...", to be appended to the name of the struct. NULL:
 * they are fine. Static text. */
const char *clave__options_fault(size_t dst_size, const void *src);

/* The other direction: fills the caller's struct at `dst`, whose first member gives its size, from
 * ours. Fields that this version does not know become 0. EINVAL: no struct has that size; nothing
 * is written. */
clave_err clave__options_give(void *dst, const void *src, size_t src_size);

#endif
