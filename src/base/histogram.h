/* histogram.h - how often values fell below each of some fixed bounds: Prometheus's classic
 * histogram. base/prometheus.h writes it. Noting a value costs a few comparisons and no
 * memory. */
#ifndef CLAVE_BASE_HISTOGRAM_H
#define CLAVE_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_MAX_BOUNDS = 16 };

/* Ascending, in the unit of the values. A static const; it outlives its histograms. */
struct histogram_bounds {
    size_t n;
    int64_t at[HISTOGRAM_MAX_BOUNDS];
};

struct histogram {
    const struct histogram_bounds *bounds;
    uint64_t counts[HISTOGRAM_MAX_BOUNDS + 1]; /* of the values up to each bound and above the one
                                                  before it; the last: above all */
    int64_t sum;
};

void clave__histogram_init(struct histogram *h, const struct histogram_bounds *bounds);
void clave__histogram_note(struct histogram *h, int64_t value);
/* Both have the same bounds. */
void clave__histogram_add(struct histogram *h, const struct histogram *more);
uint64_t clave__histogram_count(const struct histogram *h);

#endif
