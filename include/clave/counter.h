/* counter.h - a number that several processes change, blocking, for threads: Curator's
 * DistributedAtomicLong. The asynchronous form, which explains how each change is done exactly
 * once, is clave/async/counter.h.
 *
 *     err = clave_counter_new(&orders, client, "/counters/orders");
 *     if (err == CLAVE_OK)
 *         err = clave_counter_add(orders, 1, 5000, &change);
 *
 * Any thread may call anything here, several at a time; on the loop's thread (in a callback) what
 * waits returns ELOOPTHREAD. timeout_ms is in milliseconds; negative: no limit. */
#ifndef CLAVE_COUNTER_H
#define CLAVE_COUNTER_H

#include "clave/async/counter.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_counter clave_counter; /* opaque */

/* A change that was made. */
typedef struct clave_counter_change {
    int64_t before;
    int64_t after;
} clave_counter_change;

/* Makes a counter; does not contact the server. On CLAVE_OK *out belongs to the caller, who frees
 * it with clave_counter_free; on an error it is NULL. It may outlive the session (see
 * clave_client_close). EPATH: the path is not valid. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_counter_new(clave_counter **out, clave_client *c, const char *path);
/* Frees it. NULL is ignored. */
CLAVE_EXPORT void clave_counter_free(clave_counter *n);

/* Each as the call of its name in clave/async/counter.h, and ETIMEDOUT: no answer in time, so the
 * change may be made, now or later. `change` (may be NULL) receives the values, with CLAVE_OK
 * only. */
CLAVE_METHOD clave_err clave_counter_get(clave_counter *n, int64_t timeout_ms, int64_t *value);
/* Adds `delta`; see above. */
CLAVE_METHOD clave_err clave_counter_add(clave_counter *n, int64_t delta, int64_t timeout_ms,
                                         clave_counter_change *change);
/* Sets the value, whatever it is; see above. */
CLAVE_METHOD clave_err clave_counter_set(clave_counter *n, int64_t value, int64_t timeout_ms,
                                         clave_counter_change *change);
/* Sets the value if it is `expected`; see above. EBADVERSION: it is another one. ENONODE. */
CLAVE_METHOD clave_err clave_counter_compare_and_set(clave_counter *n, int64_t expected,
                                                     int64_t value, int64_t timeout_ms,
                                                     clave_counter_change *change);

#ifdef __cplusplus
}
#endif
#endif
