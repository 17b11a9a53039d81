/* async/leader.h - an election (clave/async/latch.h) seen from outside: who stands, who leads, what
 * the leader publishes; and who should lead next.
 *
 * The value a leader publishes is an ephemeral node beside the queue, <path>-value: the name of
 * the leader's node, a newline, the bytes. So it does not disturb other clients' candidates on
 * the path, it ends with the leader's session, and one that an earlier leader left is known by
 * its name and not shown. */
#ifndef CLAVE_ASYNC_LEADER_H
#define CLAVE_ASYNC_LEADER_H

#include "clave/async/latch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All candidates in queue order, the leader first; identity.text is the id. As
 * clave_async_participants, but foreign nodes are left out, as Curator does. */
CLAVE_EXPORT clave_err clave_async_latch_participants(clave_async_client *c, const char *path,
                                                      clave_async_participants_cb *cb, void *arg);
/* The leader alone: `n` is 1, or 0 when there is none. Two round trips, however many stand. */
CLAVE_EXPORT clave_err clave_async_latch_leader(clave_async_client *c, const char *path,
                                                clave_async_participants_cb *cb, void *arg);

/* ---- following -------------------------------------------------------------------------- */

typedef struct clave_async_leader_watch clave_async_leader_watch; /* opaque */

typedef struct clave_leader_news {
    clave_err err; /* not OK: what keeps us from seeing (ENOAUTH, ...); it is tried again.
                      ECLOSED: the client, the last news */
    const clave_participant *leader; /* NULL: vacant */
    const void *value;               /* NULL: it has published none */
    size_t len;
} clave_leader_news;
/* Once at the beginning, then at each change of the leader or its value; changes in quick
 * succession may be told as one. What it points to is valid for the call only. Free the watch
 * in it if you like. While the connection is away nothing is known, and nothing told. */
typedef void clave_async_leader_watch_cb(clave_async_leader_watch *w, const clave_leader_news *news,
                                         void *arg);

/* Costs the server one watch on the leader's node and one on its value, none on the queue but in
 * a vacancy. EPATH, EINVAL no cb, ECLOSED, ENOMEM. */
CLAVE_EXPORT clave_err clave_async_leader_watch_new(clave_async_leader_watch **out,
                                                    clave_async_client *c, const char *path,
                                                    clave_async_leader_watch_cb *cb, void *arg);
/* NULL is ignored. */
CLAVE_EXPORT void clave_async_leader_watch_free(clave_async_leader_watch *w);

/* ---- the leader's part ------------------------------------------------------------------ */

/* Publishes a value, done only while it leads, in the place of the one before. `cb` may be
 * NULL. res.err ELOST: leads no more. At once: ENOTHELD does not lead; EINVAL the path is "/";
 * ETOOBIG; ENOMEM. It is taken back when the latch resigns or closes. */
CLAVE_EXPORT clave_err clave_async_latch_publish(clave_async_latch *l, const void *data, size_t len,
                                                 clave_result_cb *cb, void *arg);

/* ---- who leads next --------------------------------------------------------------------- */

typedef void clave_async_transfer_cb(clave_async_client *c, clave_err err, void *arg);

/* The leader hands over to the participant whose node has this name: in one transaction those
 * between lose their nodes, and so stand again at the end of the queue, Curator's candidates by
 * their own rules; then the latch resigns. Whoever comes meanwhile stands behind. `cb` may be
 * NULL: CLAVE_OK; ENONODE no such participant; ELOST leads no more; ENOAUTH ...
 * At once: ENOTHELD does not lead; ENOMEM, ECLOSED. */
CLAVE_EXPORT clave_err clave_async_latch_transfer(clave_async_latch *l, const char *node,
                                                  clave_async_transfer_cb *cb, void *arg);
/* The same from any process: instead of the last step the leader is asked to resign. Whether
 * and when it does is up to it: see clave_latch_options.revocable. `node` NULL: it is only
 * asked. CLAVE_OK: asked, or `node` leads already. ENONODE: also when nobody leads. */
CLAVE_EXPORT clave_err clave_async_leader_transfer(clave_async_client *c, const char *path,
                                                   const char *node, clave_async_transfer_cb *cb,
                                                   void *arg);

#ifdef __cplusplus
}
#endif
#endif
