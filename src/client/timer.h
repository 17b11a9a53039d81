/* timer.h - deadlines in an intrusive pairing heap, so that setting one cannot fail. */
#ifndef CLAVE_CLIENT_TIMER_H
#define CLAVE_CLIENT_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    struct timer *child, *next, *prev; /* prev: the left sibling or the parent */
    int64_t at;
    uint64_t seq; /* timers due at the same time fire in the order in which they were set */
    bool armed;
    void (*fire)(struct timer *t, int64_t now);
};

struct timers {
    struct timer *root;
    uint64_t seq;
};

static inline void clave__timer_init(struct timer *t, void (*fire)(struct timer *t, int64_t now))
{
    *t = (struct timer){.fire = fire};
}

void clave__timers_set(struct timers *ts, struct timer *t, int64_t at); /* re-arms */
void clave__timers_clear(struct timers *ts, struct timer *t);           /* harmless when idle */

/* When the next timer is due; INT64_MAX: there is none. */
static inline int64_t clave__timers_next(const struct timers *ts)
{
    return ts->root ? ts->root->at : INT64_MAX;
}

/* Removes and returns the earliest timer due at `now`; NULL: none is due. */
struct timer *clave__timers_pop(struct timers *ts, int64_t now);

#endif
