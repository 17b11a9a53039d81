/* candidate.h - a candidate of an election, blocking, for threads: Curator's LeaderLatch. The
 * asynchronous form is clave/latch.h, where options, events and errors are described; both stand
 * in the same queue. Leadership as a function call is clave/selector.h.
 *
 * Any thread may call anything here; from a callback of the loop's thread what waits returns
 * EDEADLK. */
#ifndef CLAVE_CANDIDATE_H
#define CLAVE_CANDIDATE_H

#include "clave/latch.h"
#include "clave/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_candidate clave_candidate; /* opaque */

/* `o` as for clave_latch_new; its event callback runs on the loop's thread. */
CLAVE_EXPORT clave_err clave_candidate_new(clave_candidate **out, clave_session *s,
                                           const char *path, const clave_latch_options *o);
/* The fair and the unfair election of clave/elementary.h. */
CLAVE_EXPORT clave_err clave_candidate_new_fair(clave_candidate **out, clave_session *s,
                                                const char *path, const char *prefix,
                                                const clave_latch_options *o);
CLAVE_EXPORT clave_err clave_candidate_new_unfair(clave_candidate **out, clave_session *s,
                                                  const char *node, const clave_latch_options *o);
/* Withdraws, silently, and waits at most a second for the server to know. Nobody may be waiting in
 * it. It may outlive the session: see clave_session_close. NULL is ignored. */
CLAVE_EXPORT void clave_candidate_free(clave_candidate *c);

/* As clave_latch_start; does not wait. */
CLAVE_EXPORT clave_err clave_candidate_start(clave_candidate *c);
/* As clave_latch_resign; does not wait. */
CLAVE_EXPORT clave_err clave_candidate_resign(clave_candidate *c);
/* As clave_latch_close, and returns when its node is certainly gone. ETIMEDOUT: withdrawn all the
 * same. timeout_ms negative: for ever, in all of these. */
CLAVE_EXPORT clave_err clave_candidate_close(clave_candidate *c, clave_latch_close_mode mode,
                                             int64_t timeout_ms);

/* Until it leads. EBUSY: not within the time; EUNREACHABLE: nor connected within it; EINVAL, at
 * once: it was never started; ECLOSED, from another thread's close too; what FAILED says (ENOAUTH
 * ...). */
CLAVE_EXPORT clave_err clave_candidate_await(clave_candidate *c, int64_t timeout_ms);
/* Until its term is over, by its policy or by the hold deadline, even if the next one is its own
 * too: CLAVE_OK, at once if it does not lead. EBUSY: it still does. */
CLAVE_EXPORT clave_err clave_candidate_await_loss(clave_candidate *c, int64_t timeout_ms);

/* From memory, never waiting on the network: leads, and surely will for `ms` more. */
CLAVE_EXPORT bool clave_candidate_valid_for(clave_candidate *c, int64_t ms);
CLAVE_EXPORT bool clave_candidate_has_leadership(clave_candidate *c);
CLAVE_EXPORT int64_t clave_candidate_token(clave_candidate *c); /* the term; 0: does not lead */

/* As clave_latch_publish and clave_latch_transfer, and wait for their end. */
CLAVE_EXPORT clave_err clave_candidate_publish(clave_candidate *c, const void *data, size_t len,
                                               int64_t timeout_ms);
CLAVE_EXPORT clave_err clave_candidate_transfer(clave_candidate *c, const char *node,
                                                int64_t timeout_ms);
/* A guarded write of the leader, as clave_lock_multi. */
CLAVE_EXPORT clave_err clave_candidate_multi(clave_candidate *c, const clave_op *ops, size_t nops,
                                             int64_t timeout_ms, clave_reply **out);

#ifdef __cplusplus
}
#endif
#endif
