/* text.c - formatted text; see text.h. A piece that does not fit is dropped whole. */
#include "server/monitoring/text.h"

#include <stdarg.h>
#include <stdio.h>

static void text_append(struct text *t, const char *p, size_t n)
{
    clave_err err = clave__buf_append(t->out, p, n);
    if (t->err == CLAVE_OK)
        t->err = err;
}

void clave__text_put(struct text *t, const char *fmt, ...)
{
    char piece[TEXT_PIECE];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(piece, sizeof piece, fmt, ap);
    va_end(ap);
    text_append(t, piece, n < 0 ? 0 : (size_t)n < sizeof piece ? (size_t)n : sizeof piece - 1);
}

void clave__text_path(struct text *t, struct jbytes path)
{
    if (path.n > 0)
        text_append(t, path.p, (size_t)path.n);
}
