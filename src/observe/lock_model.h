/* lock_model.h - the locks, read-write locks, semaphores, slots and elections of a tree, of clave,
 * Curator and kazoo alike, made from nodes that come and go.
 *
 * The model asks nobody. It knows what clave__lock_model_node and _gone told it, and whatever the
 * order of the nodes, it is always what a reading of the whole tree at that moment would give.
 * There are two exceptions: what a node said before Curator's request to release it replaced the
 * text is kept; and a persistent node that may be one of kazoo's leases counts from when the queue
 * beside it is known.
 *
 * A change of one place takes time in the logarithm of its queue. Times are wall clock, in
 * milliseconds. The folder:
 *
 *   lock_model       the queues and places of a tree
 *   lock_holders     who holds: decided here, and nowhere else
 *   lock_view        which queues are locks, of which kind, and their places in order
 *   lock_who         whose a place is, in words
 *   lock_json        a lock and a place as JSON, and its state as a number
 *   lock_listing     one lock, from one listing of its nodes
 *   lock_history     who held what when; why holds ended; counts and durations
 *   lock_deadlocks   owners that wait for each other
 *   election_terms   terms, vacancies and values of elections
 *   lock_replay      all of that for the time before, from a transaction log
 *
 * Used by src/web, `clave top` and `clave locks`. One who looks once fills a lock_listing, one who
 * follows a tree a lock_model. */
#ifndef CLAVE_OBSERVE_LOCK_MODEL_H
#define CLAVE_OBSERVE_LOCK_MODEL_H

#include "base/list.h"
#include "base/map.h"
#include "base/ordered_set.h"
#include "clave/async/client.h"
#include "recipe/queue/queue_kind.h"

enum {
    LOCK_DATA_MAX = 4096, /* longer data of a node is cut; one byte more tells that there is more */
};
#define LOCK_MODEL_BYTES ((size_t)256 << 20) /* of the places of a tree */

/* A session that has places. Only one that waits and has another place can be part of a deadlock:
 * its places are linked. */
struct lock_session {
    struct map_node node;
    int64_t id;
    struct list places;
    size_t nplaces, nwaits;
    bool linked;
};

/* A node in a queue. */
struct lock_node {
    struct ordered_node node; /* in lock_queue.places */
    struct lock_queue *queue;
    struct lock_session *session; /* NULL: the node is not ephemeral */
    struct list in_session;
    int64_t token;  /* czxid; 0: unreadable */
    int64_t queued; /* when its node was created; of one that is unreadable, when it was seen */
    int64_t held;   /* when it was granted, if it holds */
    int32_t version;
    uint32_t limit; /* of the semaphore, which the node says; 0: it does not */
    enum queue_kind kind;
    bool holds;
    /* No session owns its node (clave__queue_node_is_left_over). It neither holds nor waits: those
     * behind it wait until somebody deletes it. Slots are not, which are meant to be persistent. */
    bool left_over;
    bool bare; /* its name is a UUID, right below the path */
    /* A slot, below P/owners: its owner is an id, and it holds until it is given back. Its number
     * is its token, so those kept longest come first. */
    bool kept;
    struct map_node in_kept; /* in lock_model.kept, if it is kept */
    /* It held already when it was first seen: `held` is when its node was created. */
    bool held_before;
    bool told;  /* that it holds */
    bool asked; /* to release it; of an election, to resign */
    /* Its owner begins after a lock delay, if the holder before it was lost. A candidate's node
     * does not say so. */
    bool delays;
    /* The client may not read the node: its name says its kind and its place in the queue, and
     * nothing says whose it is. */
    bool unreadable;
    bool owned; /* its data names its owner, who may have places of other sessions: it is linked */
    size_t ndata;
    bool cut;        /* there is more than is kept */
    char *data;      /* with a NUL after it; NULL: none */
    uint32_t number; /* where the number begins in the name; 0: it has none */
    char name[];
};

