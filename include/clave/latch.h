/* latch.h - a candidate of an election, blocking, for threads: Curator's LeaderLatch. The
 * asynchronous form, which describes the options, the events and the states, is
 * clave/async/latch.h; both forms share one queue. Leadership as a function call is
 * clave/selector.h.
 *
 * Threads  any thread may call anything here. On the loop's thread (in a callback) the calls that
 *          wait return ELOOPTHREAD.
 * Times    timeout_ms is in milliseconds from now; negative: no limit. */
#ifndef CLAVE_LATCH_H
#define CLAVE_LATCH_H

#include "clave/async/latch.h"
#include "clave/grant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_latch clave_latch; /* opaque */

/* Makes a candidate, which is not started yet; does not contact the server. On CLAVE_OK *out
 * belongs to the caller, who frees it with clave_latch_free; on an error it is NULL. `o` is as for
 * clave_async_latch_new and may be NULL; its event callback runs on the loop's thread. The latch
 * may outlive the session: see clave_client_close. EPATH: the path is not valid. EINVAL: an option
 * is out of range. ENOMEM. ECLOSED: the session has ended. */
CLAVE_MAKING clave_err clave_latch_new(clave_latch **out, clave_client *client, const char *path,
                                       const clave_latch_options *o);
/* Closes the candidate without an event, waits at most a second for the server to confirm, and
 * frees it. No thread may be waiting in it. NULL is ignored. */
CLAVE_EXPORT void clave_latch_free(clave_latch *l);

/* Enters the election; does not wait. EINVAL: it was started before. ETOOBIG: the id is too long.
 * ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_latch_start(clave_latch *l);
/* Gives up leadership, or the place in the queue, and goes to the end of the queue; does not wait.
 * After the standard policy has ended a term, this call also declares that the term's work has
 * stopped. EINVAL: it is not started. ENOMEM: nothing was done. ECLOSED. */
CLAVE_METHOD clave_err clave_latch_resign(clave_latch *l);
/* Leaves the election for good, and returns when its node is certainly gone. EINVAL: it is not
 * started. ETIMEDOUT: closed, and the delete continues in the background. ENOMEM: nothing was done.
 * ECLOSED. */
CLAVE_METHOD clave_err clave_latch_close(clave_latch *l, clave_latch_close_mode mode,
                                         int64_t timeout_ms);

/* Waits until it leads. EBUSY, EUNREACHABLE: it did not lead in time, with the same distinction as
 * in clave_mutex_acquire. EINVAL, at once: it was never started. ECANCELED: clave_latch_cancel.
 * ECLOSED: it was closed, perhaps by another thread. ENOAUTH and others: the `why` of the event
 * FAILED. */
CLAVE_METHOD clave_err clave_latch_await(clave_latch *l, int64_t timeout_ms);
/* Waits until the present term is over, by the policy or by the hold deadline, even if this
 * candidate leads the next term as well. CLAVE_OK: the term is over, or it did not lead. EBUSY: it
 * still leads. ECLOSED. */
CLAVE_METHOD clave_err clave_latch_await_loss(clave_latch *l, int64_t timeout_ms);
/* Makes every clave_latch_await that waits in another thread return ECANCELED. Its place in the
 * queue remains. Does not wait; also legal in callbacks. */
CLAVE_METHOD void clave_latch_cancel(clave_latch *l);

/* True while it certainly leads. Answered from memory, without waiting for the network. */
CLAVE_METHOD bool clave_latch_has_leadership(clave_latch *l);
/* The grant of the leadership, as clave_mutex_grant but for any thread. Its token is the term,
 * which grows with every LEADER event of any candidate. ENOTHELD: it does not lead. ENOMEM.
 * ECLOSED. */
CLAVE_METHOD clave_err clave_latch_grant(clave_latch *l, clave_grant **out);

/* Publishes a value for clients that follow the leader, as clave_async_latch_publish, and waits
 * until that is done. ENOTHELD: it does not lead. ELOST: it no longer leads, and nothing was done.
 * EINVAL: the path is "/". ETOOBIG, ENOMEM. ETIMEDOUT: no answer in time; it may still be done. */
CLAVE_METHOD clave_err clave_latch_publish(clave_latch *l, const void *data, size_t len,
                                           int64_t timeout_ms);
/* Hands leadership over to the candidate whose node has this name, as clave_async_latch_transfer,
 * and waits until it is done. ENONODE: there is no such candidate. ENOTHELD, ELOST: as above.
 * ENOAUTH, ENOMEM. ETIMEDOUT: no answer in time; it may still be done. */
CLAVE_METHOD clave_err clave_latch_transfer(clave_latch *l, const char *node, int64_t timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
