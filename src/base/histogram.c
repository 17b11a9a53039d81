/* histogram.c - classic histograms; see histogram.h. The engines of server, client and gate note
 * values; their pages of metrics write them. */
#include "base/histogram.h"

#include <assert.h>

void clave__histogram_init(struct histogram *h, const struct histogram_bounds *bounds)
{
    assert(bounds->n > 0 && bounds->n <= HISTOGRAM_MAX_BOUNDS);
    *h = (struct histogram){.bounds = bounds};
}

void clave__histogram_note(struct histogram *h, int64_t value)
{
    size_t i = 0;
    while (i < h->bounds->n && value > h->bounds->at[i])
        i++;
    h->counts[i]++;
    h->sum += value;
}

void clave__histogram_add(struct histogram *h, const struct histogram *more)
{
    assert(h->bounds == more->bounds);
    for (size_t i = 0; i <= h->bounds->n; i++)
        h->counts[i] += more->counts[i];
    h->sum += more->sum;
}

uint64_t clave__histogram_count(const struct histogram *h)
{
    uint64_t n = 0;
    for (size_t i = 0; i <= h->bounds->n; i++)
        n += h->counts[i];
    return n;
}
