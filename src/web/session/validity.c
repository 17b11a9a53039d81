/* validity.c - see validity.h. Called for every answer that says how long. */
#include "web/session/validity.h"

#include <assert.h>

int64_t clave__validity_ms(const struct validity *v)
{
    assert(v->now >= v->arrived);
    int64_t from = v->arrived > v->granted ? v->arrived : v->granted;
    int64_t until = from + v->ttl_ms;
    if (v->hold_deadline < until)
        until = v->hold_deadline;
    if (until <= v->arrived)
        return 0;
    int64_t ms = until - v->arrived - (v->now - v->arrived + VALIDITY_RATE - 1) / VALIDITY_RATE;
    return ms > 0 ? ms : 0;
}
