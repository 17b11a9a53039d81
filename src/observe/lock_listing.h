/* lock_listing.h - one lock, from a single listing of its nodes: for code that looks only once,
 * such as `clave locks`, a guarded write, or a question about a token. A lock_model of just these
 * nodes decides who holds.
 *
 * For locks, read-write locks and elections the names alone are enough. For a semaphore it may also
 * take the limit that a lease names, and the owner of the first place waiting for one; for a lock
 * with the mark of a lock delay, the content of the first place. Only a node's Stat shows whose the
 * node is, and whether it is left over.
 *
 * The order of the reads matters: list the leases before those waiting for one, and read the mark
 * after the names. Then whoever holds according to the listing did hold at some moment before it
 * was read, and still does for as long as the node exists. */
#ifndef CLAVE_OBSERVE_LOCK_LISTING_H
#define CLAVE_OBSERVE_LOCK_LISTING_H

#include "observe/lock_model.h"

/* Where nodes of one lock can be. */
enum lock_side {
    LOCK_SIDE_PATH,
    LOCK_SIDE_LEASES,
    LOCK_SIDE_LOCKS,
    LOCK_SIDE_KAZOO, /* beside the path, where clients queue for kazoo's semaphores */
    LOCK_SIDES
};
/* The path whose children these nodes are, to be freed by the caller. NULL: no memory. */
char *clave__lock_side_path(const struct clave_mem *mem, const char *path, enum lock_side side);
/* The path of the mark of a lock delay, to be freed by the caller. NULL: no memory. */
char *clave__lock_mark_path(const struct clave_mem *mem, const char *path);

struct lock_listing {
    struct lock_model model;
    const char *path; /* borrowed */
    char *locks;      /* where clients wait that are acquiring a lease */
    /* The path is certainly that of a lock. So if its children are of no known kind, they are those
     * of a program written by hand (simple_prefix, clave/async/mutex.h), the lowest number
     * first. */
    bool certain;
};

/* ENOMEM: calling _fini is harmless then. */
clave_err clave__lock_listing_init(struct lock_listing *l, const struct clave_mem *mem,
                                   uint64_t seed, const char *path);
void clave__lock_listing_fini(struct lock_listing *l);

/* Adds the children of a side, as listed. ENOMEM. */
clave_err clave__lock_listing_names(struct lock_listing *l, enum lock_side side,
                                    const char *const *names, size_t n);
/* Adds the content of the node at this path, a place or the mark; without data if it may not be
 * read. ENOMEM. */
clave_err clave__lock_listing_node(struct lock_listing *l, const char *path, const clave_stat *stat,
                                   const void *data, size_t len);
void clave__lock_listing_gone(struct lock_listing *l, const char *path);

/* Returns the place after `p`, or the first if p is NULL: holders first, then all others in queue
 * order, left over or not. In a semaphore, left-over leases come before those acquiring one. */
const struct lock_node *clave__lock_listing_after(const struct lock_listing *l,
                                                  const struct lock_node *p);
bool clave__lock_listing_holds(const struct lock_listing *l, const struct lock_node *p);
/* The role of a place, in the words of clave__lock_role_of_side. */
const char *clave__lock_listing_role(const struct lock_listing *l, const struct lock_node *p);

#endif
