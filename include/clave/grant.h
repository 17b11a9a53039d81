/* grant.h - a grant, blocking, for threads: the proof that something is held, and the writes that
 * only its holder may do. Whatever can be held gives one: clave_mutex_grant (each side of a
 * read-write lock and each lock of a multilock is a mutex), clave_lease_grant, clave_latch_grant,
 * clave_selector_grant.
 *
 *     clave_grant *g;
 *     if (clave_mutex_grant(mutex, &g) == CLAVE_OK) {
 *         err = clave_grant_set(g, "/config", text, len, -1, 5000);
 *         clave_grant_free(g);
 *     }
 *
 * clave/async/grant.h says what a grant names, when it is over, and what the server checks. Here
 * too: when a release has returned, confirmed or not, no copy of the grant writes any more.
 *
 * Owners   a grant is not bound to a thread: any thread that has it may write under it.
 * Threads  any thread may call anything here. On the loop's thread (in a callback) the calls that
 *          wait return ELOOPTHREAD.
 * Times    timeout_ms is in milliseconds from now; negative: no limit. */
#ifndef CLAVE_GRANT_H
#define CLAVE_GRANT_H

#include "clave/async/grant.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_grant clave_grant; /* opaque */

/* Takes another reference and returns g. */
CLAVE_METHOD clave_grant *clave_grant_ref(clave_grant *g);
/* Gives a reference back; the last one frees the grant. The hold is not released. The grant may
 * outlive its holder and the session: see clave_client_close. NULL is ignored. */
CLAVE_EXPORT void clave_grant_free(clave_grant *g);

/* The full path of the node that stands for the hold. Valid until the grant is freed. */
CLAVE_METHOD const char *clave_grant_node(const clave_grant *g);
/* The fencing token: the czxid of the node, which grows with every grant, on any client. */
CLAVE_METHOD int64_t clave_grant_token(const clave_grant *g);
/* The session that owns the node. */
CLAVE_METHOD int64_t clave_grant_session_id(const clave_grant *g);

/* True if the hold is one that another process has handed over (clave_client_hand_over), so it goes
 * on with the same token. False: it was acquired by this client. */
CLAVE_METHOD bool clave_grant_is_resumed(const clave_grant *g);

/* The hold deadline: the time (clave_now(), in clave/uv.h) until which nobody else can have what is
 * held. INT64_MIN: the grant is over. Answered from memory, without waiting for the network. */
CLAVE_METHOD int64_t clave_grant_deadline(clave_grant *g);
/* True while it is held and certainly will be for `ms` more milliseconds. Answered from memory. */
CLAVE_METHOD bool clave_grant_valid_for(clave_grant *g, int64_t ms);

/* From now on, the hold depends on its work: it ends unless clave_grant_alive is called at least
 * every `ms` milliseconds, by any thread, with any grant of the hold. The hold deadline is then at
 * most the newest sign of life + ms, for everybody who asks, so a thread that hangs loses its lock
 * although the loop's thread goes on sending heartbeats. A silence that is longer ends the hold for
 * good: LOST by ESILENT (NOT_LEADER for a candidate, which then stays out until clave_latch_resign
 * says that its work goes on). clave_grant_valid_for is false at once; the node is deleted a
 * reserve later, the margin_ms of clave_client_options, an eighth of the session timeout unless it
 * is set, so that the work has as long to stop as when a session is lost. The servers get no
 * request for it.
 *
 * Another call replaces `ms`; 0 ends the dependence. It is of this hold only: the next one, and the
 * read that a downgrade gives, depend on nothing until they are told to. A thread that hangs knows
 * nothing of its end, and may write when it wakes up: use guarded writes, or the token. ELOST: the
 * grant is over, or the work was silent for too long. EINVAL: ms is negative, or it is the grant of
 * a slot, which has no deadline. ECLOSED. */
CLAVE_METHOD clave_err clave_grant_depend(clave_grant *g, int64_t ms);
/* A sign of life from the work. Waits for the loop's thread, not for the network. Does nothing to a
 * hold that does not depend on it. ELOST: the grant is over, or the work was silent for too long:
 * it has to stop. ECLOSED. */
CLAVE_METHOD clave_err clave_grant_alive(clave_grant *g);

/* A guarded write: creates a node, as clave_create without options. `out` may be NULL; otherwise
 * *out belongs to the caller (clave_reply_free). ELOST: the grant is over, and nothing was done.
 * ETIMEDOUT: no answer in time; it may still be done. ECLOSED: the session was closed. Others as
 * clave_create. */
CLAVE_METHOD clave_err clave_grant_create(clave_grant *g, const char *path, const void *data,
                                          size_t len, clave_create_mode mode, int64_t timeout_ms,
                                          clave_reply **out);
/* A guarded write: sets a node's data, as clave_set. ELOST, ETIMEDOUT and ECLOSED as above. */
CLAVE_METHOD clave_err clave_grant_set(clave_grant *g, const char *path, const void *data,
                                       size_t len, int32_t version, int64_t timeout_ms);
/* A guarded write: deletes a node, as clave_delete. ELOST, ETIMEDOUT and ECLOSED as above. */
CLAVE_METHOD clave_err clave_grant_delete(clave_grant *g, const char *path, int32_t version,
                                          int64_t timeout_ms);
/* A guarded write: several operations in one transaction, as clave_multi, done only while each of
 * the n grants is valid, be it one or those of several locks. All must belong to one session. The
 * op_errs of the reply are those of `ops`. ELOST (of any of them), ETIMEDOUT and ECLOSED as above.
 * EINVAL: n is 0, or the grants belong to different sessions. */
CLAVE_EXPORT clave_err clave_grant_multi(clave_grant *const *grants, size_t n, const clave_op *ops,
                                         size_t nops, int64_t timeout_ms, clave_reply **out);

#ifdef __cplusplus
}
#endif
#endif
