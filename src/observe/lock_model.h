/* lock_model.h - a model of the locks, read-write locks, semaphores, slots and elections in a tree,
 * whether of clave, Curator or kazoo, kept up to date as nodes come and go.
 *
 * The model never asks a server. It knows what was passed to clave__lock_model_node and _gone and,
 * whatever the order of these calls, always equals what reading the whole tree at that moment would
 * give. There are two exceptions. When Curator's request to release replaces the text of a node,
 * what the node said before is kept. And a persistent node that may be one of kazoo's leases counts
 * only once kazoo's queue beside the path is known.
 *
 * Changing one place takes time logarithmic in its queue. Times are wall clock in milliseconds. The
 * folder:
 *
 *   lock_model       the queues and places of a tree
 *   lock_holders     who holds: decided here, and nowhere else
 *   lock_view        which queues are locks, of which kind, and their places in order
 *   lock_who         the owner of a place, in words
 *   lock_json        a lock and a place as JSON, and its state as a number
 *   lock_listing     one lock, from a single listing of its nodes
 *   lock_history     who held what when; why holds ended; counts and durations
 *   lock_deadlocks   owners that wait for each other
 *   election_terms   terms, vacancies and values of elections
 *   lock_replay      all of this for an earlier time, from a transaction log
 *
 * Used by src/web, `clave top` and `clave locks`. To look once, fill a lock_listing; to follow a
 * tree, keep a lock_model. */
#ifndef CLAVE_OBSERVE_LOCK_MODEL_H
#define CLAVE_OBSERVE_LOCK_MODEL_H

#include "base/list.h"
#include "base/map.h"
#include "base/ordered_set.h"
#include "clave/async/client.h"
#include "recipe/queue/queue_kind.h"

enum {
    LOCK_DATA_MAX =
        4096, /* data of a node is kept up to this length, plus one byte that shows there is more */
};
#define LOCK_MODEL_BYTES ((size_t)256 << 20) /* for the places of a tree */

/* A session that has places. Its places are linked, that is, considered when looking for deadlocks,
 * if it has more than one of them and waits in at least one: no other session can be part of a
 * deadlock. */
struct lock_session {
    struct map_node node;
    int64_t id;
    struct list places;
    size_t nplaces, nwaits;
    bool linked;
};

/* A place: a node in a queue. */
struct lock_node {
    struct ordered_node node; /* in lock_queue.places */
    struct lock_queue *queue;
    struct lock_session *session; /* NULL: the node is not ephemeral */
    struct list in_session;
    int64_t token;    /* its node's czxid; 0: unreadable */
    int64_t queued;   /* when its node was created or, if it is unreadable, first seen */
    int64_t held;     /* if it holds: when it was granted, as far as was seen */
    int64_t recorded; /* when it was granted, according to its node; -1: the node does not say */
    bool promised;    /* `recorded` is right unless the owner had to wait */
    int32_t version;
    uint32_t limit; /* the semaphore's limit, according to the node; 0: it names none */
    enum queue_kind kind;
    bool holds;
    /* No session owns the node (clave__queue_node_is_left_over). It neither holds nor waits, and
     * everybody behind it waits until somebody deletes it. Slots are not left over: they are
     * persistent by design. */
    bool left_over;
    bool bare; /* its name is a bare UUID, and it lies right below the path */
    /* It is a slot, below P/owners: its owner is an id, and it holds until it is given back. Its
     * number is its token, so the slots held longest come first. */
    bool kept;
    struct map_node in_kept; /* in lock_model.kept, if it is a slot */
    /* It already held when it was first seen, so `held` is when its node was created: it was
     * granted then or later. */
    bool held_before;
    bool told;  /* its grant has been reported */
    bool asked; /* it has been asked to release or, in an election, to resign */
    /* If the holder before it is lost, it begins only after a lock delay. The node of a candidate
     * does not show this. */
    bool delays;
    /* Its node says that its work is unhealthy: the check of `clave lock --health` fails, or it is
     * being ended. */
    bool unhealthy;
    /* The client is not allowed to read the node. Its name tells its kind and its place in the
     * queue, but nothing tells whose it is. */
    bool unreadable;
    bool owned; /* its data names an owner, who may have places of other sessions too; so it is
                   linked */
    size_t ndata;
    bool cut;        /* the data is longer than what is kept */
    char *data;      /* NUL-terminated; NULL: there is none */
    uint32_t number; /* where the number begins in the name; 0: it has no number */
    char name[];
};

