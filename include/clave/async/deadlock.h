/* async/deadlock.h - owners of locks that wait for each other, across processes: looking for them.
 * An acquire that looks for itself, and gives up, is an option of each lock (detect_deadlocks_ms).
 *
 * What counts as waiting: the queues of mutexes, read-write locks and semaphores, of clave, Curator
 * and kazoo; the leases of semaphores whose nodes say how many there are (clave's, when the limit
 * is not a shared one and their data is in clave's form). To stand for election is not to wait.
 *
 * Who is an owner: what clave_identity.owner says; else clave's own number for each owner of a
 * mutex (data in clave's form, owner not 0); else the session as a whole. Of the last nobody knows
 * how many threads it serves, so of a session that waits here and holds there it is taken for
 * granted that the one waits who holds: what is reported of threads that share a session of Curator
 * or kazoo may be none. An owner that waits with a deadline may still go on by itself.
 *
 * All of it is read twice, and what stood in both readings stood at one moment. */
#ifndef CLAVE_ASYNC_DEADLOCK_H
#define CLAVE_ASYNC_DEADLOCK_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_deadlock_member {
    const char *path;    /* of the lock it waits for; NULL: it waits for the end of a part of
                            itself, the next member (see clave_identity.owner) */
    const char *node;    /* full path of its node there; with no path: of one that it holds */
    const char *blocker; /* full path of the node in its way, the next member's; NULL with path */
    clave_stat stat;     /* of its node */
    clave_identity identity; /* in its node */
} clave_deadlock_member;

typedef struct clave_deadlock {
    /* Each waits for the next, the last for the first. The first: see victim; or who came last. */
    const clave_deadlock_member *members;
    size_t n;
    /* Who is to give up, by a rule that all members go by: of those that look for deadlocks
     * (identity.yields) the one with the newest node in the cycle's waits. It stands first: 0; or
     * n: none of them looks. */
    size_t victim;
    const char *text; /* all of it, in words */
} clave_deadlock;

/* No owner is in two of the list; of deadlocks that share one, the others come to light when the
 * first is over. The list is valid for the call. err: ETOOBIG more than 50000 nodes, and
 * clave_async_client_errmsg says where; ENOMEM; ECLOSED; what a read may meet. What is not readable
 * is left out. */
typedef void clave_async_deadlocks_cb(clave_async_client *c, clave_err err,
                                      const clave_deadlock *list, size_t n, void *arg);
/* Looks at these paths and all below them: one getChildren for each, one getData for each node of
 * a queue in which somebody waits, and both again for those queues if anybody is stuck.
 * EINVAL: no path; EPATH, ENOMEM, ECLOSED. */
CLAVE_EXPORT clave_err clave_async_deadlocks_find(clave_async_client *c, const char *const *roots,
                                                  size_t nroots, clave_async_deadlocks_cb *cb,
                                                  void *arg);

#ifdef __cplusplus
}
#endif
#endif
