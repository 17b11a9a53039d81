/* queue.h - who stands where: the children of a lock's path, ordered as Curator orders
 * them. Knows names only: no client, no state. */
#ifndef CLAVE_RECIPE_QUEUE_H
#define CLAVE_RECIPE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"
#include "clave/err.h"

/* Which part of a name decides. Curator's rule: what stands behind the last occurrence
 * of the base name, the whole name where there is none, compared as strings; equal keys
 * keep the server's order. Every child counts, foreign ones included. */
struct queue_rule {
    const char *base; /* "lock-" */
    /* Another client's base name whose 10 digits (at the end of the name) count as ours
     * do, since that client orders by them; may be NULL. Kazoo: "__lock__". */
    const char *kin;
    /* The other kind of node in the same queue, ordered with ours; may be NULL. */
    const struct queue_rule *other;
    /* Only nodes of the other kind stand in our way, and none with our own number: readers
     * share. */
    bool shares;
    /* The other kind may still come to stand before us, with a number of before: a downgrade
     * does. So the end of those we knew of does not make it our turn without a listing. */
    bool overtaken;
    /* Names without Curator's protection, as programs written by hand make them. */
    bool bare;
    /* Not a queue: one node, the base name itself, of whoever creates it first. */
    bool race;
};

/* The rules of mutex.h and rwlock.h. */
extern const struct queue_rule clave__queue_mutex, clave__queue_read, clave__queue_write;
/* That of semaphore.h, for its leases; who acquires queues as for a mutex. */
extern const struct queue_rule clave__queue_lease;
/* That of latch.h. */
extern const struct queue_rule clave__queue_latch;

/* Of nodes <prefix><10 digits>, bare. EINVAL: none, a slash in it, or like a number. */
clave_err clave__queue_bare(struct queue_rule *out, const char *prefix);

struct queue_key {
    const char *text; /* points into the name */
    bool plain;       /* exactly 10 digits behind a known base name: a sequential node */
    bool exhausted;   /* a counter that ran over, or is within 1000 of it */
};
struct queue_key clave__queue_key(const struct queue_rule *rule, const char *name);
/* Is it a node of this kind? */
bool clave__queue_is_kind(const struct queue_rule *rule, const char *name);

/* Where `own` stands among the names, found in one pass and without memory. */
struct queue_place {
    bool found;
    bool plain;           /* every name that can stand in our way is */
    bool exhausted;       /* ours is, or another's counter has run over already */
    size_t ahead;         /* how many stand in our way: 0 owns */
    const char *last;     /* of those the one just before us; NULL when none */
    const char *last_but; /* the one just before that; NULL when none */
};
struct queue_place clave__queue_locate(const struct queue_rule *rule, const char *const *names,
                                       size_t n, const char *own);

/* Fills order[0..n) with the indices of the names, first in the queue first. ENOMEM. */
clave_err clave__queue_order(const struct queue_rule *rule, const struct clave_mem *mem,
                             const char *const *names, size_t n, size_t *order);

#endif
