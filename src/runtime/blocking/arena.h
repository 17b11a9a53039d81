/* arena.h - the texts of an answer, packed into one block: they are measured first and then copied.
 * The two passes must add the same texts in the same order. */
#ifndef CLAVE_RUNTIME_BLOCKING_ARENA_H
#define CLAVE_RUNTIME_BLOCKING_ARENA_H

#include <string.h>

#include "clave/async/mutex.h"

struct arena {
    char *at; /* NULL: only measure */
    size_t n; /* bytes used so far */
};

/* Adds a text; returns the copy or, while measuring, the text itself. NULL stays NULL. */
static inline const char *arena_text(struct arena *p, const char *text)
{
    if (!text)
        return NULL;
    size_t len = strlen(text) + 1;
    const char *copy = p->at ? memcpy(p->at + p->n, text, len) : text;
    p->n += len;
    return copy;
}

/* Adds all texts of the identity, and makes it point to the copies. */
static inline void arena_identity(struct arena *p, clave_identity *id)
{
    id->host = arena_text(p, id->host);
    id->name = arena_text(p, id->name);
    id->command = arena_text(p, id->command);
    id->text = arena_text(p, id->text);
    id->traceparent = arena_text(p, id->traceparent);
    id->owner = arena_text(p, id->owner);
    id->task = arena_text(p, id->task);
}

#endif
