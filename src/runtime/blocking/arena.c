/* arena.c - see arena.h; cache.c, participants.c and deadlock.c call it. The two passes must add
 * the same texts in the same order. */
#include "runtime/blocking/arena.h"

#include <string.h>

const char *clave__arena_text(struct arena *p, const char *text)
{
    if (!text)
        return NULL;
    size_t len = strlen(text) + 1;
    const char *copy = p->at ? memcpy(p->at + p->n, text, len) : text;
    p->n += len;
    return copy;
}

void clave__arena_identity(struct arena *p, clave_identity *id)
{
    id->host = clave__arena_text(p, id->host);
    id->name = clave__arena_text(p, id->name);
    id->command = clave__arena_text(p, id->command);
    id->text = clave__arena_text(p, id->text);
    id->traceparent = clave__arena_text(p, id->traceparent);
    id->owner = clave__arena_text(p, id->owner);
    id->task = clave__arena_text(p, id->task);
}
