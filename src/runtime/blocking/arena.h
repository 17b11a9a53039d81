/* arena.h - the texts of an answer, packed one after another into one block: measured first, then
 * copied. */
#ifndef CLAVE_RUNTIME_BLOCKING_ARENA_H
#define CLAVE_RUNTIME_BLOCKING_ARENA_H

#include "clave/async/mutex.h"

struct arena {
    char *at; /* NULL: only measure */
    size_t n; /* bytes used so far */
};

/* Returns the copy, or the text itself while measuring. NULL stays NULL. */
const char *clave__arena_text(struct arena *p, const char *text);
/* Copies all texts of the identity and makes it point to the copies. */
void clave__arena_identity(struct arena *p, clave_identity *id);

#endif
