/* lock_history.h - what happened to the locks of a tree: who queued for, held and lost what, and
 * when; why a hold ended; and counts and durations.
 *
 * The history keeps the newest entries: at most MOST_ENTRIES of them, no older than KEPT_MS, in at
 * most KEPT_BYTES. It ends with the gate; what happened before the gate started may be put in front
 * of it.
 *
 * The tree does not show why a hold ended: a node is gone, and that is all. A part of the program
 * that knows more says so beforehand or right afterwards (a claim of this gate is released, an
 * operator breaks a lock). If nobody does, the hold counts as released if its session still has
 * other nodes in queues SETTLE_MS later, since a session that ends takes all of its nodes with it.
 * A slot counts as given back unless P/broken says otherwise, and a node that no session owned was
 * deleted by somebody. In all other cases the cause is unknown. */
#ifndef CLAVE_OBSERVE_LOCK_HISTORY_H
#define CLAVE_OBSERVE_LOCK_HISTORY_H

#include "base/histogram.h"
#include "base/json_writer.h"
#include "base/list.h"
#include "observe/lock_model.h"

/* ---- why a hold ended ------------------------------------------------------------------------ */

enum lock_cause {
    LOCK_UNKNOWN,
    LOCK_RELEASED,
    LOCK_EXPIRED, /* its session expired */
    LOCK_CLOSED,  /* its client closed the session */
    LOCK_BROKEN,  /* an operator broke it */
    LOCK_CAUSES
};
/* "unknown", "released", ... */
const char *clave__lock_cause_name(enum lock_cause cause);

/* A place that is gone, as it was at the end. */
struct lock_end {
    struct list link;
    int64_t due; /* when its cause is settled, by the engine's clock */
    int64_t session, token;
    enum lock_cause cause;
    enum lock_queue_kind kind;
    bool held;
    bool kept; /* it was a slot, which counts as given back unless its end is reported as broken */
    bool left_over; /* no session owned it, so somebody else deleted it: it was broken */
    int64_t waited; /* if it did not hold: for how long it waited, in ms */
    uint32_t id;    /* if it waited for a slot: a hash of its id; 0: unknown */
    uint64_t entry; /* the number of its entry in the history; 0: none */
    char path[];    /* the path of the lock */
};

struct lock_end_causes {
    const struct clave_mem *mem; /* borrowed */
    struct list pending;         /* ordered by `due` */
    struct list said;            /* causes that were said, oldest first */
    struct map by_token;         /* the same, by token */
};

/* ENOMEM. */
clave_err clave__lock_end_causes_init(struct lock_end_causes *e, const struct clave_mem *mem,
                                      uint64_t seed);
void clave__lock_end_causes_fini(struct lock_end_causes *e);

/* Says why the node with this token is gone or is about to go. Causes that are not used are dropped
 * when newer ones need the room; if there is no memory, the cause stays unknown. */
void clave__lock_end_causes_say(struct lock_end_causes *e, int64_t token, enum lock_cause cause);
/* The same from code that only saw the node go; does not override what was said. */
void clave__lock_end_causes_suppose(struct lock_end_causes *e, int64_t token,
                                    enum lock_cause cause);

/* A place has ended. NULL: no memory, so its cause will not be found out. */
struct lock_end *clave__lock_end_causes_add(struct lock_end_causes *e, int64_t now,
                                            const struct lock_node *p, const char *path);
/* Returns an ended place whose cause is settled, to be freed with clave__lock_end_causes_free;
 * NULL: none is due. */
struct lock_end *clave__lock_end_causes_take(struct lock_end_causes *e, int64_t now,
                                             const struct lock_model *m);
/* A slot has appeared. Taking it also ended its owner's waiting place, whose end may have been seen
 * first; that was then not an end. Returns that place, to be freed with
 * clave__lock_end_causes_free; NULL: there is none. */
struct lock_end *clave__lock_end_causes_taken(struct lock_end_causes *e,
                                              const struct lock_node *slot, const char *path);
