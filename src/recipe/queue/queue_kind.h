/* queue_kind.h - what kind of place a node is, judged by its name, whether it is clave's, Curator's
 * or kazoo's; and which kinds each one waits for. queue_order.h has the same information from the
 * perspective of a single recipe. This file has all of it, for code that looks at queues it is not
 * in. */
#ifndef CLAVE_RECIPE_QUEUE_QUEUE_KIND_H
#define CLAVE_RECIPE_QUEUE_QUEUE_KIND_H

#include "base/log_line.h"
#include "recipe/queue/queue_order.h"

enum queue_kind {
    QUEUE_OTHER,      /* not a place in a queue */
    QUEUE_LOCK,       /* of a mutex: "lock-" */
    QUEUE_READ,       /* of a read-write lock */
    QUEUE_WRITE,      /* of a read-write lock */
    QUEUE_KAZOO_LOCK, /* kazoo's default name, "__lock__": of a mutex, a write lock or an election
                       */
    QUEUE_KAZOO_READ, /* kazoo's "__rlock__" */
    QUEUE_LATCH,      /* a candidate of an election */
    QUEUE_LEASE,      /* of a semaphore */
    QUEUE_KINDS
};

enum queue_kind clave__queue_kind_of(const char *name);

/* The rule of a queue that has nodes of these kinds (a set of bits, 1 << kind): that of read-write
 * locks if there is a read or a write node; otherwise that of latches, leases or mutexes. NULL:
 * there is no place in it. A queue with only kazoo's writers looks like a mutex, which does no
 * harm. */
const struct queue_order_rule *clave__queue_kind_rule(unsigned kinds);

/* The set of kinds that a node of this kind waits for if they are before it. */
unsigned clave__queue_kind_waits_for(enum queue_kind kind);

/* The set of kinds that a stock kazoo lock (one with the default name) does not see, because it
 * sees only its own. If there is a node of one of them before it, its place does not tell whether
 * it holds. */
unsigned clave__queue_kind_unseen(enum queue_kind kind, const char *name);

/* Nodes with the default name of kazoo's locks. Such a lock counts only its own kind, so it is
 * granted while another client in the queue holds, unless it was given the others' names
 * (extra_lock_patterns), which its own name does not show. */

/* True for "<32 hexadecimal digits>__lock__<number>", and the same with __rlock__. */
bool clave__kazoo_is_default(const char *name);
/* True if the name is kazoo's, whatever names it was given for its nodes; Curator's begin with
 * "_c_". */
bool clave__kazoo_is_name(const char *name);
/* Logs a warning if there is a kazoo lock's node with the default name among these children of
 * `path`. Returns true if it did. */
bool clave__kazoo_warn(const struct log *log, const char *path, const char *const *names, size_t n);

#endif
