/* lock_history.h - what happened to the locks of a tree: who queued for, held and lost what, and
 * when; why a hold ended; how often and how long, in numbers.
 *
 * The history has the newest MOST_ENTRIES entries of at most KEPT_MS and KEPT_BYTES, whichever is
 * least. It ends with the gate; what was before the gate may be put in front of it.
 *
 * Why a hold ended the tree does not show: a node is gone, and that is all. A part of the program
 * that knows more says so before or at once after (a claim of this gate that is released, a lock
 * that an operator breaks). Otherwise the hold was released if its session has other nodes in
 * queues SETTLE_MS later, since a session that ends takes all of them with it. A slot was given
 * back unless P/broken says otherwise; a node that no session owned was deleted by somebody.
 * Otherwise nobody knows. */
#ifndef CLAVE_OBSERVE_LOCK_HISTORY_H
#define CLAVE_OBSERVE_LOCK_HISTORY_H

#include "base/histogram.h"
#include "base/json_writer.h"
#include "base/list.h"
#include "observe/lock_model.h"

/* ---- why a hold ended ---------------------------------------------------------------------- */

enum lock_cause {
    LOCK_UNKNOWN,
    LOCK_RELEASED,
    LOCK_EXPIRED, /* the session */
    LOCK_CLOSED,  /* the session, by its client */
    LOCK_BROKEN,  /* by an operator */
    LOCK_CAUSES
};
/* "unknown", "released", ... */
const char *clave__lock_cause_name(enum lock_cause cause);

/* A place that is gone, as it was. */
struct lock_end {
    struct list link;
    int64_t due; /* by the engine's clock */
    int64_t session, token;
    enum lock_cause cause;
    enum lock_queue_kind kind;
    bool held;
    bool kept;      /* a slot: released unless somebody says that it was broken */
    bool left_over; /* no session owned it, so somebody else deleted it: it was broken */
    int64_t waited; /* ms, of one that did not hold */
    uint32_t id;    /* a hash of its id, of one that waited for a slot; 0: not known */
    uint64_t entry; /* its number in the history; 0: none */
    char path[];    /* of the lock */
};

struct lock_end_causes {
    const struct clave_mem *mem; /* borrowed */
    struct list pending;         /* by due */
    struct list said;            /* causes, the oldest first */
    struct map by_token;         /* the same */
};

/* ENOMEM. */
clave_err clave__lock_end_causes_init(struct lock_end_causes *e, const struct clave_mem *mem,
                                      uint64_t seed);
void clave__lock_end_causes_fini(struct lock_end_causes *e);

/* The node with this token is gone or will be for this reason. The newest of the causes that are
 * not used are kept; without memory it stays unknown. */
void clave__lock_end_causes_say(struct lock_end_causes *e, int64_t token, enum lock_cause cause);
/* The same of one who sees only how the node went: not where something is said already. */
void clave__lock_end_causes_suppose(struct lock_end_causes *e, int64_t token,
                                    enum lock_cause cause);

/* A place has ended. NULL: no memory, and its cause is not found out. */
struct lock_end *clave__lock_end_causes_add(struct lock_end_causes *e, int64_t now,
                                            const struct lock_node *p, const char *path);
/* The next whose cause is settled, for clave__lock_end_causes_free; NULL: none is due. */
struct lock_end *clave__lock_end_causes_take(struct lock_end_causes *e, int64_t now,
                                             const struct lock_model *m);
/* The slot is there. Its transaction has also ended a place that waited, which may have been seen
 * to go before: then that was no end. For clave__lock_end_causes_free; NULL: there is none. */
struct lock_end *clave__lock_end_causes_taken(struct lock_end_causes *e,
                                              const struct lock_node *slot, const char *path);
void clave__lock_end_causes_free(struct lock_end_causes *e, struct lock_end *end);
/* When the next one is due; CLAVE_NEVER. */
int64_t clave__lock_end_causes_deadline(const struct lock_end_causes *e);

/* ---- the history --------------------------------------------------------------------------- */

struct history_entry {
    struct ordered_node node; /* by number */
    uint64_t n;
    int64_t at;   /* wall clock */
    int64_t zxid; /* 0: not known */
    enum lock_change what;
    enum lock_queue_kind kind;
    enum lock_cause cause; /* of ENDED */
    size_t size;
    const char *place; /* JSON */
    char path[];
};

struct history {
    const struct clave_mem *mem; /* borrowed */
    struct ordered entries;
    uint64_t last; /* the number of the newest; 0: there was none */
    int64_t from;  /* nothing is missing since then; wall clock */
    size_t bytes;
};

void clave__history_init(struct history *h, const struct clave_mem *mem, uint64_t seed);
void clave__history_fini(struct history *h);

/* Before the first entry: numbers are larger than those of any earlier history, which began before
 * `at`, and leave room for entries in front of it. */
void clave__history_begin(struct history *h, int64_t at);
/* Returns the entry's number; 0: there was no memory for it. `zxid` 0: it is not known. `path` is
 * that of the lock. */
uint64_t clave__history_add(struct history *h, int64_t at, int64_t zxid, enum lock_change what,
                            const struct lock_node *p, const char *path);
/* Takes the entry back: it was nothing to tell after all. */
void clave__history_forget(struct history *h, uint64_t n);
/* Why a hold ended is known now. The entry may be gone. */
void clave__history_set_cause(struct history *h, uint64_t n, enum lock_cause cause);

/* Takes the newest entries of another history, which is older than all of this one, as far as there
 * is room for them. The memory of both is one. */
void clave__history_take_before(struct history *h, struct history *from);

/* The first after number n; NULL. */
const struct history_entry *clave__history_after(const struct history *h, uint64_t n);
/* That of number n; NULL. */
const struct history_entry *clave__history_find(const struct history *h, uint64_t n);
void clave__history_json(struct json *j, const struct history_entry *e);

/* ---- counts and durations ------------------------------------------------------------------ */

/* Of what happens to locks, of all clients. What is so now (holders, waiters) is read from the
 * model when a page is made: web/observe/lock_metrics.h. */
struct lock_counters {
    struct histogram waited[LOCK_KINDS]; /* until they were granted */
    struct histogram left[LOCK_KINDS];   /* until they gave up, or their session ended */
    struct histogram held[LOCK_KINDS];
    uint64_t ends[LOCK_KINDS][LOCK_CAUSES];
};

void clave__lock_counters_init(struct lock_counters *m);

/* Each change of a place once, at that time by the wall clock. */
void clave__lock_counters_note(struct lock_counters *m, enum lock_change what,
                               const struct lock_node *p, int64_t at);
/* A slot was granted to one who was seen to go from the queue before. */
void clave__lock_counters_note_taken(struct lock_counters *m, const struct lock_end *waited);
/* Why a hold has ended is known. */
void clave__lock_counters_note_cause(struct lock_counters *m, const struct lock_end *end);

#endif
