/* options.h - the one way in which an options struct is taken, and a struct of results given.
 * The rule is that of clave/options.h.
 *
 * A field that a later version adds must lie behind the last byte of the struct before, not in the
 * padding at its end: there an older program may have left anything. */
#ifndef CLAVE_BASE_OPTIONS_H
#define CLAVE_BASE_OPTIONS_H

#include <stddef.h>

#include "clave/err.h"

/* No struct is larger: a size that says so was never set. */
enum { OPTIONS_SIZE_MAX = 4096 };

/* Fills the struct at `dst` of dst_size bytes, whose first member is its size, from the caller's.
 * Its size is dst_size then. EINVAL: `dst` has the defaults. */
clave_err clave__options_take(void *dst, size_t dst_size, const void *src);

/* Why they are refused: "has size 0 ...", to be put behind the name of the struct. NULL: they are
 * not. Static. */
const char *clave__options_fault(size_t dst_size, const void *src);

/* The other way: fills the caller's struct at `dst`, which says its size, from ours. What we do not
 * know is 0. EINVAL: nothing is written. */
clave_err clave__options_give(void *dst, const void *src, size_t src_size);

#endif
