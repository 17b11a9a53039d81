/* log_line.c - formats a log line and calls the hook; see log_line.h. */
#include "base/log_line.h"

#include <stdio.h>

void clave__log_list(const struct log *l, int level, const struct log_about *about, const char *fmt,
                     va_list ap)
{
    char line[2048]; /* of a start that is refused: two paths and what to do */
    if (!l->cb || (l->level && level > *l->level))
        return;
    vsnprintf(line, sizeof line, fmt, ap);
    if (l->about_cb)
        l->about_cb(l->arg, level, line, about);
    else
        l->cb(l->arg, level, line);
}

void clave__log(const struct log *l, int level, const char *fmt, ...)
{
    static const struct log_about nothing = {0};
    va_list ap;
    va_start(ap, fmt);
    clave__log_list(l, level, &nothing, fmt, ap);
    va_end(ap);
}

void clave__log_about(const struct log *l, int level, const struct log_about *about,
                      const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    clave__log_list(l, level, about, fmt, ap);
    va_end(ap);
}
