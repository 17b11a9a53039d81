/* log_line.c - formats a log line and calls the hook; see log_line.h. */
#include "base/log_line.h"

#include <stdarg.h>
#include <stdio.h>

void clave__log(const struct log *l, int level, const char *fmt, ...)
{
    char line[2048]; /* of a start that is refused: two paths and what to do */
    va_list ap;
    if (!l->cb)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    l->cb(l->arg, level, line);
}

bool clave__log_may_tell(uint64_t *again_at, uint64_t now)
{
    enum { PAUSE_MS = 1000 };
    if (now < *again_at)
        return false;
    *again_at = now + PAUSE_MS;
    return true;
}
