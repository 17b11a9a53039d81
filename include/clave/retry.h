/* retry.h - when to try again: Curator's retry policies, as plain data. Any thread may call
 * anything here. */
#ifndef CLAVE_RETRY_H
#define CLAVE_RETRY_H

#include <stdint.h>

#include "clave/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum clave_retry_kind {
    CLAVE_RETRY_DEFAULT = 0, /* the default of the option that this policy is for */
    CLAVE_RETRY_NEVER,
    CLAVE_RETRY_N_TIMES,     /* `times` retries, `base_ms` apart; to retry once, times = 1 */
    CLAVE_RETRY_FOREVER,     /* retries without end, `base_ms` apart */
    CLAVE_RETRY_EXPONENTIAL, /* base * random in [1, 2^(n+1)), at most max_ms (0: no bound),
                                at most `times` retries (0: no limit) */
    CLAVE_RETRY_UNTIL,       /* retries `base_ms` apart until elapsed_ms have passed since the first
                                attempt */
} clave_retry_kind;

/* No field may be negative. A field that the kind does not use is ignored, except with
 * CLAVE_RETRY_DEFAULT, where every other field must be 0: a policy without a kind is a mistake.
 * Options with a policy outside these ranges are refused with EINVAL when the client is created;
 * clave_async_client_options_fault says why. Times are in milliseconds. */
typedef struct clave_retry {
    clave_retry_kind kind; /* one of those above */
    int32_t base_ms; /* N_TIMES: 0 (at once) or more; FOREVER, EXPONENTIAL, UNTIL: 1 or more */
    int32_t max_ms; /* EXPONENTIAL: 0 (no bound) or more; if below base_ms, every delay is max_ms */
    int32_t times;  /* N_TIMES: 0 (never) or more; EXPONENTIAL: 0 (no limit) or more */
    int64_t elapsed_ms; /* UNTIL: 1 or more */
} clave_retry;

/* The delay in milliseconds before retry number `n` (0: the first), when `elapsed_ms` have passed
 * since the first attempt; `random` is 64 random bits. Negative: give up. Does not check the ranges
 * above, and has no side effects. */
CLAVE_EXPORT int64_t clave_retry_delay(const clave_retry *r, int32_t n, int64_t elapsed_ms,
                                       uint64_t random);

#ifdef __cplusplus
}
#endif
#endif
