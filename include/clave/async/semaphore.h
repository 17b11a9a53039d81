/* async/semaphore.h - a limited number of leases across processes, with the layout of Curator's
 * InterProcessSemaphoreV2:
 *
 *     <path>/locks/_c_<uuid>-lock-<10 digits>     those acquiring, one at a time (a mutex)
 *     <path>/leases/_c_<uuid>-lease-<10 digits>   one for each lease that is held
 *
 * The first in `locks` creates its leases one by one, waits until there is room for them, and
 * leaves the queue. So leases are granted in the order of arrival, and at most one exceeds the
 * limit, for as long as its owner waits. An acquire of several leases keeps its turn until it has
 * them all: two of them never wait for each other. (Curator's acquire(qty) queues again for each
 * lease. If it is used together with other acquires of several leases, by any client, all of them
 * can get stuck, each with a part of what it wants; give those a deadline.)
 *
 * With a limit of 1 it is Curator's InterProcessSemaphoreMutex: a mutex that is not reentrant, and
 * that anyone who has the lease's handle may release.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. The blocking form
 * is clave/semaphore.h. */
#ifndef CLAVE_ASYNC_SEMAPHORE_H
#define CLAVE_ASYNC_SEMAPHORE_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_semaphore clave_async_semaphore; /* opaque */
typedef struct clave_async_lease clave_async_lease;         /* opaque */

typedef enum clave_lease_event_kind {
    CLAVE_LEASE_LOST =
        1,             /* a held lease was lost; reported once, with `why` as in CLAVE_MUTEX_LOST */
    CLAVE_LEASE_ASKED, /* for revocable semaphores: somebody asks for it (clave_async_revoke) */
    CLAVE_LEASE_QUEUED, /* a request waits, or its position has changed: `ahead` others acquire
                           before it; 0: it is waiting for room */
} clave_lease_event_kind;

typedef struct clave_lease_event {
    clave_lease_event_kind kind;
    clave_async_lease *lease; /* for LOST and ASKED; it still has to be released */
    uint64_t request;         /* for QUEUED, as is `ahead` */
    size_t ahead;
    clave_err why;
    /* For QUEUED: as in clave_mutex_event, but only among those that acquire; a left-over lease
     * shows in clave_async_semaphore_participants. */
    const char *left_over;
} clave_lease_event;
typedef void clave_lease_event_cb(clave_async_semaphore *s, const clave_lease_event *ev, void *arg);

typedef struct clave_semaphore_options {
    size_t size; /* CLAVE_SEMAPHORE_OPTIONS_INIT sets it: clave/options.h */
    /* How many leases there are. All processes must give the same number, or share one in
     * `limit_path`. In that case the limit is the number in that node (four bytes, most significant
     * first, as in Curator's SharedCount) and follows its changes, and `limit` is the value with
     * which the node is created if it is missing (0: wait until somebody else creates it). */
    uint32_t limit;
    const char *limit_path; /* NULL: not shared; copied */
    const void *data;       /* of the lease nodes; copied */
    size_t len;
    const clave_acl *acls; /* of all nodes created; NULL: open; copied */
    size_t nacls;
    int64_t max_hold_ms;  /* of a lease, as in clave_mutex_options */
    int64_t min_valid_ms; /* as there */
    bool revocable;       /* leases get the event ASKED; costs one request per lease */
    /* As in clave_mutex_options; the default root is the parent of the semaphore's path. */
    int64_t detect_deadlocks_ms;
    const char *const *lock_roots;
    size_t nlock_roots;
    clave_lease_event_cb *event_cb; /* may be NULL */
    void *event_arg;
} clave_semaphore_options;
#define CLAVE_SEMAPHORE_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_semaphore_options)

/* Makes a semaphore on `path`; contacts the server only to read a shared limit. On CLAVE_OK *out
 * belongs to the caller, who frees it with clave_async_semaphore_free; on an error it is NULL.
 * EPATH: the path is not valid. EINVAL: a limit of 0 that is not shared, or an option out of range.
 * ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_semaphore_new(clave_async_semaphore **out, clave_async_client *c,
                                                 const char *path,
                                                 const clave_semaphore_options *o);
/* Cancels every pending acquire (its callback runs with ECANCELED, later) and releases every lease,
 * whose handles are then invalid. No event follows. NULL is ignored. */
