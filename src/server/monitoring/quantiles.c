/* quantiles.c - quantiles of recent values; see quantiles.h. The server notes the time of each
 * request, so noting has to be cheap. */
#include "server/monitoring/quantiles.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Values below EXACT have a range each; above, there are EXACT / 2 ranges for each power of two. */
enum { EXACT = 16, BITS = 3, MOST_BITS = 32 };
_Static_assert(QUANTILES_RANGES == EXACT + (MOST_BITS - BITS - 1) * EXACT / 2, "one range a place");

static size_t quantiles_range(int64_t value)
{
    uint64_t v = value > 0 ? (uint64_t)value : 0;
    if (v > UINT32_MAX)
        v = UINT32_MAX;
    unsigned shift = 0;
    if (v < EXACT)
        return (size_t)v;
    while (v >> shift >= EXACT)
        shift++;
    return EXACT + (shift - 1) * EXACT / 2 + (size_t)(v >> shift) - EXACT / 2;
}

/* The largest value in a range. */
static int64_t quantiles_most(size_t range)
{
    if (range < EXACT)
        return (int64_t)range;
    size_t shift = (range - EXACT) / (EXACT / 2) + 1, at = (range - EXACT) % (EXACT / 2);
    return (int64_t)((at + EXACT / 2 + 1) << shift) - 1;
}

static void quantiles_turn(struct quantiles *q, int64_t now)
{
    if (now >= q->until + QUANTILES_WINDOW_MS)
        memset(q->windows, 0, sizeof q->windows);
    q->present = !q->present;
    memset(q->windows[q->present], 0, sizeof *q->windows);
    q->until = now + QUANTILES_WINDOW_MS;
}

void clave__quantiles_note(struct quantiles *q, int64_t now, int64_t value, uint32_t n)
{
    if (now >= q->until)
        quantiles_turn(q, now);
    q->windows[q->present][quantiles_range(value)] += n;
    q->sum += (value > 0 ? value : 0) * n;
    q->count += n;
}

/* The count of a range in the windows that still matter. A window that is too old does not count,
 * even if no new value has come to replace it. */
static uint64_t quantiles_recent(const struct quantiles *q, int64_t now, size_t range)
{
    uint64_t n = 0;
    if (now < q->until)
        n += q->windows[!q->present][range];
    if (now < q->until + QUANTILES_WINDOW_MS)
        n += q->windows[q->present][range];
    return n;
}

int64_t clave__quantiles_at(const struct quantiles *q, int64_t now, unsigned thousandths)
{
    assert(thousandths <= 1000);
    uint64_t all = 0, below = 0;
    for (size_t i = 0; i < QUANTILES_RANGES; i++)
        all += quantiles_recent(q, now, i);
    uint64_t wanted = (all * thousandths + 999) / 1000;
    for (size_t i = 0; all > 0 && i < QUANTILES_RANGES; i++) {
        below += quantiles_recent(q, now, i);
        if (below >= wanted)
            return quantiles_most(i);
    }
    return -1;
}