/* The key that orders the places of a queue: by the number, then by the name. */
struct lock_key {
    const char *number, *name;
};
static inline struct lock_key clave__lock_key(const struct lock_node *p)
{
    return (struct lock_key){p->name + p->number, p->name};
}

/* Marks of a queue in the set of all queues. LINKED: it has linked places. */
enum { LOCK_QUEUE_LINKED = 1 };

/* A node of another program in a directory where only places belong: P/owners and P/leases, where
 * every child takes room, or P/queue and P/locks. A node directly below a lock's path is not one,
 * because it may be the parent of another lock. */
enum lock_stranger_side {
    LOCK_STRANGE_OWNERS,
    LOCK_STRANGE_LEASES,
    LOCK_STRANGE_QUEUE,
    LOCK_STRANGE_LOCKS,
    LOCK_STRANGE_SIDES
};
struct lock_stranger {
    struct ordered_node node; /* in lock_queue.strangers; marked with 1 << side */
    enum lock_stranger_side side;
    size_t at; /* where its name below P begins in the path: "owners/foo" */
    char path[];
};

/* The places at one path. A semaphore at P has two queues: its leases, which are the nodes below
 * P/leases, form the queue of path P with `leases` set; the clients waiting for a lease form the
 * queue of path P/locks. Slots at P are the same: the owners below P/owners have `leases` set, and
 * those waiting are in P/queue. */
struct lock_queue {
    struct ordered_node node; /* in lock_model.queues */
    struct list in_dirty;
    struct ordered places;
    struct lock_queue *partner; /* the other queue of the semaphore or the slots */
    size_t of_kind[QUEUE_KINDS];
    size_t nholders, nleft_over;
    size_t nkept; /* how many places are slots */
    bool limited; /* P/limit says how many slots there may be: */
    uint32_t slots_limit;
    bool bad_limit;  /* P/limit exists, but is not a number */
    bool has_owners; /* P/owners exists: together with P/limit this shows that the path is one of
                        slots */
    struct ordered strangers; /* if `leases`: the strangers, by their name below the path */
    size_t nstrange[LOCK_STRANGE_SIDES];
    bool leases;
    bool kazoo;   /* kazoo's node exists that shows that the path is a semaphore's */
    bool told;    /* the last event about it showed it */
    int64_t mark; /* the token in the mark of a lock delay (clave/async/lock_delay.h); 0: there is
                     no mark */
    size_t nbare; /* how many places are leases only if this is a semaphore */
    size_t len;
    char path[];
};

/* The key that orders queues: by path, and the semaphore of a path after the queue right at it. */
struct lock_queue_key {
    const char *path;
    size_t len;
    bool leases;
};

enum lock_change {
    LOCK_QUEUED,  /* a node has appeared; if it holds at once, GRANTED follows */
    LOCK_GRANTED, /* reported once per place */
    LOCK_ASKED,   /* it was asked to release, for the first time */
    LOCK_ENDED,   /* its node is gone */
};

/* Reports a change; runs inside _node and _gone once the model is loaded. The place is valid during
 * the call. */
typedef void lock_model_cb(void *arg, enum lock_change what, const struct lock_node *p, int64_t at);

struct lock_model {
    const struct clave_mem *mem; /* borrowed */
    struct ordered queues;       /* by path */
    struct map sessions;
    struct map kept;   /* slots, by name */
    struct list dirty; /* queues that have changed since they were last taken */
    size_t nplaces;
    size_t bytes, max_bytes; /* the memory of places and queues */
    uint64_t left_out;       /* nodes that did not fit in max_bytes since the last _clear */
    bool loading;
    bool blind; /* what is reported happened while nobody looked, so its order is not known */
    bool plain; /* any node with a number counts as a place of a lock, as in programs written by
                   hand */
    uint64_t seed;
    lock_model_cb *changed; /* may be NULL */
    void *arg;
};

