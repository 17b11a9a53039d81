/* deadlock_text.h - a deadlock in words. */
#ifndef CLAVE_RECIPE_DEADLOCK_DEADLOCK_TEXT_H
#define CLAVE_RECIPE_DEADLOCK_DEADLOCK_TEXT_H

#include "base/memory.h"
#include "clave/async/deadlock.h"

/* For the caller to free. NULL: no memory. */
char *clave__deadlock_text(const struct clave_mem *mem, const clave_deadlock *d);

#endif