/* What the places of a queue are ordered by: the number, then the name. */
struct lock_key {
    const char *number, *name;
};
static inline struct lock_key clave__lock_key(const struct lock_node *p)
{
    return (struct lock_key){p->name + p->number, p->name};
}

/* The marks of a queue in the set of all of them. */
enum { LOCK_QUEUE_LINKED = 1 }; /* it has places that are linked */

/* The places at one path. A semaphore at P is two queues: the leases below P/leases, a queue of the
 * path P with `leases`; and, of the path P/locks, those who wait for one. So are the slots at P:
 * those below P/owners, with `leases`; and those who wait in P/queue. */
struct lock_queue {
    struct ordered_node node; /* in lock_model.queues */
    struct list in_dirty;
    struct ordered places;
    struct lock_queue *partner; /* the other queue of a semaphore, or of slots */
    size_t of_kind[QUEUE_KINDS];
    size_t nholders, nleft_over;
    size_t nkept; /* places that are slots */
    bool limited; /* P/limit says how many slots there may be: */
    uint32_t slots_limit;
    bool leases;
    bool kazoo;   /* there is a node of kazoo's, by which the path is a semaphore's */
    bool told;    /* the last event of it showed it */
    int64_t mark; /* the token in the mark of a lock delay (clave/async/lock_delay.h); 0: none */
    size_t nbare; /* places that are leases only if it is a semaphore */
    size_t len;
    char path[];
};

/* What they are ordered by: the semaphore of a path comes after the queue right at it. */
struct lock_queue_key {
    const char *path;
    size_t len;
    bool leases;
};

enum lock_change {
    LOCK_QUEUED,  /* a node is there; GRANTED follows if it holds at once */
    LOCK_GRANTED, /* once a place */
    LOCK_ASKED,   /* somebody asked for it, for the first time */
    LOCK_ENDED,   /* its node is gone */
};

/* Runs inside _node and _gone once the model is loaded. The place is valid during the call. */
typedef void lock_model_cb(void *arg, enum lock_change what, const struct lock_node *p, int64_t at);

struct lock_model {
    const struct clave_mem *mem; /* borrowed */
    struct ordered queues;       /* by path */
    struct map sessions;
    struct map kept;   /* slots, by queue and name */
    struct list dirty; /* queues that have changed since they were last taken */
    size_t nplaces;
    size_t bytes, max_bytes; /* of places and queues */
    uint64_t left_out;       /* nodes that were beyond max_bytes; until _clear */
    bool loading;
    bool plain; /* any node with a number is a place of a lock: of programs written by hand */
    uint64_t seed;
    lock_model_cb *changed; /* may be NULL */
    void *arg;
};

/* max_bytes 0: no bound. ENOMEM. It starts loading: no change is told before _loaded. */
clave_err clave__lock_model_init(struct lock_model *m, const struct clave_mem *mem, uint64_t seed,
                                 size_t max_bytes);
void clave__lock_model_fini(struct lock_model *m);
/* Forgets all nodes, and starts loading again. */
void clave__lock_model_clear(struct lock_model *m);
void clave__lock_model_loaded(struct lock_model *m);

/* A node is there, or was written. Any node may be told; those of no queue are ignored. One that
 * may not be read has a Stat whose czxid is 0. A node for which there is no memory, or which is
 * beyond max_bytes, is counted in left_out: from then on the model may be wrong, and says so. */
void clave__lock_model_node(struct lock_model *m, int64_t at, const char *path,
                            const clave_stat *stat, const void *data, size_t len);
/* A node that is there was written: what a log tells. An older version changes nothing. */
void clave__lock_model_written(struct lock_model *m, int64_t at, const char *path, int32_t version,
                               const void *data, size_t len);
void clave__lock_model_gone(struct lock_model *m, int64_t at, const char *path);
/* A session has ended: all its nodes are gone. */
void clave__lock_model_session_gone(struct lock_model *m, int64_t at, int64_t id);

