#include "drive/press.h"

#include <string.h>

const char *clave__press_text(struct press *p, const char *text)
{
    if (!text)
        return NULL;
    size_t len = strlen(text) + 1;
    const char *copy = p->at ? memcpy(p->at + p->n, text, len) : text;
    p->n += len;
    return copy;
}

void clave__press_identity(struct press *p, clave_identity *id)
{
    id->host = clave__press_text(p, id->host);
    id->name = clave__press_text(p, id->name);
    id->command = clave__press_text(p, id->command);
    id->text = clave__press_text(p, id->text);
    id->owner = clave__press_text(p, id->owner);
    id->task = clave__press_text(p, id->task);
}
