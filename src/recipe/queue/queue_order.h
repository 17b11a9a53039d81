/* queue_order.h - the order of a queue: the children of a lock's path, ordered as Curator orders
 * them. It works on names alone, without a client or any state.
 *
 * Map of src/recipe/queue, which is about the nodes of a queue and what they say. Contenders queue
 * with it; the deadlock folder and src/observe look at queues with it:
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

/* Who queues, and in which order. A place is named after its kind: anything, then the base name,
 * then the number that the server appends, which is exactly 10 digits or, for a counter that
 * wrapped, a sign and 9 or 10 digits. Numbers are compared as strings, as Curator does; equal ones
 * keep the server's order.
 *
 * Other children of a queue do not count, so a client that may write below the path can block the
 * queue only by queueing. Curator sorts every child, by its whole name if that lacks the base name:
 * a child "0abc" comes first there and blocks Curator's clients (CURATOR-43), but not ours. That is
 * safe, since whoever comes first among all children also comes first among the places. */
struct queue_order_rule {
    const char *base; /* "lock-" */
    /* Another client's base name whose 10 digits (at the end of the name) count like ours, since
     * that client orders by them; may be NULL. For kazoo: "__lock__". */
    const char *kazoo_base;
    /* The other kind of node in the same queue, ordered together with ours; may be NULL. */
    const struct queue_order_rule *other;
    /* A node of this kind waits only for nodes of the other kind, and not for one with its own
     * number: readers share the lock. */
    bool shares;
    /* A node of the other kind can still appear before us with an earlier number, from a downgrade.
     * So when all nodes that we knew before us are gone, only a listing shows whether it is our
     * turn. */
    bool overtaken;
    /* Not a queue but a count: every child takes room, as with Curator. The leases of kazoo's
     * semaphore are bare UUIDs. */
    bool any_child;
    /* Names without Curator's protection, as programs written by hand make them. */
    bool unprotected;
    /* Not a queue: a single node, named by the base name alone, owned by whoever creates it first.
     */
    bool race;
};

/* The rules of mutex.h and rwlock.h. */
extern const struct queue_order_rule clave__queue_order_mutex, clave__queue_order_read,
    clave__queue_order_write;
/* The rule of a semaphore's leases; acquires queue as for a mutex. */
extern const struct queue_order_rule clave__queue_order_lease;
/* The rule of latch_internal.h. */
extern const struct queue_order_rule clave__queue_order_latch;

/* Makes the rule for nodes <prefix><10 digits>. EINVAL: the prefix is missing, contains a slash, or
 * looks like a number. */
clave_err clave__queue_order_unprotected(struct queue_order_rule *out, const char *prefix);

struct queue_order_key {
    const char *text; /* the number, within the name; for other children the whole name */
    bool numbered;    /* it is named like a place of either kind */
    bool contender;   /* numbered, or any child counts */
    bool plain;       /* its number has 10 digits */
    bool exhausted;   /* its number has wrapped, or is within 1000 of that */
};
struct queue_order_key clave__queue_order_key(const struct queue_order_rule *rule,
                                              const char *name);
/* True if this is a node of this kind. */
bool clave__queue_order_is_kind(const struct queue_order_rule *rule, const char *name);

/* The position of `own` among the names, found in one pass without allocating. */
struct queue_order_place {
    bool found;
    bool plain;        /* the names of all nodes that we may have to wait for are plain */
    bool exhausted;    /* our number is exhausted, or our name is not that of a place */
    size_t contenders; /* how many contenders there are, ours included */
    size_t unnumbered; /* how many of them have no number; their order is unknown */
    size_t ahead;      /* how many we wait for; 0: it is our turn */
    size_t owners;     /* of the nodes before ours, whether or not we wait for them: how many hold
                          together, */
    size_t before;     /* and how many others there are */
    const char *predecessor;        /* the nearest one before us; NULL: none */
    const char *before_predecessor; /* the nearest one before that; NULL: none */
};
struct queue_order_place clave__queue_order_locate(const struct queue_order_rule *rule,
                                                   const char *const *names, size_t n,
                                                   const char *own);

/* The same for a node that would be created now, behind all others; without its predecessors. */
struct queue_order_place clave__queue_order_at_end(const struct queue_order_rule *rule,
                                                   const char *const *names, size_t n);

/* Fills order[0..n) with the indices of the names: those with a number first, in queue order, then
 * the other children. ENOMEM. */
clave_err clave__queue_order_sort(const struct queue_order_rule *rule, const struct clave_mem *mem,
                                  const char *const *names, size_t n, size_t *order);

#endif