/* Begins loading: no change is reported before _loaded. A max_bytes of 0 means unlimited.
 * ENOMEM. */
clave_err clave__lock_model_init(struct lock_model *m, const struct clave_mem *mem, uint64_t seed,
                                 size_t max_bytes);
void clave__lock_model_fini(struct lock_model *m);
/* Forgets all nodes and begins loading again. */
void clave__lock_model_clear(struct lock_model *m);
void clave__lock_model_loaded(struct lock_model *m);

/* A node exists, or was written. Any node may be passed in; those that belong to no queue are
 * ignored. For a node that may not be read, pass a Stat with a czxid of 0. If there is no memory
 * for a node, or it does not fit in max_bytes, left_out counts it: from then on the model may be
 * wrong, and says so. */
void clave__lock_model_node(struct lock_model *m, int64_t at, const char *path,
                            const clave_stat *stat, const void *data, size_t len);
/* An existing node was written, as reported by a log. A version older than the present one changes
 * nothing. */
void clave__lock_model_written(struct lock_model *m, int64_t at, const char *path, int32_t version,
                               const void *data, size_t len);
void clave__lock_model_gone(struct lock_model *m, int64_t at, const char *path);
/* A session has ended, and all its nodes are gone with it. */
void clave__lock_model_session_gone(struct lock_model *m, int64_t at, int64_t id);

/* ---- locks ----------------------------------------------------------------------------------- */

/* The queue at this path that is a lock, which means that it has places and is not the waiting side
 * of a semaphore; NULL: there is none. Locks are ordered by path. */
struct lock_queue *clave__lock_model_find(const struct lock_model *m, const char *path);
/* The semaphore at that path if `leases`, otherwise the lock right at it; NULL: there is none. */
struct lock_queue *clave__lock_model_get(const struct lock_model *m, const char *path, bool leases);
/* The first lock after the path; with `leases`, also after the semaphore at that path. "" gives the
 * first lock. */
struct lock_queue *clave__lock_model_after(const struct lock_model *m, const char *path,
                                           bool leases);
/* The next queue of any kind that has linked places; q is NULL for the first. */
struct lock_queue *clave__lock_model_linked_after(const struct lock_model *m,
                                                  const struct lock_queue *q);
bool clave__lock_model_has_session(const struct lock_model *m, int64_t id);
/* Something that is shown of this queue has changed, so _take_dirty will return it again. */
void clave__lock_model_set_dirty(struct lock_model *m, struct lock_queue *q);
/* Returns a lock that has changed or vanished (then it has no places); NULL: there are no more.
 * Hand the result back to _settle, which frees a queue without places. */
struct lock_queue *clave__lock_model_take_dirty(struct lock_model *m);
void clave__lock_model_settle(struct lock_model *m, struct lock_queue *q);

/* True if a node with this name is a place in a queue, or a lease of kazoo's. */
bool clave__lock_is_place(const char *path);
/* The token of the slot that was broken, if this is a node P/broken; otherwise 0. */
int64_t clave__lock_broken_slot(const char *path, const void *data, size_t len);
/* True if there may be locks below the node at this path, which is so unless it is a place itself.
 * If such a node may not be read, the locks below it cannot be seen. */
bool clave__lock_may_be_below(const char *path);
/* True if the name is a UUID, as that of a kazoo lease; it is one only if its path is a
 * semaphore's. */
bool clave__lock_is_bare(const char *name);
/* True if the name ends with a sequence number, whatever it begins with. */
bool clave__lock_is_plain(const char *name);
/* True if the queue is shown as a lock: it has places, or somebody waits for its leases or slots,
 * and it is neither the waiting side of a semaphore nor something else of kazoo's. */
bool clave__lock_is_shown(const struct lock_queue *q);
/* True if these are slots, owned or waited for. */
bool clave__lock_is_slots(const struct lock_queue *q);
/* The leases or slots that the clients in this queue are acquiring; NULL: this is not a waiting
 * side. */
