/* check.h - walks over whole structures, in builds that look for faults (CLAVE_CHECKS: Debug and
 * the sanitizers; CMakeLists.txt). A module with invariants has a function _check that walks all of
 * them, and calls it where its functions begin and end. In other builds it does nothing.
 *
 * A walk takes time in the size of the structure, so large ones are walked at few sizes only. There
 * is no counter of calls: the same play makes the same walks, and a trace does not change. */
#ifndef CLAVE_BASE_CHECK_H
#define CLAVE_BASE_CHECK_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* As assert; but what it names counts as used where asserts are compiled to nothing. */
#define CHECK(fine) ((void)sizeof(fine), assert(fine))

/* True if a structure with so many elements is to be walked now. */
static inline bool clave__check_is_due(size_t count)
{
#ifdef CLAVE_CHECKS
    enum { SMALL = 64 };
    return count <= SMALL || (count & (count - 1)) == 0;
#else
    (void)count;
    return false;
#endif
}

#endif