void clave__lock_end_causes_free(struct lock_end_causes *e, struct lock_end *end);
/* When the next ended place is due; CLAVE_NEVER: none is pending. */
int64_t clave__lock_end_causes_deadline(const struct lock_end_causes *e);

/* ---- the history ----------------------------------------------------------------------------- */

struct history_entry {
    struct ordered_node node; /* by number */
    uint64_t n;
    int64_t at;   /* wall clock */
    int64_t zxid; /* 0: unknown */
    enum lock_change what;
    enum lock_queue_kind kind;
    enum lock_cause cause; /* for LOCK_ENDED */
    int64_t token;         /* of the place */
    char *deed;            /* who did it and why, as JSON, owned; NULL: unknown */
    size_t size;           /* in bytes, including the deed */
    const char *place;     /* JSON */
    char path[];
};

struct history {
    const struct clave_mem *mem; /* borrowed */
    struct ordered entries;
    uint64_t last; /* the number of the newest entry; 0: there was none */
    int64_t from;  /* the history is complete since then; wall clock */
    size_t bytes;
    struct list deeds; /* reported before their entries came, the oldest first */
    size_t ndeeds;
};

/* Somebody asked the owner of this place to let go (LOCK_ASKED), or deleted its node (LOCK_ENDED).
 * The texts are borrowed; NULL or "": unknown. */
struct history_deed {
    int64_t token;
    enum lock_change what;
    const char *by, *reason;
};

void clave__history_init(struct history *h, const struct clave_mem *mem, uint64_t seed);
void clave__history_fini(struct history *h);

/* To be called before the first entry. Numbers are greater than those of any earlier history, which
 * began before `at`, and leave room for entries in front. */
void clave__history_begin(struct history *h, int64_t at);
/* Adds an entry and returns its number; 0: there was no memory. A `zxid` of 0 is unknown. `path` is
 * that of the lock. */
uint64_t clave__history_add(struct history *h, int64_t at, int64_t zxid, enum lock_change what,
                            const struct lock_node *p, const char *path);
/* Takes the entry back because it turned out that there was nothing to report. */
void clave__history_forget(struct history *h, uint64_t n);
/* Why a hold ended is now known. The entry may be gone already. */
void clave__history_set_cause(struct history *h, uint64_t n, enum lock_cause cause);
/* Attaches the deed to the newest entry of that place and kind, or to the next one if there is none
 * yet. It is dropped if there is no memory. */
void clave__history_say(struct history *h, const struct history_deed *deed);

/* Puts the newest entries of another history, all of which are older, in front of this one, as far
 * as there is room. Both must use the same memory hooks. */
void clave__history_take_before(struct history *h, struct history *from);

/* The first entry after number n; NULL: there is none. */
const struct history_entry *clave__history_after(const struct history *h, uint64_t n);
/* Entry number n; NULL: there is none. */
const struct history_entry *clave__history_find(const struct history *h, uint64_t n);
void clave__history_json(struct json *j, const struct history_entry *e);

/* ---- counts and durations -------------------------------------------------------------------- */

/* Counts of what happens to locks, over all clients. The present numbers of holders and waiters are
 * read from the model when a page is made: web/observe/lock_metrics.h. */
struct lock_counters {
    struct histogram waited[LOCK_KINDS]; /* until granted */
    struct histogram left[LOCK_KINDS];   /* until they gave up or their session ended */
    struct histogram held[LOCK_KINDS];
    uint64_t ends[LOCK_KINDS][LOCK_CAUSES];
};

void clave__lock_counters_init(struct lock_counters *m);

/* Notes a change of a place; call it once per change. `at` is wall clock. */
void clave__lock_counters_note(struct lock_counters *m, enum lock_change what,
                               const struct lock_node *p, int64_t at);
/* Notes that a slot was granted to an owner who was seen leaving the queue before. */
void clave__lock_counters_note_taken(struct lock_counters *m, const struct lock_end *waited);
/* Notes the cause of a hold's end, once it is known. */
void clave__lock_counters_note_cause(struct lock_counters *m, const struct lock_end *end);

#endif