CLAVE_EXPORT void clave_async_semaphore_free(clave_async_semaphore *s);

/* The current limit, from memory; 0 while a shared one is not known yet. */
CLAVE_METHOD uint32_t clave_async_semaphore_limit(const clave_async_semaphore *s);
/* Changes the limit. Raising it admits waiters; lowering it revokes no lease. A shared limit is
 * written to its node, with cb (may be NULL) and errors as for clave_async_set. A limit that is not
 * shared changes at once, for this semaphore only, and cb must be NULL. EINVAL: 0, or more than
 * 2147483647. */
CLAVE_METHOD clave_err clave_async_semaphore_set_limit(clave_async_semaphore *s, uint32_t limit,
                                                       clave_result_cb *cb, void *arg);

/* CLAVE_OK: n leases, each to be released by the caller; the array `leases` is valid during the
 * call only. On any error there is no lease. EBUSY, EUNREACHABLE: not acquired in time, with the
 * same distinction as in clave_async_mutex_acquire. ECANCELED. EDEADLOCK: see clave_mutex_options.
 * ENOAUTH and other final errors: the server refused a node. ENOMEM. ECLOSED. */
typedef void clave_async_lease_cb(clave_async_semaphore *s, clave_err err,
                                  clave_async_lease *const *leases, size_t n, void *arg);

/* Acquires n leases, all or none, by one deadline: a time of the client's clock, CLAVE_TRY or
 * CLAVE_NEVER, as for clave_async_mutex_acquire. A try does not queue: it gets n leases if that
 * many are left after the leases that are held and one for each place in the queue; on EBUSY
 * clave_async_client_errmsg says how many there are of both. `request` is a number of the caller's
 * choice, for _cancel. cb runs once, later. At once: EINVAL: n is 0 or more than a limit that is
 * not shared, or a request of this number is pending. ENOMEM. ECLOSED. Otherwise the latest error
 * of reading a shared limit. */
CLAVE_METHOD clave_err clave_async_semaphore_acquire(clave_async_semaphore *s, uint64_t request,
                                                     size_t n, int64_t deadline,
                                                     clave_async_lease_cb *cb, void *arg);
/* Ends a pending acquire: its callback runs with ECANCELED, later. ENOTHELD: none is pending. */
CLAVE_METHOD clave_err clave_async_semaphore_cancel(clave_async_semaphore *s, uint64_t request);

/* The text of the latest acquire that ended with EDEADLOCK, as clave_async_mutex_deadlock. */
CLAVE_METHOD const char *clave_async_semaphore_deadlock(const clave_async_semaphore *s);

/* Runs when the node of a released lease is certainly gone (CLAVE_OK), or with the error of its
 * delete. */
typedef void clave_async_lease_left_cb(clave_async_semaphore *s, clave_err err, void *arg);
/* Releases a lease; the handle is invalid afterwards. cb may be NULL: the delete is sent and not
 * awaited. ELOST: the lease had been lost; EMAXHOLD: its maximum time had passed; ESILENT: its
 * work was silent for too long; in all three it is released all the same, and cb does not run. */
CLAVE_METHOD clave_err clave_async_lease_release(clave_async_lease *l,
                                                 clave_async_lease_left_cb *cb, void *arg);

/* The grant of a lease, as clave_async_mutex_grant. ELOST: the lease was lost. ENOMEM. */
CLAVE_METHOD clave_err clave_async_lease_grant(const clave_async_lease *l, clave_async_grant **out);

/* Lists the holders of leases, the oldest node first, as clave_async_participants. */
CLAVE_METHOD clave_err clave_async_semaphore_participants(clave_async_client *c, const char *path,
                                                          clave_async_participants_cb *cb,
                                                          void *arg);

#ifdef __cplusplus
}
#endif
#endif
