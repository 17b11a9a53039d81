/* async/deadlock.h - finds owners of locks that wait for each other, across processes. An acquire
 * that looks for deadlocks of its own, and gives up, is an option of each lock
 * (detect_deadlocks_ms).
 *
 * Waiting    is to be in a queue of a mutex, read-write lock or semaphore, of clave, Curator
 *            or kazoo, or to wait for a lease of a semaphore whose nodes say how many there
 *            are (clave's, when the limit is not shared and their data is in clave's form).
 *            A candidate of an election does not wait.
 * An owner   is what clave_identity.owner says; otherwise clave's own number for each owner
 *            of a mutex (data in clave's form, owner not 0); otherwise the session as a whole.
 *            Nobody can know how many threads such a session serves. If it waits in one place
 *            and holds in another, the waiter is assumed to be the holder: a deadlock with such
 *            a session in it is possible, not certain (clave_deadlock.certain). An owner that
 *            waits with a deadline may still continue by itself.
 *
 * Everything is read twice: what is in both readings existed at one moment.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. The blocking form
 * is clave/deadlock.h. */
#ifndef CLAVE_ASYNC_DEADLOCK_H
#define CLAVE_ASYNC_DEADLOCK_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_deadlock_member {
    const char *path; /* of the lock that it waits for; NULL: it waits for a part of itself to end,
                         which is the next member (see clave_identity.owner) */
    const char *node; /* full path of its node there or, if path is NULL, of a node that it holds */
    /* Full path of the node in its way, which is the next member's; NULL if path is. */
    const char *blocker;
    clave_stat stat;         /* of its node */
    clave_identity identity; /* as in its node */
} clave_deadlock_member;

typedef struct clave_deadlock {
    /* Each waits for the next, and the last for the first. The first is the victim or, if there is
     * none, the member that arrived last. */
    const clave_deadlock_member *members;
    size_t n;
    /* Which member has to give up, by a rule that all members follow: of those that look for
     * deadlocks (identity.yields), the one with the newest node among the waits of the cycle. As
     * that member comes first, this is 0; or n, if none of them looks. */
    size_t victim;
    const char *text; /* all of this, in words */
    /* No member can continue by itself, except when a deadline of its own ends its wait. false:
     * this is so unless a session that does not name its owners has one that holds without waiting.
     * Such a session is a member, or holds what a member waits for. */
    bool certain;
} clave_deadlock;

/* Receives the deadlocks; the list is valid during the call only. No owner is in two of them: if
 * deadlocks share an owner, the others are found once the first is over. Nodes without read
 * permission are left out. err: ETOOBIG: more than 50000 nodes; clave_async_client_errmsg says
 * where. ENOMEM. ECLOSED. Otherwise the error of a read. */
typedef void clave_async_deadlocks_cb(clave_async_client *c, clave_err err,
                                      const clave_deadlock *list, size_t n, void *arg);
/* Searches the paths in `roots` (copied) and everything below them. This takes a getChildren for
 * each node, a getData for each node of a queue in which somebody waits, and both again for these
 * queues if there may be a deadlock. cb runs once, later. At once: EINVAL: no path. EPATH: a path
 * is not valid. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_deadlocks_find(clave_async_client *c, const char *const *roots,
                                                  size_t nroots, clave_async_deadlocks_cb *cb,
                                                  void *arg);

#ifdef __cplusplus
}
#endif
#endif
