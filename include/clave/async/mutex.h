/* async/mutex.h - a fair lock across processes, with the layout of Curator's
 * InterProcessMutex: <path>/_c_<uuid>-lock-<10 digits>, ephemeral sequential, in a
 * container. One queue with Curator, and with kazoo (see docs/recipes.md for how).
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules; the
 * blocking form is clave/mutex.h.
 *
 * An owner is any 64-bit number the caller chooses (a thread, a task, 0). The lock is
 * reentrant per owner; two owners of one mutex exclude each other like two processes. */
#ifndef CLAVE_ASYNC_MUTEX_H
#define CLAVE_ASYNC_MUTEX_H

#include "clave/async/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_mutex clave_async_mutex; /* opaque */

typedef enum clave_mutex_event_kind {
    CLAVE_MUTEX_QUEUED, /* waiting, or the position changed: `ahead` nodes stand before */
    CLAVE_MUTEX_NEXT,   /* only the holder stands before: a chance to warm up */
    CLAVE_MUTEX_HELD,   /* granted (the acquire's callback says so too) */
    CLAVE_MUTEX_LOST,   /* a held lock was lost, exactly once per hold; `why` EEXPIRED or
                           another cause of the session's loss, ENONODE (somebody deleted
                           the node) or EMAXHOLD */
    CLAVE_MUTEX_ASKED,  /* a revocable lock that is held is asked for by somebody
                           (clave_async_revoke,  Curator's Revoker): release it, or do not */
} clave_mutex_event_kind;

typedef struct clave_mutex_event {
    clave_mutex_event_kind kind;
    uint64_t owner;
    size_t ahead;
    const char *predecessor; /* QUEUED, NEXT: full path of the node just before ours */
    clave_err why;
} clave_mutex_event;
typedef void clave_mutex_event_cb(clave_async_mutex *m, const clave_mutex_event *ev, void *arg);

typedef struct clave_mutex_options {
    size_t size;      /* CLAVE_MUTEX_OPTIONS_INIT sets it: clave/options.h */
    const void *data; /* of the lock node: see clave_identity_format; copied */
    size_t len;
    const clave_acl *acls; /* of the lock node; NULL: open; copied */
    size_t nacls;
    int64_t max_hold_ms;  /* 0: no limit. After it the node is deleted and LOST(EMAXHOLD) */
    int64_t min_valid_ms; /* a grant with less time left to the hold deadline is first
                             confirmed by a request that passes the leader; 0: an eighth
                             of the session timeout */
    bool strict;          /* list once more at every hand-over instead of trusting the
                             known predecessors (when writers of other names are about) */
    bool revocable;       /* hears ASKED, whoever asked while it waited included; costs one
                             request at the beginning of each hold */
    /* Not 0: owners of this mutex share one place in the queue. Who lets go hands the lock to the
     * next that waits here, without a word to the server, so many times in a row; then the place
     * goes, and the next queues anew, so that other processes get their turn. Those of one place
     * have one token, and who waits here hears only HELD. Not for the read side of a read-write
     * lock, whose owners share the lock itself. */
    unsigned share_turns;
    /* Not 0: an acquire that has waited for so long looks for a deadlock that it is in
     * (clave/async/deadlock.h), and again, twice as long after that, and so on. Of those in it
     * that look, the one that came last ends with EDEADLOCK, and keeps what it holds elsewhere. Its
     * data has to be in clave's form, or none; not with share_turns, nor in
     * clave/async/plain_layouts.h. It looks at these paths and all below them, which have to be the
     * same for everybody, and no more than 10000 nodes (else it finds nothing, and the log says
     * so); none: the parent of the lock's path. Copied. */
    int64_t detect_deadlocks_ms;
    const char *const *lock_roots;
    size_t nlock_roots;
    clave_mutex_event_cb *event_cb; /* may be NULL */
    void *event_arg;
} clave_mutex_options;
#define CLAVE_MUTEX_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_mutex_options)

/* EPATH, EINVAL, ENOMEM. `o` may be NULL. */
CLAVE_EXPORT clave_err clave_async_mutex_new(clave_async_mutex **out, clave_async_client *c,
                                             const char *path, const clave_mutex_options *o);
/* Cancels what waits (its callbacks run with ECANCELED, later) and releases what is held.
 * No event after this. NULL is ignored. */
CLAVE_EXPORT void clave_async_mutex_free(clave_async_mutex *m);

typedef void clave_async_mutex_cb(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg);

#define CLAVE_TRY INT64_MIN /* as a deadline: acquire only if it is free now */

/* Acquires for `owner`: CLAVE_TRY, until `deadline` (the client's clock), or CLAVE_NEVER
 * to wait for ever. A deadline that has passed already is a try, and a try waits for
 * nothing, a connection included. cb runs once: CLAVE_OK held (again); EBUSY not in time;
 * ECANCELED; EDEADLOCK; ENOAUTH, ESEQUENCE, EINVALIDACL ...; ECLOSED. A session that ends while
 * waiting sends the attempt back to the end of the queue by itself.
 * EINVAL: this owner has an acquire pending. ELOST: its hold was lost and is not yet given
 * back. ENOMEM; ECLOSED. */
CLAVE_EXPORT clave_err clave_async_mutex_acquire(clave_async_mutex *m, uint64_t owner,
                                                 int64_t deadline, clave_async_mutex_cb *cb,
                                                 void *arg);
/* Ends a pending acquire: its callback runs with ECANCELED (later), or with CLAVE_OK when
 * it had been granted already. ENOTHELD: none pending. */
