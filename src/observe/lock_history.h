/* lock_history.h - who queued for, held and lost what, and when: the newest MOST_ENTRIES entries of
 * at most KEPT_MS and KEPT_BYTES, whichever is least. It ends with the gate; what was before the
 * gate may be put in front of it. */
#ifndef CLAVE_OBSERVE_LOCK_HISTORY_H
#define CLAVE_OBSERVE_LOCK_HISTORY_H

#include "base/json_writer.h"
#include "observe/lock_end_cause.h"

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
/* The cause of an end is known now. The entry may be gone. */
/* That number was nothing to tell after all: there is none of it any more. */
void clave__history_forget(struct history *h, uint64_t n);
void clave__history_set_cause(struct history *h, uint64_t n, enum lock_cause cause);

/* Takes the newest entries of another history, which is older than all of this one, as far as there
 * is room for them. The memory of both is one. */
void clave__history_take_before(struct history *h, struct history *from);

/* The first after number n; NULL. */
const struct history_entry *clave__history_after(const struct history *h, uint64_t n);
/* That of number n; NULL. */
const struct history_entry *clave__history_find(const struct history *h, uint64_t n);
void clave__history_json(struct json *j, const struct history_entry *e);

#endif
