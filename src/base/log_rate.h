/* log_rate.h - how often a line is written that others can cause without end. */
#ifndef CLAVE_BASE_LOG_RATE_H
#define CLAVE_BASE_LOG_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether one is written now: one a second, by a clock of milliseconds. */
static inline bool clave__log_may_tell(uint64_t *again_at, uint64_t now)
{
    enum { PAUSE_MS = 1000 };
    if (now < *again_at)
        return false;
    *again_at = now + PAUSE_MS;
    return true;
}

#endif
