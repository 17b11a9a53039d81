/* arena.h - the texts of an answer, one behind the other in one block: measured first, then copied.
 */
#ifndef CLAVE_RUNTIME_BLOCKING_ARENA_H
#define CLAVE_RUNTIME_BLOCKING_ARENA_H

#include "clave/async/mutex.h"

struct arena {
    char *at; /* NULL: they are only measured */
    size_t n; /* so many bytes so far */
};

/* The copy; while measuring the text itself. NULL stays NULL. */
const char *clave__arena_text(struct arena *p, const char *text);
/* All texts of the identity, which points to the copies then. */
void clave__arena_identity(struct arena *p, clave_identity *id);

#endif
