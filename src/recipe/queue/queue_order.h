/* queue_order.h - the queue: the children of a lock's path, ordered as Curator orders them. Knows
 * names only: no client, no state.
 *
 * Map of src/recipe/queue, what the nodes of a queue say; contenders stand in it, and the deadlock
 * folder and src/observe look at it:
 *   queue_order   who is before whom           queue_kind    what a name says a node is
 *   queue_nodes   the nodes of a queue, read   identity      what a node's data says
 *   participant_list  who is in a queue        priority_tag  priorities in names
 *   kazoo         kazoo's names */
#ifndef CLAVE_RECIPE_QUEUE_QUEUE_ORDER_H
#define CLAVE_RECIPE_QUEUE_QUEUE_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"
#include "clave/err.h"

/* Who queues, and in which order. A contender's node is named after its kind: anything, the base
 * name, and the number that the server appends: exactly 10 digits, or the sign and the 9 or 10
 * digits of a counter that ran over. The numbers are compared as strings, as Curator does it; equal
 * ones keep the server's order.
 *
 * No other child of a queue counts, so that who may write below the path can stop the queue only by
 * standing in it. Curator sorts every child, and by its whole name where it lacks the base name: a
 * child "0abc" comes first there and holds Curator's clients up (CURATOR-43), not ours. That is
 * safe: whoever comes first among all children comes first among the contenders, too. */
struct queue_order_rule {
    const char *base; /* "lock-" */
    /* Another client's base name whose 10 digits (at the end of the name) count as ours
     * do, since that client orders by them; may be NULL. Kazoo: "__lock__". */
    const char *kazoo_base;
    /* The other kind of node in the same queue, ordered with ours; may be NULL. */
    const struct queue_order_rule *other;
    /* It waits only for nodes of the other kind, and for none with its own number: readers share.
     */
    bool shares;
    /* A node of the other kind may still come before us, with an earlier number: a downgrade's. So
     * the end of the nodes that we knew does not make it our turn without a listing. */
    bool overtaken;
    /* Not a queue but a count: every child takes room, as with Curator. The leases of kazoo's
     * semaphore are bare UUIDs. */
    bool any_child;
    /* Names without Curator's protection, as programs written by hand make them. */
    bool unprotected;
    /* Not a queue: one node, the base name itself, of whoever creates it first. */
    bool race;
};

/* The rules of mutex.h and rwlock.h. */
extern const struct queue_order_rule clave__queue_order_mutex, clave__queue_order_read,
    clave__queue_order_write;
/* That of a semaphore's leases; its acquires queue as for a mutex. */
extern const struct queue_order_rule clave__queue_order_lease;
/* That of latch_internal.h. */
extern const struct queue_order_rule clave__queue_order_latch;

/* The rule of nodes <prefix><10 digits>. EINVAL: the prefix is missing, contains a slash, or looks
 * like a number. */
clave_err clave__queue_order_unprotected(struct queue_order_rule *out, const char *prefix);

struct queue_order_key {
    const char *text; /* points into the name: the number; for other children the whole name */
    bool numbered;    /* named as a contender of either kind */
    bool contender;   /* numbered; or any_child */
    bool plain;       /* its number is 10 digits */
    bool exhausted;   /* its number overflowed, or is within 1000 of that */
};
struct queue_order_key clave__queue_order_key(const struct queue_order_rule *rule,
                                              const char *name);
/* Is it a node of this kind? */
bool clave__queue_order_is_kind(const struct queue_order_rule *rule, const char *name);

/* The position of `own` among the names, found in one pass and without memory. */
struct queue_order_place {
    bool found;
    bool plain;                     /* the names of all that we may have to wait for are */
    bool exhausted;                 /* our number is, or our name is no contender's */
    size_t contenders;              /* ours among them */
    size_t unnumbered;              /* of them; their order is not known */
    size_t ahead;                   /* how many we wait for; 0: it is our turn */
    size_t owners;                  /* of those before ours, whether we wait for them or not: the */
    size_t before;                  /* ones that hold together, and the others */
    const char *predecessor;        /* the one of those just before us; NULL: none */
    const char *before_predecessor; /* the one just before that; NULL when none */
};
struct queue_order_place clave__queue_order_locate(const struct queue_order_rule *rule,
                                                   const char *const *names, size_t n,
                                                   const char *own);

/* Fills order[0..n) with the indices of the names: those with a number, first in the queue first,
 * then the other children. ENOMEM. */
clave_err clave__queue_order_sort(const struct queue_order_rule *rule, const struct clave_mem *mem,
                                  const char *const *names, size_t n, size_t *order);

#endif