/* ---- locks ----------------------------------------------------------------------------------- */

/* A lock is a queue with places that is not the waiting side of a semaphore. They come in the order
 * of their paths. */
struct lock_queue *clave__lock_model_find(const struct lock_model *m, const char *path);
/* The semaphore of that path, or what is right at it. */
struct lock_queue *clave__lock_model_get(const struct lock_model *m, const char *path, bool leases);
/* The first lock after the path; `leases`: after the semaphore of that path too. "": the first. */
struct lock_queue *clave__lock_model_after(const struct lock_model *m, const char *path,
                                           bool leases);
/* The next queue that has linked places, of any kind; NULL: the first. */
struct lock_queue *clave__lock_model_linked_after(const struct lock_model *m,
                                                  const struct lock_queue *q);
bool clave__lock_model_has_session(const struct lock_model *m, int64_t id);
/* Something that is shown of this queue has changed: _take_dirty returns it again. */
void clave__lock_model_set_dirty(struct lock_model *m, struct lock_queue *q);
/* A lock that has changed, or vanished (then it has no places); NULL: no more. What it returned is
 * given back by _settle, which frees a queue without places. */
struct lock_queue *clave__lock_model_take_dirty(struct lock_model *m);
void clave__lock_model_settle(struct lock_model *m, struct lock_queue *q);

/* The name of the node is that of a place in a queue, or of a lease of kazoo's. */
bool clave__lock_is_place(const char *path);
/* The token of the slot that was broken, if this is a node P/broken; else 0. */
int64_t clave__lock_broken_slot(const char *path, const void *data, size_t len);
/* True if there may be locks below the node at this path, since it is no place itself. If such a
 * node may not be read, the locks below it are not seen. */
bool clave__lock_may_be_below(const char *path);
/* A UUID: the name of a lease of kazoo's, if its path is a semaphore's. */
bool clave__lock_is_bare(const char *name);
/* It ends with a number of the server's, whatever it begins with. */
bool clave__lock_is_plain(const char *name);
/* It has places, or awaits leases or slots, and is neither the waiting side of a semaphore nor
 * something else of kazoo's. */
bool clave__lock_is_shown(const struct lock_queue *q);
/* These are slots, owned or waited for. */
bool clave__lock_is_slots(const struct lock_queue *q);
/* The leases or slots that those in this queue acquire; NULL: it is no waiting side. */
const struct lock_queue *clave__lock_acquired(const struct lock_queue *q);
struct lock_queue *clave__lock_queue_at(const struct lock_model *m,
                                        const struct lock_queue_key *key);

/* Of a lease or slot: the place in the other queue with which its owner has waited for it. NULL:
 * none is there. */
const struct lock_node *clave__lock_turn_of(const struct lock_node *p);
/* The path of the lock to which this happened. NULL: there is nothing to tell, because it is no
 * lock or only a step of an acquire that shows elsewhere. */
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

/* Of slots, and of a semaphore: what the newest of its nodes says that says one; 0: not known, or
 * another kind. */
uint32_t clave__lock_limit(const struct lock_queue *q);
size_t clave__lock_nwaiters(const struct lock_queue *q);
size_t clave__lock_nleft_over(const struct lock_queue *q);

/* Holders of a lock, those who wait, and what is left over, in the order of the queue: the next one
 * after this place, or after its key if it may be gone; NULL: the first. */
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

/* The path of its node, to be freed; NULL: no memory. */
char *clave__lock_node_path(const struct clave_mem *mem, const struct lock_node *p);

/* -1: it held already when it was seen, and nobody may know since when. */
int64_t clave__lock_held_since(const struct lock_node *p);

/* A stock kazoo lock that does not see those before it: its place does not tell whether it holds.
 */
bool clave__lock_is_outside(const struct lock_node *p);
/* First in its queue, and within its lock delay: the mark is that of a holder that was lost. */
bool clave__lock_is_delayed(const struct lock_node *p);

#endif
