/* deadline.h - arithmetic with moments of one monotonic clock, in milliseconds. INT64_MAX, which
 * the layers above call CLAVE_NEVER, is never. */
#ifndef CLAVE_BASE_DEADLINE_H
#define CLAVE_BASE_DEADLINE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

static inline int64_t deadline_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ms >= 0 after now; a moment that cannot be expressed is never. */
static inline int64_t deadline_after(int64_t now, int64_t ms)
{
    assert(ms >= 0);
    return ms < INT64_MAX - now ? now + ms : INT64_MAX;
}

/* 0 once it has passed. */
static inline int64_t deadline_left(int64_t deadline, int64_t now)
{
    return deadline > now ? deadline - now : 0;
}

/* Is it at least ms after now? INT64_MIN, which has passed for ever, never is. */
static inline bool deadline_lasts(int64_t deadline, int64_t now, int64_t ms)
{
    return deadline >= now && deadline - now >= ms;
}

#endif
