/* async/mutex.h - a fair lock across processes, with the layout of Curator's
 * InterProcessMutex: <path>/_c_<uuid>-lock-<10 digits>, ephemeral sequential, in a
 * container. It shares one queue with Curator, and with kazoo (docs/guide/from-kazoo.md).
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules; the
 * blocking form is clave/mutex.h.
 *
 * An owner is any 64-bit number the caller chooses (a thread, a task, 0). The lock is
 * reentrant per owner; two owners of one mutex exclude each other like two processes. */
#ifndef CLAVE_ASYNC_MUTEX_H
#define CLAVE_ASYNC_MUTEX_H

#include "clave/async/grant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_mutex clave_async_mutex; /* opaque */

typedef enum clave_mutex_event_kind {
    CLAVE_MUTEX_QUEUED, /* it is waiting, or its position has changed: `ahead` nodes are before it
                         */
    CLAVE_MUTEX_NEXT,   /* only the holder is before it: a chance to warm up */
    CLAVE_MUTEX_HELD,   /* granted (the acquire's callback says so too) */
    CLAVE_MUTEX_LOST,   /* a held lock was lost, exactly once per hold; `why`: EEXPIRED or
                           another cause of the session's loss, ENONODE (somebody deleted the
                           node), EMAXHOLD, or ESILENT (clave_async_grant_depend) */
    CLAVE_MUTEX_ASKED,  /* somebody asks for a revocable lock that is held (clave_async_revoke,
                           Curator's Revoker): release it or not, as you like */
} clave_mutex_event_kind;

typedef struct clave_mutex_event {
    clave_mutex_event_kind kind;
    uint64_t owner;
    size_t ahead;
    const char *predecessor; /* for QUEUED and NEXT: full path of the node just before ours */
    clave_err why;
    /* For QUEUED and NEXT: full path of the node just before ours if no session owns that (see
     * left_over in clave_participant), so that it will never go away by itself. NULL: a session
     * owns it, or that is not known yet; once it is known, the event is repeated. */
    const char *left_over;
} clave_mutex_event;
typedef void clave_mutex_event_cb(clave_async_mutex *m, const clave_mutex_event *ev, void *arg);

typedef struct clave_mutex_options {
    size_t size;      /* CLAVE_MUTEX_OPTIONS_INIT sets it: clave/options.h */
    const void *data; /* of the lock node: see clave_identity_format; copied */
    size_t len;
    const clave_acl *acls; /* for the lock node; NULL: open; copied */
    size_t nacls;
    int64_t max_hold_ms;  /* 0: no limit. When it is over the node is deleted: LOST(EMAXHOLD) */
    int64_t min_valid_ms; /* a grant with less time left to the hold deadline is first confirmed
                             by a request that passes the leader; 0: an eighth of the session
                             timeout */
    bool strict;    /* list again at every hand-over instead of trusting the predecessors that are
                       known (for when other clients write nodes with other names there) */
    bool revocable; /* gets the event ASKED, also if somebody asked while it was waiting; costs one
                       request at the beginning of each hold */
    /* If not 0, an acquire that has waited this long looks for a deadlock that it is part of
     * (clave/async/deadlock.h), again after twice as long, and so on. Among the members that look,
     * the one that arrived last ends with EDEADLOCK, and keeps what it holds elsewhere. The data
     * must be in clave's form, or NULL; not with simple_prefix. The search covers the paths in
     * lock_roots and everything below them, which must be the same for everybody and have at most
     * 10000 nodes (otherwise it finds nothing, and the log says so); if there are none, it covers
     * the parent of the lock's path. Copied. */
    int64_t detect_deadlocks_ms;
    const char *const *lock_roots;
    size_t nlock_roots;
    clave_mutex_event_cb *event_cb; /* may be NULL */
    void *event_arg;
    /* For joining programs written by hand; NULL: Curator's layout. The nodes are
     * <path>/<prefix><10 digits>, and their data is yours, byte for byte: NULL is none. They are
     * ordered by their numbers; as everywhere, children with other names count too, and those
     * without the prefix are ordered by their whole name. If the answer to a create is lost, the
     * node is found by its session and its czxid (CLAVE_CREATE_CERTAIN), so the same session must
     * not create nodes with such names in any other way. EINVAL: the prefix is empty, contains a
     * slash or consists of digits only; or the mutex is a side of a read-write lock or a part of a
     * multilock. Copied. */
    const char *simple_prefix;
} clave_mutex_options;
#define CLAVE_MUTEX_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_mutex_options)