const struct lock_queue *clave__lock_acquired(const struct lock_queue *q);
struct lock_queue *clave__lock_queue_at(const struct lock_model *m,
                                        const struct lock_queue_key *key);

/* For a lease or slot: the place in the other queue with which its owner waited for it; NULL: it is
 * not there. */
const struct lock_node *clave__lock_turn_of(const struct lock_node *p);
/* The path of the lock to which the change happened. NULL: there is nothing to report, since it is
 * not a lock, or only a step of an acquire that is reported elsewhere. */
const char *clave__lock_told_path(enum lock_change what, const struct lock_node *p);

enum lock_queue_kind {
    LOCK_KIND_LOCK,
    LOCK_KIND_RW,
    LOCK_KIND_SEMAPHORE,
    LOCK_KIND_SLOT,
    LOCK_KIND_ELECTION,
    LOCK_KIND_MIXED,
    LOCK_KINDS
};
enum lock_queue_kind clave__lock_kind(const struct lock_queue *q);
/* "lock", "rw", "semaphore", "slot", "election", "mixed". */
const char *clave__lock_kind_name(enum lock_queue_kind kind);

/* The limit of a semaphore or of slots, according to the newest node that names one; 0: unknown, or
 * of another kind. */
uint32_t clave__lock_limit(const struct lock_queue *q);
size_t clave__lock_nwaiters(const struct lock_queue *q);
size_t clave__lock_nleft_over(const struct lock_queue *q);
/* True if a stock kazoo lock waits here that does not see the places before it, so it may hold the
 * lock too (clave__queue_kind_unseen). */
bool clave__lock_has_outside(const struct lock_queue *q);

/* The holders, the waiters and the left-over places of a lock, each in queue order: the next one
 * after the given place, or after its key if the place may be gone. NULL gives the first. */
struct lock_node *clave__lock_holder_after(const struct lock_queue *q, const struct lock_node *p);
struct lock_node *clave__lock_waiter_after(const struct lock_queue *q, const struct lock_node *p);
struct lock_node *clave__lock_left_over_after(const struct lock_queue *q,
                                              const struct lock_node *p);
struct lock_node *clave__lock_holder_after_key(const struct lock_queue *q,
                                               const struct lock_key *key);
struct lock_node *clave__lock_waiter_after_key(const struct lock_queue *q,
                                               const struct lock_key *key);
struct lock_node *clave__lock_left_over_after_key(const struct lock_queue *q,
                                                  const struct lock_key *key);

/* True if these are slots whose P/limit is no number, so that nobody can take one. */
bool clave__lock_has_bad_limit(const struct lock_queue *q);
/* The number of strangers among the nodes of these slots or this semaphore, and the first of them
 * whose name below the path comes after `name` ("": the first of all; NULL: there are no more). */
size_t clave__lock_nstrangers(const struct lock_queue *q);
const struct lock_stranger *clave__lock_stranger_after(const struct lock_queue *q,
                                                       const char *name);
static inline const char *clave__lock_stranger_name(const struct lock_stranger *s)
{
    return s->path + s->at;
}

/* The path of the place's node, to be freed by the caller; NULL: no memory. */
char *clave__lock_node_path(const struct clave_mem *mem, const struct lock_node *p);

/* Since when the place has held; -1: that is not known. LOCK_SINCE_NODE: its node tells the time,
 * by the servers' clock, so everybody reads the same time. LOCK_SINCE_SEEN: the grant was seen, and
 * the time is by the clock of whoever saw it; or the place did not have to wait. The ctime of a
 * place in a queue alone proves only that its grant was not earlier. */
enum lock_since { LOCK_SINCE_UNKNOWN, LOCK_SINCE_SEEN, LOCK_SINCE_NODE };
int64_t clave__lock_held_since(const struct lock_node *p, enum lock_since *how);

/* True for a stock kazoo lock that does not see some places before it: whether it holds cannot be
 * told from its place. */
bool clave__lock_is_outside(const struct lock_node *p);
/* True while a place waits for its lock delay: it is to begin only after a delay if its predecessor
 * was lost, and the mark is that of a holder other than itself. */
bool clave__lock_is_delayed(const struct lock_node *p);

#endif
