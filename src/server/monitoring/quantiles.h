/* quantiles.h - quantiles of the values of the last one to two minutes, in constant memory: what
 * Prometheus calls a summary. The values are counted in ranges, sixteen of one value each and then
 * eight to each power of two. So a quantile is never too small, and at most an eighth too large.
 *
 * There are two windows of a minute: the present one, and the one before it. Both count. */
#ifndef CLAVE_SERVER_MONITORING_QUANTILES_H
#define CLAVE_SERVER_MONITORING_QUANTILES_H

#include <stdint.h>

enum { QUANTILES_WINDOW_MS = 60000, QUANTILES_RANGES = 240 };

struct quantiles {
    int64_t until; /* the present window; 0: nothing was noted yet */
    int present;
    uint32_t windows[2][QUANTILES_RANGES];
    int64_t sum; /* since the beginning */
    uint64_t count;
};

/* `n` times this value; below 0 counts as 0. Starts as zeros. Times are in ms of one clock. */
void clave__quantiles_note(struct quantiles *q, int64_t now, int64_t value, uint32_t n);
/* At least so many thousandths of the values were not above it. -1: there were none lately. */
int64_t clave__quantiles_at(const struct quantiles *q, int64_t now, unsigned thousandths);

#endif
