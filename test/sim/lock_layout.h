/* lock_layout.h - a lock as nodes at the server: of what kind it is, where its nodes stand, and,
 * by what stands there, whose turn it is. Knows the layouts of docs/evidence/queues.md, and none
 * of the code under test. */
#ifndef CLAVE_SIM_LOCK_LAYOUT_H
#define CLAVE_SIM_LOCK_LAYOUT_H

#include "inspector.h"

enum { LOCKS = 2, PATH_SIZE = 112 };

enum lock_kind { LOCK_MUTEX, LOCK_RWLOCK, LOCK_SEMAPHORE, LOCK_LATCH, LOCK_KINDS };

struct lock_layout {
    enum lock_kind kind;
    const char *path;       /* what the recipes are given */
    const char *queue;      /* where a holder has its node */
    const char *gate;       /* of a semaphore: where an acquire queues; else NULL */
    const char *counter;    /* what the lock protects */
    const char *unguarded;  /* the same, of actors that write without the guard */
    const char *limit_path; /* of a semaphore whose limit is shared; else NULL */
    unsigned limit;         /* how many may hold at once; shared: never more than so many */
};

const char *lock_kind_name(enum lock_kind kind);
/* The paths of the nth lock, of this kind. */
struct lock_layout layout_make(unsigned nth, enum lock_kind kind);
/* At most one holds it at a time: the counter then counts writes and nothing else. */
bool layout_is_exclusive(const struct lock_layout *s);

/* What somebody else would call a node there, in front of the number; a few ways. Half of them are
 * those of clients of another kind; the others look like such a node, or sort before all of them,
 * and do not queue. */
enum { FOREIGN_NAMES = 6 };
const char *layout_foreign_name(const struct lock_layout *s, const char *directory, unsigned way);

/* Is it the turn of the node of this name, by what stands beside it? false: it is not there. */
bool layout_has_turn(const struct server_host *h, const struct lock_layout *s, const char *node);
/* The same of a lease, by what a shared limit says now. */
bool layout_fits_limit(const struct server_host *h, const struct lock_layout *s, const char *lease);
/* The session of the nth child of a directory, and its path into out; -1: there are fewer. */
int64_t layout_child(const struct server_host *h, const char *directory, size_t nth, char *out,
                     size_t cap);

#endif