CLAVE_EXPORT clave_err clave_async_mutex_cancel(clave_async_mutex *m, uint64_t owner);
/* Who waits for whom, of the newest acquire that has ended with EDEADLOCK, in words; valid until
 * the next that does. NULL: none has, or there was no memory for it. */
CLAVE_EXPORT const char *clave_async_mutex_deadlock(const clave_async_mutex *m);
/* Gives one hold back; the last one deletes the node. `cb` may be NULL: sent and not
 * awaited (an answer that is lost is made up for in the background). ENOTHELD;
 * ELOST when the hold had been lost, EMAXHOLD when its time had passed: the hold is given
 * back all the same, and cb does not run. ENOMEM, with cb and other holds left: not given
 * back. */
CLAVE_EXPORT clave_err clave_async_mutex_release(clave_async_mutex *m, uint64_t owner,
                                                 clave_async_mutex_cb *cb, void *arg);

typedef struct clave_grant {
    int64_t token; /* czxid of the lock node: grows with every grant, on any client. A read that
                      took its write's place has the write's */
    int64_t session_id;
    int64_t deadline; /* until when nobody else can own it, by the client's clock */
    const char *node; /* full path of the lock node; valid until the next call on m */
    unsigned count;   /* how often this owner holds it */
} clave_grant;
/* false when the owner does not hold the lock (or lost it). From memory. */
CLAVE_EXPORT bool clave_async_mutex_grant(const clave_async_mutex *m, uint64_t owner,
                                          clave_grant *out);
/* true when the owner holds it and will for `ms` more after `now`. From memory. */
CLAVE_EXPORT bool clave_async_mutex_valid_for(const clave_async_mutex *m, uint64_t owner,
                                              int64_t now, int64_t ms);

/* Guarded writes: done only while the owner's lock node stands, in one multi with a
 * check of it. res.err ELOST: the grant is gone, nothing was done. For clave_async_mutex_multi,
 * res.ops are those of the caller. At once, without cb: ENOTHELD; ELOST when the loss is
 * known already; and as clave_async_multi. */
CLAVE_EXPORT clave_err clave_async_mutex_create(clave_async_mutex *m, uint64_t owner,
                                                const char *path, const void *data, size_t len,
                                                clave_create_mode mode, clave_result_cb *cb,
                                                void *arg);
CLAVE_EXPORT clave_err clave_async_mutex_set(clave_async_mutex *m, uint64_t owner, const char *path,
                                             const void *data, size_t len, int32_t version,
                                             clave_result_cb *cb, void *arg);
CLAVE_EXPORT clave_err clave_async_mutex_delete(clave_async_mutex *m, uint64_t owner,
                                                const char *path, int32_t version,
                                                clave_result_cb *cb, void *arg);
CLAVE_EXPORT clave_err clave_async_mutex_multi(clave_async_mutex *m, uint64_t owner,
                                               const clave_op *ops, size_t nops,
                                               clave_result_cb *cb, void *arg);

/* ---- asking for a lock ------------------------------------------------------------------ */

/* Asks whoever has this lock node (of a mutex, a side of a read-write lock, a lease; full path) to
 * let go, from any process: Curator's Revoker. Whether and when it does is up to the holder, which
 * hears of it only when it said that it is revocable. As clave_async_set; ENONODE: it has let go.
 */
#define CLAVE_REVOKE_WORD "__REVOKE__" /* what it writes */
CLAVE_EXPORT clave_err clave_async_revoke(clave_async_client *c, const char *node,
                                          clave_result_cb *cb, void *arg);

/* ---- who stands in a queue ------------------------------------------------------------ */

/* What clave writes into its lock nodes. Other clients' nodes have only `text`. */
typedef struct clave_identity {
    const char *host; /* NULL: unknown, in all of these */
    int64_t pid;      /* 0: unknown */
    const char *name;
    const char *command;
    const char *text; /* the raw data when it is printable and not in clave's form */
    /* For who looks for deadlocks (clave/async/deadlock.h). The caller may say the first; the
     * locks add the others to data of this form by themselves. */
    const char *owner; /* whose lock this is, across sessions and processes: equal texts, one
                          owner; "a/b" is a part of "a", which ends when its parts have */
    const char *task;  /* which of the owners that share a session, or the owner's text */
    uint32_t limit;    /* of a semaphore's nodes: how many leases there are; 0: unknown */
    bool yields;       /* gives up when it is to end a deadlock */
} clave_identity;
/* Writes the form "clave/1\nhost=..\npid=..\n.." (control characters and % escaped as
 * %XX); returns the length as snprintf does. */
CLAVE_EXPORT size_t clave_identity_format(const clave_identity *id, char *out, size_t cap);

typedef struct clave_participant {
    const char *node; /* name below the lock's path */
    clave_stat stat;  /* czxid is the token; ctime says since when (server's clock); all zeros,
                         and nothing in identity: the node may not be read */
    clave_identity identity;
    int32_t priority; /* of a candidate (clave/async/latch.h); 0: none */
} clave_participant;
/* In queue order, the holder first. err as clave_async_children; nodes that vanish meanwhile are
 * left out, and so are children that do not queue (docs/recipes.md says which do), unless no
 * child does: then all are listed, by their names. A missing path is an empty queue. */
typedef void clave_async_participants_cb(clave_async_client *c, clave_err err,
                                         const clave_participant *list, size_t n, void *arg);
CLAVE_EXPORT clave_err clave_async_participants(clave_async_client *c, const char *path,
                                                clave_async_participants_cb *cb, void *arg);

#ifdef __cplusplus
}
#endif
#endif