/* Makes a mutex on `path`; does not contact the server. On CLAVE_OK *out belongs to the caller, who
 * frees it with clave_async_mutex_free; on an error it is NULL. `o` may be NULL. EPATH: the path is
 * not valid. EINVAL: an option is out of range. ENOMEM. ECLOSED. */
CLAVE_MAKING clave_err clave_async_mutex_new(clave_async_mutex **out, clave_async_client *c,
                                             const char *path, const clave_mutex_options *o);
/* Cancels every pending acquire (its callback runs with ECANCELED, later) and releases what is
 * held. No event follows. NULL is ignored. */
CLAVE_EXPORT void clave_async_mutex_free(clave_async_mutex *m);

typedef void clave_async_mutex_cb(clave_async_mutex *m, uint64_t owner, clave_err err, void *arg);

#define CLAVE_TRY INT64_MIN /* as a deadline: acquire only if it is free now */

/* Acquires for `owner`: until `deadline` (the client's clock), CLAVE_TRY, or CLAVE_NEVER to wait
 * for ever. A deadline in the past is a try, and a try waits for nothing, not even a connection. If
 * the session ends while it waits, the attempt continues automatically, at the end of the queue. cb
 * runs once, later: CLAVE_OK: held (again). EBUSY: not acquired in time, and on the present
 * connection a server has shown somebody else before this owner. EUNREACHABLE: not acquired in
 * time, and there was no such answer: nobody knows who holds the mutex. ECANCELED.
 * EDEADLOCK: see the options. ENOAUTH, ESEQUENCE, EINVALIDACL and other final errors: the server
 * refused the node. ECLOSED. At once: EINVAL: this owner has an acquire pending. ELOST: its hold
 * was lost and has not been released yet. EUPGRADE: see clave/async/rwlock.h. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_mutex_acquire(clave_async_mutex *m, uint64_t owner,
                                                 int64_t deadline, clave_async_mutex_cb *cb,
                                                 void *arg);
/* Ends a pending acquire. Its callback runs later, with ECANCELED, or with CLAVE_OK if it had
 * already been granted. ENOTHELD: none is pending. */
CLAVE_METHOD clave_err clave_async_mutex_cancel(clave_async_mutex *m, uint64_t owner);
/* Says in words who waits for whom in the deadlock that most recently ended an acquire with
 * EDEADLOCK; valid until the next one. NULL: there was no deadlock, or no memory for the text. */
CLAVE_METHOD const char *clave_async_mutex_deadlock(const clave_async_mutex *m);
/* Releases one hold; the last one deletes the node. cb may be NULL: the delete is sent and not
 * awaited; if its answer is lost, it is repeated in the background. At once: ENOTHELD: this owner
 * holds nothing. ELOST: the hold had been lost; EMAXHOLD: its maximum time had passed; ESILENT: its
 * work was silent for too long; in all three it is released all the same, and cb does not run.
 * ENOMEM, with cb and other holds left: not released. */
CLAVE_METHOD clave_err clave_async_mutex_release(clave_async_mutex *m, uint64_t owner,
                                                 clave_async_mutex_cb *cb, void *arg);

/* What the owner holds: its token, how long it is valid, and the writes that only it may do
 * (clave/async/grant.h). On CLAVE_OK *out belongs to the caller, who frees it with
 * clave_async_grant_free; on an error it is NULL. Each call returns a reference of its own.
 * ENOTHELD: the owner holds nothing. ELOST: its hold was lost and has not been released yet.
 * ENOMEM. */
CLAVE_METHOD clave_err clave_async_mutex_grant(const clave_async_mutex *m, uint64_t owner,
                                               clave_async_grant **out);

/* ---- asking for a lock ------------------------------------------------------------------ */

