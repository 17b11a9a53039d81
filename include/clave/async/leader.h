/* async/leader.h - an election (clave/async/latch.h) seen from outside: who the candidates are, who
 * leads, and what the leader publishes; and how to choose who leads next.
 *
 * The value that a leader publishes is an ephemeral node beside the queue, <path>-value: the name
 * of the leader's node, a newline, the bytes. So it does not disturb other clients' candidates on
 * the path, it ends with the leader's session, and a value left by an earlier leader is recognised
 * by the name in it and ignored.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. */
#ifndef CLAVE_ASYNC_LEADER_H
#define CLAVE_ASYNC_LEADER_H

#include "clave/async/latch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Lists all candidates in queue order, the leader first; identity.text is the id. As
 * clave_async_participants, except that foreign nodes are left out, as Curator does. */
CLAVE_METHOD clave_err clave_async_latch_participants(clave_async_client *c, const char *path,
                                                      clave_async_participants_cb *cb, void *arg);
/* Reports only the leader: `n` is 1, or 0 when there is none, or the first candidate is left over.
 * Two round trips, whatever the number of candidates. Errors as of clave_async_participants. */
CLAVE_METHOD clave_err clave_async_latch_leader(clave_async_client *c, const char *path,
                                                clave_async_participants_cb *cb, void *arg);

/* ---- following -------------------------------------------------------------------------- */

typedef struct clave_async_leader_watch clave_async_leader_watch; /* opaque */

typedef struct clave_leader_news {
    clave_err err; /* if not OK: why nothing can be seen (ENOAUTH, ...); it will be tried again.
                      ECLOSED: the client was closed, and this is the last call */
    const clave_participant *leader; /* NULL: there is none */
    /* The first candidate, if no session owns its node (clave_participant): then nobody leads, and
     * nobody will until that node is deleted. Otherwise NULL. */
    const clave_participant *left_over;
    const void *value; /* NULL: the leader has published none */
    size_t len;
} clave_leader_news;
/* Runs once at the beginning, then at each change of the leader or its value; changes in quick
 * succession may be reported as one. While there is no connection, nothing is reported. What `news`
 * points to is valid during the call only. The callback may free the watch. */
typedef void clave_async_leader_watch_cb(clave_async_leader_watch *w, const clave_leader_news *news,
                                         void *arg);

/* Follows the leader of the election at `path`. It costs the server one watch on the leader's node
 * and one on its value, and one on the queue only while there is no leader. On CLAVE_OK *out
 * belongs to the caller, who frees it with clave_async_leader_watch_free; on an error it is NULL.
 * EPATH: the path is not valid. EINVAL: no cb. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_leader_watch_new(clave_async_leader_watch **out,
                                                    clave_async_client *c, const char *path,
                                                    clave_async_leader_watch_cb *cb, void *arg);
/* Stops following and frees; no callback follows. NULL is ignored. */
CLAVE_EXPORT void clave_async_leader_watch_free(clave_async_leader_watch *w);

/* ---- publishing a value ----------------------------------------------------------------- */

/* Publishes a value in place of the previous one, only while the latch leads. The value is removed
 * when the latch resigns or closes. `cb` may be NULL. res.err ELOST: it no longer leads. At once:
 * ENOTHELD: it does not lead. EINVAL: the path is "/", or the layout is CLAVE_LATCH_UNFAIR.
 * ETOOBIG. ENOMEM. */
CLAVE_METHOD clave_err clave_async_latch_publish(clave_async_latch *l, const void *data, size_t len,
                                                 clave_result_cb *cb, void *arg);

/* ---- who leads next --------------------------------------------------------------------- */

typedef void clave_async_transfer_cb(clave_async_client *c, clave_err err, void *arg);

/* The leader hands over to the participant whose node has this name. In one transaction the nodes
 * between the two are deleted, so that their candidates enter again at the end of the queue
 * (Curator's by their own rules); then the latch resigns. Candidates that arrive in the meantime
 * come after the participant. `cb` (may be NULL) gets CLAVE_OK; ENONODE: there is no such
 * participant; ELOST: it no longer leads; ENOAUTH and other errors of the transaction. At once:
 * ENOTHELD: it does not lead. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_latch_transfer(clave_async_latch *l, const char *node,
                                                  clave_async_transfer_cb *cb, void *arg);
/* The same from any process, but in the last step the leader is asked to resign. Whether and when
 * it does is up to the leader: see clave_latch_options.revocable. If `node` is NULL, the leader is
 * only asked. CLAVE_OK: it was asked, or `node` leads already. ENONODE: there is no such
 * participant, or nobody leads. Others as above. At once: EPATH: the path is not valid. ENOMEM.
 * ECLOSED. */
CLAVE_METHOD clave_err clave_async_leader_transfer(clave_async_client *c, const char *path,
                                                   const char *node, clave_async_transfer_cb *cb,
                                                   void *arg);

#ifdef __cplusplus
}
#endif
#endif
