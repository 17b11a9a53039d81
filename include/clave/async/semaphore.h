/* semaphore_internal.h - so many leases across processes, with the layout of Curator's
 * InterProcessSemaphoreV2:
 *
 *     <path>/locks/_c_<uuid>-lock-<10 digits>     who acquires, one after the other (a mutex)
 *     <path>/leases/_c_<uuid>-lease-<10 digits>   one for each lease that is held
 *
 * Whoever is first in `locks` makes its leases one by one, waits until there is room for
 * them, and leaves the queue. So leases are given in the order of arrival, and at most one
 * stands above the limit, for as long as its owner waits. An acquire of several keeps its
 * turn until it has them all: two of them never wait for each other. (Curator's acquire(qty)
 * queues anew for each lease. With that in use beside acquires of several, of either, all can
 * stand still, each with a part of what it wants; give those a deadline.)
 *
 * With a limit of 1 it is Curator's InterProcessSemaphoreMutex: a mutex that is not
 * reentrant, and that whoever has the lease may release.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. */
#ifndef CLAVE_ASYNC_SEMAPHORE_H
#define CLAVE_ASYNC_SEMAPHORE_H

#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_semaphore clave_async_semaphore; /* opaque */
typedef struct clave_async_lease clave_async_lease;         /* opaque */

typedef enum clave_lease_event_kind {
    CLAVE_LEASE_LOST = 1, /* a held lease was lost, once; `why` as of CLAVE_MUTEX_LOST */
    CLAVE_LEASE_ASKED,    /* of a revocable semaphore: somebody asks for it (clave_async_revoke) */
    CLAVE_LEASE_QUEUED,   /* a request waits, or its position changed: `ahead` others acquire
                             before it; 0: it waits for room */
} clave_lease_event_kind;

typedef struct clave_lease_event {
    clave_lease_event_kind kind;
    clave_async_lease *lease; /* LOST, ASKED: still to be given back */
    uint64_t request;         /* QUEUED, as the next */
    size_t ahead;
    clave_err why;
} clave_lease_event;
typedef void clave_lease_event_cb(clave_async_semaphore *s, const clave_lease_event *ev, void *arg);

typedef struct clave_semaphore_options {
    size_t size; /* CLAVE_SEMAPHORE_OPTIONS_INIT sets it: clave/options.h */
    /* How many leases there are. All processes have to say the same number, or share one in
     * `limit_path`: the limit is then what that node holds (four bytes, the most significant
     * first, as Curator's SharedCount), is followed as it changes, and `limit` is what the
     * node is made with when it is missing (0: it is waited for). */
    uint32_t limit;
    const char *limit_path; /* NULL: not shared; copied */
    const void *data;       /* of the lease nodes; copied */
    size_t len;
    const clave_acl *acls; /* of all nodes made; NULL: open; copied */
    size_t nacls;
    int64_t max_hold_ms;  /* of a lease, as in clave_mutex_options */
    int64_t min_valid_ms; /* likewise */
    bool revocable;       /* leases hear ASKED; costs a request for each */
    /* As in clave_mutex_options. The parent is that of the semaphore's path. */
    int64_t detect_deadlocks_ms;
    const char *const *lock_roots;
    size_t nlock_roots;
    clave_lease_event_cb *event_cb; /* may be NULL */
    void *event_arg;
} clave_semaphore_options;
#define CLAVE_SEMAPHORE_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_semaphore_options)

/* EPATH; EINVAL (a limit of 0 that is not shared); ENOMEM. */
CLAVE_EXPORT clave_err clave_async_semaphore_new(clave_async_semaphore **out, clave_async_client *c,
                                                 const char *path,
                                                 const clave_semaphore_options *o);
/* Cancels what waits (its callbacks run with ECANCELED, later) and releases every lease: their
 * handles are gone. No event after this. NULL is ignored. */
CLAVE_EXPORT void clave_async_semaphore_free(clave_async_semaphore *s);

/* The present limit; 0 while a shared one is not known. */
CLAVE_EXPORT uint32_t clave_async_semaphore_limit(const clave_async_semaphore *s);
/* Raised, it lets those in who wait; lowered, it takes no lease away. Shared: writes the node,
 * cb (may be NULL) and errors as of clave_async_set. Not shared: for this semaphore only, at once,
 * and cb has to be NULL. EINVAL: 0, or more than 2147483647. */
CLAVE_EXPORT clave_err clave_async_semaphore_set_limit(clave_async_semaphore *s, uint32_t limit,
                                                       clave_result_cb *cb, void *arg);

/* CLAVE_OK: n leases, each the caller's to release; `leases` itself is valid for the call.
 * Any error: none of them. EBUSY not in time; ECANCELED; EDEADLOCK; ENOAUTH, ENOMEM ...; ECLOSED.
 */
typedef void clave_async_lease_cb(clave_async_semaphore *s, clave_err err,
                                  clave_async_lease *const *leases, size_t n, void *arg);

/* Acquires n leases, all or none, by one deadline: a time of the client's clock, CLAVE_TRY or
 * CLAVE_NEVER as for clave_async_mutex_acquire. A try fails also while another acquires. `request`
 * is a number of the caller's own, for _cancel. EINVAL: n is 0 or more than a limit that is not
 * shared, or there is a request of this number. ENOMEM; ECLOSED; the error that reading a shared
 * limit met last. */
CLAVE_EXPORT clave_err clave_async_semaphore_acquire(clave_async_semaphore *s, uint64_t request,
                                                     size_t n, int64_t deadline,
                                                     clave_async_lease_cb *cb, void *arg);
/* Ends a pending acquire: its callback runs with ECANCELED, later. ENOTHELD: none pending. */
CLAVE_EXPORT clave_err clave_async_semaphore_cancel(clave_async_semaphore *s, uint64_t request);

/* As clave_async_mutex_deadlock. */
CLAVE_EXPORT const char *clave_async_semaphore_deadlock(const clave_async_semaphore *s);

/* Gives a lease back; the handle is gone. cb (may be NULL) runs when its node is certainly
 * gone. ELOST when it had been lost, EMAXHOLD when its time had passed: given back all the
 * same, and cb does not run. */
typedef void clave_async_lease_left_cb(clave_async_semaphore *s, clave_err err, void *arg);
CLAVE_EXPORT clave_err clave_async_lease_release(clave_async_lease *l,
                                                 clave_async_lease_left_cb *cb, void *arg);

/* Token (czxid of the lease's node), deadline and node, from memory; `count` is 1. false: it
 * was lost. */
CLAVE_EXPORT bool clave_async_lease_grant(const clave_async_lease *l, clave_grant *out);
/* true when it is held and will be for `ms` more after `now`. From memory. */
CLAVE_EXPORT bool clave_async_lease_valid_for(const clave_async_lease *l, int64_t now, int64_t ms);
/* Done only while the lease's node stands; as clave_async_mutex_multi. ELOST. */
CLAVE_EXPORT clave_err clave_async_lease_multi(clave_async_lease *l, const clave_op *ops,
                                               size_t nops, clave_result_cb *cb, void *arg);

/* Who has leases, by the age of their nodes, as clave_async_participants. */
CLAVE_EXPORT clave_err clave_async_semaphore_participants(clave_async_client *c, const char *path,
                                                          clave_async_participants_cb *cb,
                                                          void *arg);

#ifdef __cplusplus
}
#endif
#endif
