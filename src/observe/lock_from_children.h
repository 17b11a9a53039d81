/* lock_from_children.h - one lock as of one listing of its nodes, for those who look once: `clave
 * locks`, a guard, a token. It holds whatever was told of the nodes in a lock_model, which decides
 * who holds.
 *
 * The names alone tell it of locks, read-write locks and elections. Of a semaphore it may need what
 * a lease says of the limit, and whose the first place is that waits for one; of a lock with a mark
 * of a lock delay, what the first place says. The order of the readings counts: the leases are
 * listed before those that wait for one, the mark is read after the names. Then what holds by the
 * listing held at some time before, and holds as long as its node is there. */
#ifndef CLAVE_OBSERVE_LOCK_FROM_CHILDREN_H
#define CLAVE_OBSERVE_LOCK_FROM_CHILDREN_H

#include "observe/lock_model.h"
#include "observe/lock_path.h"

struct lock_listing {
    struct lock_model model;
    const char *path; /* borrowed */
    char *locks;      /* where those wait who acquire a lease */
    /* The path is a lock's for certain: when its children are of no known kind, they are those of a
     * program written by hand (simple_prefix, clave/async/mutex.h), the lowest number first. */
    bool certain;
};

/* ENOMEM: _fini is harmless. */
clave_err clave__lock_listing_init(struct lock_listing *l, const struct clave_mem *mem,
                                   uint64_t seed, const char *path);
void clave__lock_listing_fini(struct lock_listing *l);

/* The children of a side, as of one listing. ENOMEM. */
clave_err clave__lock_listing_names(struct lock_listing *l, enum lock_side side,
                                    const char *const *names, size_t n);
/* What the node at this path says, a place or the mark. Without data when that may not be read.
 * ENOMEM. */
clave_err clave__lock_listing_node(struct lock_listing *l, const char *path, const clave_stat *stat,
                                   const void *data, size_t len);
void clave__lock_listing_gone(struct lock_listing *l, const char *path);

/* The places, holders first, then the others in the order of the queue, left over or not: the one
 * after `p`; NULL: the first. Of a semaphore, left-over leases come before those who acquire one.
 */
const struct lock_node *clave__lock_listing_after(const struct lock_listing *l,
                                                  const struct lock_node *p);
bool clave__lock_listing_holds(const struct lock_listing *l, const struct lock_node *p);
/* In the words of clave__lock_role_of_side. */
const char *clave__lock_listing_role(const struct lock_listing *l, const struct lock_node *p);

#endif
