/* async/grant.h - a grant: the proof that something is held, and the writes that only its holder
 * may do. Whatever can be held gives one: clave_async_mutex_grant (each side of a read-write lock
 * and each lock of a multilock is a mutex), clave_async_lease_grant, clave_async_latch_grant.
 *
 * A grant names the node that stands for the hold, its token and its session; these never change.
 * Until when it is valid is looked up in its live holder. It is reference-counted: whoever keeps a
 * copy takes a reference, and gives it back with clave_async_grant_free. It may outlive the hold,
 * the holder and the client.
 *
 * A grant is over when its hold is: released by the last clave_async_mutex_release of its owner,
 * lost, resigned, closed or freed. From that moment on no copy of it can write: every write is
 * refused at once with ELOST. Writes that were started before are still done, since they reach the
 * server before the delete of the node does. A hold that begins later has a grant of its own. A
 * latch whose leadership ends with the connection has a new grant, with the same token, when it
 * leads again.
 *
 * A loss that this process has not heard of yet is caught by the server: a guarded write is one
 * transaction with a check of the grant's node, on the session of the grant. If the node or the
 * session is gone, nothing is written and the result is ELOST. In the unfair election
 * (CLAVE_LATCH_UNFAIR) all candidates use the same node. If somebody deletes the leader's node
 * there, a write that is under way at that moment may find the node of the next leader.
 *
 * Asynchronous, under the thread and callback rules of the client of its holder. The blocking form
 * is clave/grant.h. */
#ifndef CLAVE_ASYNC_GRANT_H
#define CLAVE_ASYNC_GRANT_H

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_grant clave_async_grant; /* opaque */

/* Takes another reference and returns g. */
CLAVE_METHOD clave_async_grant *clave_async_grant_ref(clave_async_grant *g);
/* Gives back a reference; the last frees the grant. The hold is not released. NULL is ignored. */
CLAVE_EXPORT void clave_async_grant_free(clave_async_grant *g);

/* The full path of the node that stands for the hold. Valid until the grant is freed. */
CLAVE_METHOD const char *clave_async_grant_node(const clave_async_grant *g);
/* The fencing token: the czxid of the node, which grows with every grant, on any client. A
 * downgraded read has the token of its write; for a latch the token is the term. */
CLAVE_METHOD int64_t clave_async_grant_token(const clave_async_grant *g);
/* The session that owns the node. */
CLAVE_METHOD int64_t clave_async_grant_session_id(const clave_async_grant *g);

/* True if the hold is one that another process has handed over (clave_async_client_hand_over), so
 * it goes on with the same token. False: it was acquired by this client. */
CLAVE_METHOD bool clave_async_grant_is_resumed(const clave_async_grant *g);

/* The hold deadline: until when nobody else can have what is held, by the client's clock.
 * INT64_MIN: the grant is over. Answered from memory. */
CLAVE_METHOD int64_t clave_async_grant_deadline(const clave_async_grant *g);
/* True if it is held and certainly will be for `ms` milliseconds after `now` (the client's clock).
 * Answered from memory. */
CLAVE_METHOD bool clave_async_grant_valid_for(const clave_async_grant *g, int64_t now, int64_t ms);

/* From `now` (the client's clock) on, the hold depends on its work: it ends unless
 * clave_async_grant_alive is called at least every `ms` milliseconds, with any grant of the hold.
 * The hold deadline is then at most the newest sign of life + ms, for everybody who asks. A silence
 * that is longer ends the hold for good: LOST by ESILENT (NOT_LEADER for a candidate, which then
 * stays out until clave_async_latch_resign says that its work goes on). The node is deleted a
 * reserve later, the margin_ms of clave_client_options, so that the work has as long to stop as
 * when a session is lost. No heartbeat counts as a sign of life, and no request is sent for one.
 *
 * Another call replaces `ms`; 0 ends the dependence. It is of this hold only: the next one, and the
 * read that a downgrade gives, depend on nothing until they are told to. Work that hangs knows
 * nothing of its end, and may write when it wakes up: use guarded writes, or the token. ELOST: the
 * grant is over, or the work was silent for too long before `now`. EINVAL: ms is negative, or it is
 * the grant of a slot, which has no deadline. */
CLAVE_METHOD clave_err clave_async_grant_depend(clave_async_grant *g, int64_t now, int64_t ms);
/* A sign of life from the work, at `now` (the client's clock). Does nothing to a hold that does not
 * depend on it. ELOST: the grant is over, or the work was silent for too long before `now`: it has
 * to stop. */
CLAVE_METHOD clave_err clave_async_grant_alive(clave_async_grant *g, int64_t now);

/* A guarded write: creates a node, as clave_async_create without options. At once, without cb:
 * ELOST: the grant is over. Others as clave_async_multi. In the result, ELOST: the node of the
 * grant is gone, or its session, and nothing was done. After an error of class UNKNOWN
 * (clave/err.h) it may have been done. */
CLAVE_METHOD clave_err clave_async_grant_create(clave_async_grant *g, const char *path,
                                                const void *data, size_t len,
                                                clave_create_mode mode, clave_result_cb *cb,
                                                void *arg);
/* A guarded write: sets a node's data, as clave_async_set. ELOST as above. */
CLAVE_METHOD clave_err clave_async_grant_set(clave_async_grant *g, const char *path,
                                             const void *data, size_t len, int32_t version,
                                             clave_result_cb *cb, void *arg);
/* A guarded write: deletes a node, as clave_async_delete. ELOST as above. */
CLAVE_METHOD clave_err clave_async_grant_delete(clave_async_grant *g, const char *path,
                                                int32_t version, clave_result_cb *cb, void *arg);
/* A guarded write: several operations in one transaction, as clave_async_multi, done only while
 * each of the n grants is valid, be it one or those of several locks. All must belong to one
 * client. res.ops are the caller's operations. ELOST as above, for any of the grants. EINVAL: n is
 * 0, or the grants belong to different clients. */
CLAVE_EXPORT clave_err clave_async_grant_multi(clave_async_grant *const *grants, size_t n,
                                               const clave_op *ops, size_t nops,
                                               clave_result_cb *cb, void *arg);

#ifdef __cplusplus
}
#endif
#endif
