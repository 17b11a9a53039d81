/* deadlock_text.h - a deadlock in words. */
#ifndef CLAVE_RECIPE_DEADLOCK_DEADLOCK_TEXT_H
#define CLAVE_RECIPE_DEADLOCK_DEADLOCK_TEXT_H

#include "base/memory.h"
#include "clave/async/deadlock.h"

/* The text of a deadlock, to be freed by the caller. NULL: no memory. */
char *clave__deadlock_text(const struct clave_mem *mem, const clave_deadlock *d);

#endif
