/* queue_kind.h - what a node's name says it is, of clave, Curator and kazoo alike, and whom a node
 * of each kind waits for. queue_order.h has the same from the side of one recipe; here are all of
 * them, for those who look at queues that they are not in. */
#ifndef CLAVE_RECIPE_QUEUE_QUEUE_KIND_H
#define CLAVE_RECIPE_QUEUE_QUEUE_KIND_H

#include "recipe/queue/queue_order.h"

enum queue_kind {
    QUEUE_OTHER,      /* no contender */
    QUEUE_LOCK,       /* of a mutex: "lock-" */
    QUEUE_READ,       /* of a read-write lock */
    QUEUE_WRITE,      /* the same */
    QUEUE_KAZOO_LOCK, /* kazoo's default name, "__lock__": of a mutex, a write lock or an election
                       */
    QUEUE_KAZOO_READ, /* kazoo's "__rlock__" */
    QUEUE_LATCH,      /* a candidate */
    QUEUE_LEASE,      /* of a semaphore */
    QUEUE_KINDS
};

enum queue_kind clave__queue_kind_of(const char *name);

/* The rule of a queue by which its kinds are (a set of bits, 1 << kind): of read-write locks when
 * there is a read or write node; otherwise that of latches, leases or mutexes. NULL: there is no
 * contender. Kazoo's writers alone look like a mutex, which does no harm. */
const struct queue_order_rule *clave__queue_kind_rule(unsigned kinds);

/* The kinds that a node of this kind waits for, when they are before it; as a set. */
unsigned clave__queue_kind_waits_for(enum queue_kind kind);

/* A stock kazoo lock sees nodes of its own kinds only: when it has its default name, and there is
 * a node of these kinds before it, its place does not tell whether it holds. */
unsigned clave__queue_kind_unseen(enum queue_kind kind, const char *name);

#endif