#define CLAVE_REVOKE_WORD "__REVOKE__" /* what Curator's Revoker writes into a lock node */
/* Asks the holder of a lock node (of a mutex, a side of a read-write lock, a lease, a candidate;
 * full path) to release it, from any process: Curator's Revoker. Whether and when it does is up to
 * the holder, which is notified only if it is revocable. In a node of clave's, the request is added
 * to what the node says (clave_identity); in another client's, the word replaces what the node
 * said. Reads the node, then overwrites exactly the version that was read. In the result, `data` is
 * what the node held before. Errors as clave_async_get and clave_async_set. ENONODE: it has been
 * released. EINVAL: the node says that its holder is not revocable, or it is kazoo's, whose locks
 * never are: nothing was written. EBADVERSION: others keep writing to the node; nothing was
 * written. */
CLAVE_METHOD clave_err clave_async_revoke(clave_async_client *c, const char *node,
                                          clave_result_cb *cb, void *arg);

/* ---- who is in a queue ---------------------------------------------------------------- */

/* The owner of a lock node, as clave writes it into the node's data. For nodes of other clients
 * only `text` is set. */
typedef struct clave_identity {
    const char *host; /* NULL: unknown, in all of these */
    int64_t pid;      /* 0: unknown */
    const char *name;
    const char *command;
    const char *text; /* anything else there is to say; for other clients' nodes the raw data, if it
                         is printable */
    /* For deadlock detection (clave/async/deadlock.h). The caller may set `owner`; the locks add
     * the others to data of this form by themselves. */
    const char *owner; /* whose lock this is, across sessions and processes: equal texts are one
                          owner; "a/b" is a part of "a", which ends when its parts have ended */
    const char *task;  /* which of the owners that share a session, or the owner's text */
    uint32_t limit;    /* in a semaphore's nodes: how many leases there are; 0: unknown */
    bool yields;       /* it gives up if it is the one that has to end a deadlock */
    bool asked;        /* somebody has asked the owner to release it (clave_async_revoke) */
    /* Does the owner accept such requests? 1: yes; -1: no; 0: unknown. clave writes it into data
     * that it makes by itself. */
    int8_t revocable;
    /* The trace in which the lock was requested, as in W3C Trace Context ("00-TRACE-SPAN-FLAGS"),
     * so that the trace of a waiter leads to that of the holder. Left out if it is not such a
     * text. */
    const char *traceparent;
} clave_identity;
/* Writes the form "clave/1\nhost=..\npid=..\n.." into `out`, cut to cap bytes, with control
 * characters and % escaped as %XX; returns the full length, as snprintf does. Any thread. */
CLAVE_EXPORT size_t clave_identity_format(const clave_identity *id, char *out, size_t cap);

typedef struct clave_participant {
    const char *node; /* name below the lock's path */
    clave_stat stat;  /* czxid is the token; ctime tells since when, by the server's clock; all
                         zeros, with an empty identity: the node may not be read */
    clave_identity identity;
    int32_t priority; /* of a candidate (clave/async/latch.h); 0: none */
    /* No session owns the node: a program that copied the tree made it, or somebody did by hand. It
     * holds and leads nothing, but keeps everybody behind it waiting, and it never goes away by
     * itself: delete it (`clave locks break`). clave does not touch it. */
    bool left_over;
} clave_participant;
/* Receives the participants in queue order, the holder first unless it is left over; the list is
 * valid during the call only. err as in clave_async_children. Nodes deleted in the meantime are
 * left out, as are children that do not queue (docs/evidence/queues.md says which do), unless no
 * child does: then all are listed, by name. A missing path is an empty queue. */
typedef void clave_async_participants_cb(clave_async_client *c, clave_err err,
                                         const clave_participant *list, size_t n, void *arg);
/* Lists the queue of a mutex or another lock at `path`: Curator's getParticipantNodes. cb runs
 * once, later. At once: EPATH: the path is not valid. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_participants(clave_async_client *c, const char *path,
                                                clave_async_participants_cb *cb, void *arg);

#ifdef __cplusplus
}
#endif
#endif
