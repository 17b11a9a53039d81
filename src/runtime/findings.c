/* findings.c - see findings.h. Called by those who check settings. */
#include "runtime/findings.h"

#include <string.h>

struct findings clave__findings_in(const struct fault *f)
{
    return (struct findings){CLAVE_OK, *f};
}

/* A text that fills the buffer is the last. */
void clave__findings_add(struct findings *all, clave_err err)
{
    struct fault *next = &all->next;
    if (err == CLAVE_OK)
        return;
    if (all->err == CLAVE_OK || err == CLAVE_EINVAL)
        all->err = err;
    size_t n = strlen(next->text) + 1;
    if (n == 1 || n >= next->cap)
        return;
    next->text[n - 1] = '\n';
    next->text[n] = '\0';
    *next = (struct fault){next->text + n, next->cap - n};
}
