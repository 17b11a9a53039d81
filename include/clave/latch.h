/* latch.h - a candidate of an election, blocking, for threads: Curator's LeaderLatch. The
 * asynchronous form is clave/async/latch.h, where options, events and errors are described; both
 * stand in the same queue. Leadership as a function call is clave/selector.h.
 *
 * Any thread may call anything here; from a callback of the loop's thread what waits returns
 * ELOOPTHREAD. */
#ifndef CLAVE_LATCH_H
#define CLAVE_LATCH_H

#include "clave/async/latch.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_latch clave_latch; /* opaque */

/* `o` as for clave_async_latch_new; its event callback runs on the loop's thread. */
CLAVE_EXPORT clave_err clave_latch_new(clave_latch **out, clave_client *s, const char *path,
                                       const clave_latch_options *o);
/* The fair and the unfair election of clave/async/plain_layouts.h. */
CLAVE_EXPORT clave_err clave_latch_new_fair(clave_latch **out, clave_client *s, const char *path,
                                            const char *prefix, const clave_latch_options *o);
CLAVE_EXPORT clave_err clave_latch_new_unfair(clave_latch **out, clave_client *s, const char *node,
                                              const clave_latch_options *o);
/* Withdraws, silently, and waits at most a second for the server to know. Nobody may be waiting in
 * it. It may outlive the session: see clave_client_close. NULL is ignored. */
CLAVE_EXPORT void clave_latch_free(clave_latch *c);

/* As clave_async_latch_start; does not wait. */
CLAVE_EXPORT clave_err clave_latch_start(clave_latch *c);
/* As clave_async_latch_resign; does not wait. */
CLAVE_EXPORT clave_err clave_latch_resign(clave_latch *c);
/* As clave_async_latch_close, and returns when its node is certainly gone. ETIMEDOUT: withdrawn all
 * the same. timeout_ms negative: for ever, in all of these. */
CLAVE_EXPORT clave_err clave_latch_close(clave_latch *c, clave_latch_close_mode mode,
                                         int64_t timeout_ms);

/* Until it leads. EBUSY: not within the time; EUNREACHABLE: nor connected within it; EINVAL, at
 * once: it was never started; ECLOSED, from another thread's close too; what FAILED says (ENOAUTH
 * ...). */
CLAVE_EXPORT clave_err clave_latch_await(clave_latch *c, int64_t timeout_ms);
/* Until its term is over, by its policy or by the hold deadline, even if the next one is its own
 * too: CLAVE_OK, at once if it does not lead. EBUSY: it still does. */
CLAVE_EXPORT clave_err clave_latch_await_loss(clave_latch *c, int64_t timeout_ms);

/* From memory, never waiting on the network: leads, and surely will for `ms` more. */
CLAVE_EXPORT bool clave_latch_valid_for(clave_latch *c, int64_t ms);
CLAVE_EXPORT bool clave_latch_has_leadership(clave_latch *c);
CLAVE_EXPORT int64_t clave_latch_token(clave_latch *c); /* the term; 0: does not lead */

/* As clave_async_latch_publish and clave_async_latch_transfer, and wait for their end. */
CLAVE_EXPORT clave_err clave_latch_publish(clave_latch *c, const void *data, size_t len,
                                           int64_t timeout_ms);
CLAVE_EXPORT clave_err clave_latch_transfer(clave_latch *c, const char *node, int64_t timeout_ms);
/* A guarded write of the leader, as clave_mutex_multi. */
CLAVE_EXPORT clave_err clave_latch_multi(clave_latch *c, const clave_op *ops, size_t nops,
                                         int64_t timeout_ms, clave_reply **out);

#ifdef __cplusplus
}
#endif
#endif
