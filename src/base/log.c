/* log.c - formats a log line and calls the hook; see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void clave__log(const struct log *l, int level, const char *fmt, ...)
{
    char line[512];
    va_list ap;
    if (!l->cb)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    l->cb(l->arg, level, line);
}
