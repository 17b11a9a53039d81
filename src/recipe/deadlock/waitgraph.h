/* waitgraph.h - finds out who waits for whom, from lock queues as they stood at one moment, and who
 * can therefore never proceed. It does not know nodes or servers.
 *
 * An owner that waits for nothing proceeds, and in the end releases all that it has: it is taken
 * out of the graph, and so on (reduction). The owners that remain are deadlocked. A claim of a
 * mutex waits until all claims before it are gone; a lease waits until enough others are gone,
 * whichever they are, so there a cycle alone proves nothing.
 *
 * An owner that names itself is a single thread of control: it is stuck if anything that it waits
 * for is, its own locks included. A session that does not name its owners may have any number of
 * them: it is stuck only if everything that it waits for is, and it never waits for itself. Even
 * then, one of its owners may hold something without waiting, and proceed. So a cycle is certain
 * only if it remains when all such sessions are assumed to proceed. */
#ifndef CLAVE_RECIPE_DEADLOCK_WAITGRAPH_H
#define CLAVE_RECIPE_DEADLOCK_WAITGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "clave/err.h"

enum wait_kind { WAIT_ALONE, WAIT_SHARED, WAIT_LEASE };

#define WAIT_NONE SIZE_MAX

/* A node of a queue. */
struct wait_claim {
    const char
        *owner;  /* equal texts mean the same owner; "a/b" is a part of "a" if both are known */
    bool known;  /* the owner has named itself */
    bool moving; /* the owner was seen to proceed */
    bool yields; /* the owner would give up to end a deadlock */
    enum wait_kind kind;
    size_t rank; /* position in the queue; a read with the number of its write has the same rank */
    int64_t token; /* the czxid of the node, which tells its age */
};

struct wait_queue {
    const struct wait_claim *claims; /* in queue order */
    size_t n;
    /* For leases: their limit; 0: unknown, so no lease counts as waiting. The owner that is first
     * in the queue of acquires waits for room with its newest lease. */
    size_t limit;
    size_t mutex_queue; /* index of that queue of acquires; WAIT_NONE: there is none */
};

/* One step of a cycle: `claim` waits for `blocker` in the same queue, which belongs to the owner of
 * the next step. */
struct wait_step {
    size_t queue, claim;
    size_t blocker; /* WAIT_NONE: the owner, which holds `claim`, waits for its part to end, which
                       is the owner of the next step */
};

struct wait_cycle {
    const struct wait_step *steps; /* the last one waits for the first */
    size_t n;
    size_t victim; /* the member that gives up, which is the youngest that waits and yields;
                      WAIT_NONE: none does */
    bool certain;  /* no member can proceed, whatever sessions without named owners do */
};

struct wait_verdict {
    struct wait_cycle *cycles; /* no owner is in two cycles: of cycles that share an owner, one is
                                  found after the other */
    size_t n;
    struct wait_step *steps; /* those of all cycles */
    size_t stuck; /* how many owners cannot proceed, as far as is known, because they are in a cycle
                     or wait for one */
    size_t looked; /* how many claims were examined; proportional to their number */
};

/* Finds the cycles. `seed` keys the hash of the owners' texts, which other clients choose; the
 * verdict depends neither on it nor on the order of the queues. ENOMEM. */
clave_err clave__waitgraph_solve(const struct clave_mem *mem, uint64_t seed,
                                 const struct wait_queue *queues, size_t n,
                                 struct wait_verdict *out);
void clave__waitgraph_fini(const struct clave_mem *mem, struct wait_verdict *v);

#endif
