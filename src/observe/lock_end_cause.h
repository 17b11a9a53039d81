/* lock_end_cause.h - why a hold ended. The tree shows only that a node is gone. Whoever knows more
 * says so before, or at once after (a claim of this gate that is released, a lock that an operator
 * has broken). Otherwise it was released if its session has other nodes in queues SETTLE_MS later:
 * a session that ends takes all of them. A slot that is gone was released, unless
 * P/broken says otherwise. Otherwise nobody knows. */
#ifndef CLAVE_OBSERVE_LOCK_END_CAUSE_H
#define CLAVE_OBSERVE_LOCK_END_CAUSE_H

#include "base/list.h"
#include "observe/lock_model.h"

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

#endif
