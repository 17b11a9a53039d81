/* quantiles.h - quantiles of the values of the last one to two minutes, in constant memory: what
 * Prometheus calls a summary.
 *
 * Values are counted in ranges: sixteen ranges of a single value each, then eight for each power of
 * two. So a quantile is never too small, and at most an eighth too large. There are two windows of
 * one minute, the present one and the one before, and both count. */
#ifndef CLAVE_SERVER_MONITORING_QUANTILES_H
#define CLAVE_SERVER_MONITORING_QUANTILES_H

#include <stdint.h>

enum { QUANTILES_WINDOW_MS = 60000, QUANTILES_RANGES = 240 };

struct quantiles {
    int64_t until; /* end of the present window; 0: nothing was noted yet */
    int present;
    uint32_t windows[2][QUANTILES_RANGES];
    int64_t sum; /* of all values since the start */
    uint64_t count;
};

/* Notes a value `n` times; a negative one counts as 0. A zeroed struct is empty. `now` is in ms,
 * always by the same clock. */
void clave__quantiles_note(struct quantiles *q, int64_t now, int64_t value, uint32_t n);
/* The smallest value that at least `thousandths` thousandths of the recent values do not exceed.
 * -1: there are none. */
int64_t clave__quantiles_at(const struct quantiles *q, int64_t now, unsigned thousandths);

#endif
