/* retry.h - when to try again: Curator's policies, as plain data. */
#ifndef CLAVE_RETRY_H
#define CLAVE_RETRY_H

#include <stdint.h>

#include "clave/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum clave_retry_kind {
    CLAVE_RETRY_DEFAULT = 0, /* what the option it stands in says */
    CLAVE_RETRY_NEVER,
    CLAVE_RETRY_N_TIMES,     /* `times` retries, `base_ms` apart; once: times = 1 */
    CLAVE_RETRY_FOREVER,     /* `base_ms` apart */
    CLAVE_RETRY_EXPONENTIAL, /* base * random in [1, 2^(n+1)), at most max_ms (0: no bound),
                                at most `times` retries (0: for ever) */
    CLAVE_RETRY_UNTIL,       /* `base_ms` apart until elapsed_ms have passed since the first */
} clave_retry_kind;

typedef struct clave_retry {
    clave_retry_kind kind;
    int32_t base_ms;
    int32_t max_ms;
    int32_t times;
    int64_t elapsed_ms;
} clave_retry;

/* How long to wait before retry number `n` (0: the first), `elapsed_ms` after the first
 * attempt, with 64 random bits; negative: give up. Pure. */
CLAVE_EXPORT int64_t clave_retry_delay(const clave_retry *r, int32_t n, int64_t elapsed_ms,
                                       uint64_t random);

#ifdef __cplusplus
}
#endif
#endif
