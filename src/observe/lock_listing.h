/* lock_listing.h - one lock, from one listing of its nodes: for those who look once, such as `clave
 * locks`, a guarded write or a question about a token. A lock_model of these nodes decides who
 * holds.
 *
 * Of locks, read-write locks and elections the names alone tell it. Of a semaphore it may also need
 * the limit that a lease says, and whose the first place is that waits for one; of a lock with the
 * mark of a lock delay, what the first place says. Whose a node is, and whether it is left over,
 * only its Stat tells.
 *
 * The order of the readings matters: the leases are listed before those who wait for one, and the
 * mark is read after the names. Then whoever holds by the listing did hold at some moment before
 * it, and still does as long as the node is there. */
#ifndef CLAVE_OBSERVE_LOCK_LISTING_H
#define CLAVE_OBSERVE_LOCK_LISTING_H

#include "observe/lock_model.h"

/* Where the nodes of one lock can be. */
enum lock_side {
    LOCK_SIDE_PATH,
    LOCK_SIDE_LEASES,
    LOCK_SIDE_LOCKS,
    LOCK_SIDE_KAZOO, /* its semaphores queue beside the path */
    LOCK_SIDES
};
/* The path whose children they are, to be freed. NULL: no memory. */
char *clave__lock_side_path(const struct clave_mem *mem, const char *path, enum lock_side side);
/* The path of the mark of a lock delay, likewise. */
char *clave__lock_mark_path(const struct clave_mem *mem, const char *path);

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
