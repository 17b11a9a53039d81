/* backoff.c - retry policies (clave/retry.h): how long to wait before the n-th attempt, and what is
 * wrong with a policy. The client uses them for reconnects and reads; the delay is public, for
 * retries of the user's own. */
#include "clave/retry.h"

#include "client/client_internal.h"

/* The same bound as in Curator's ExponentialBackoffRetry. */
enum { MAX_DOUBLINGS = 29 };

static int64_t backoff_exponential(const clave_retry *r, int32_t n, uint64_t random)
{
    int32_t doublings = n + 1 < MAX_DOUBLINGS ? n + 1 : MAX_DOUBLINGS;
    uint64_t span = (UINT64_C(1) << doublings) - 1;
    int64_t factor = (int64_t)(1 + random % span);
    int64_t delay = r->base_ms * factor;
    return r->max_ms > 0 && delay > r->max_ms ? r->max_ms : delay;
}

enum retry_fault clave__retry_fault(const clave_retry *r)
{
    bool zeros = r->base_ms == 0 && r->max_ms == 0 && r->times == 0 && r->elapsed_ms == 0;
    /* These have no bound on their attempts, or only one in time, and would retry as fast as they
     * can. */
    bool needs_pause = r->kind == CLAVE_RETRY_FOREVER || r->kind == CLAVE_RETRY_EXPONENTIAL ||
                       r->kind == CLAVE_RETRY_UNTIL;
    if ((unsigned)r->kind > CLAVE_RETRY_UNTIL)
        return RETRY_FAULT_KIND;
    if (r->base_ms < 0 || r->max_ms < 0 || r->times < 0 || r->elapsed_ms < 0)
        return RETRY_FAULT_NEGATIVE;
    if (r->kind == CLAVE_RETRY_DEFAULT && !zeros)
        return RETRY_FAULT_NO_KIND;
    if (needs_pause && r->base_ms == 0)
        return RETRY_FAULT_NO_PAUSE;
    if (r->kind == CLAVE_RETRY_UNTIL && r->elapsed_ms == 0)
        return RETRY_FAULT_NO_TIME;
    return RETRY_FAULT_NONE;
}

int64_t clave_retry_delay(const clave_retry *r, int32_t n, int64_t elapsed_ms, uint64_t random)
{
    switch (r->kind) {
    case CLAVE_RETRY_N_TIMES:
        return n < r->times ? r->base_ms : -1;
    case CLAVE_RETRY_FOREVER:
        return r->base_ms;
    case CLAVE_RETRY_EXPONENTIAL:
        return r->times > 0 && n >= r->times ? -1 : backoff_exponential(r, n, random);
    case CLAVE_RETRY_UNTIL:
        return elapsed_ms < r->elapsed_ms ? r->base_ms : -1;
    case CLAVE_RETRY_DEFAULT:
    case CLAVE_RETRY_NEVER:
        break;
    }
    return -1;
}
