/* async/counter.h - a number that several processes change: Curator's DistributedAtomicLong, in its
 * layout, a persistent node of eight bytes, the highest first; a missing or empty one is 0.
 *
 * Each change is done exactly once, also when its answer is lost. (Curator repeats the write, and
 * counts twice.) It is one transaction with a write to a marker, an ephemeral node of this object
 * in the container PATH-markers: after a lost answer the same transaction is sent again, and fails
 * if the marker shows that it was done before. Only if the session is lost together with the answer
 * the outcome stays unknown, and is told as unknown: ECONNLOSS. The marker goes with the object, or
 * with the session.
 *
 * Changes of one object are made one after another, in the order of the calls. A change that others
 * have overtaken is tried again until it succeeds.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. The blocking form
 * is clave/counter.h. */
#ifndef CLAVE_ASYNC_COUNTER_H
#define CLAVE_ASYNC_COUNTER_H

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_counter clave_async_counter; /* opaque */

/* `before` and `after` are the values of the change, or the value twice, if err is CLAVE_OK. The
 * callback may free the counter. */
typedef void clave_async_counter_cb(clave_async_counter *n, clave_err err, int64_t before,
                                    int64_t after, void *arg);

/* Makes a counter; does not contact the server. On CLAVE_OK *out belongs to the caller, who frees
 * it with clave_async_counter_free; on an error it is NULL. EPATH: the path is not valid. ENOMEM.
 */
CLAVE_MAKING clave_err clave_async_counter_new(clave_async_counter **out, clave_async_client *c,
                                               const char *path);
/* Deletes the marker and frees; no callback follows, and a change that was sent may still be done.
 * NULL is ignored. */
CLAVE_EXPORT void clave_async_counter_free(clave_async_counter *n);

/* Reads the value, as current as the leader. cb runs once, later, unless the counter is freed
 * before; so it does for the calls below. EINVAL: the node has other data than eight bytes.
 * ENOAUTH. ECLOSED. At once: ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_counter_get(clave_async_counter *n, clave_async_counter_cb *cb,
                                               void *arg);
/* Adds `delta`, which may be negative; creates the node and its parents if they are missing.
 * ECONNLOSS: the session was lost together with the answer, so it may have been done. EINVAL: the
 * sum has more than 64 bits, or the data are no counter's. ENOAUTH, EQUOTA and others of
 * clave_async_multi: nothing was done. At once: as above. */
CLAVE_METHOD clave_err clave_async_counter_add(clave_async_counter *n, int64_t delta,
                                               clave_async_counter_cb *cb, void *arg);
/* Sets the value, whatever it is. Otherwise as clave_async_counter_add. */
CLAVE_METHOD clave_err clave_async_counter_set(clave_async_counter *n, int64_t value,
                                               clave_async_counter_cb *cb, void *arg);
/* Sets the value if it is `expected`. EBADVERSION: it is another one. ENONODE: there is no node; it
 * is not created. Otherwise as clave_async_counter_add. */
CLAVE_METHOD clave_err clave_async_counter_compare_and_set(clave_async_counter *n, int64_t expected,
                                                           int64_t value,
                                                           clave_async_counter_cb *cb, void *arg);

#ifdef __cplusplus
}
#endif
#endif
