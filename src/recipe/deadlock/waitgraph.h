/* waitgraph.h - who waits for whom, from lock queues as they stood at one moment, and who can
 * therefore never proceed. Knows neither nodes nor servers.
 *
 * An owner that waits for nothing proceeds, and in the end releases all it has: it is taken out of
 * the graph, and so on (reduction). Those that remain are deadlocked. A mutex is waited for until
 * all before it are gone; a lease until enough others are, whichever they are, so that a cycle
 * alone proves nothing there.
 *
 * An owner that names itself is one thread of control: it is stuck when anything it waits for
 * is, its own locks included. A session that does not may be any number of owners: it is stuck only
 * when everything it waits for is, and never waits for itself. Even then one of its owners may hold
 * without waiting, and go on: a cycle is certain only when it stays if all such sessions proceed.
 */
#ifndef CLAVE_RECIPE_DEADLOCK_WAITGRAPH_H
#define CLAVE_RECIPE_DEADLOCK_WAITGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "clave/err.h"

enum wait_kind { WAIT_ALONE, WAIT_SHARED, WAIT_LEASE };

#define WAIT_NONE SIZE_MAX

/* One node of a queue. */
struct wait_claim {
    const char *owner; /* equal texts, one owner; "a/b" is a part of "a" when both are known */
    bool known;        /* it has named itself */
    bool moving;       /* has been seen to proceed */
    bool yields;       /* would give up */
    enum wait_kind kind;
    size_t rank;   /* in the queue; a read that has its write's number has its rank */
    int64_t token; /* its age */
};

struct wait_queue {
    const struct wait_claim *claims; /* the first comes first */
    size_t n;
    /* Of leases. The owner that is first in the queue of acquires waits with its newest lease for
     * room; limit 0: unknown, so nobody counts as waiting. */
    size_t limit;
    size_t mutex_queue; /* index of that queue; WAIT_NONE */
};

/* `claim` waits for `blocker` of the same queue, which belongs to the next step's owner. */
struct wait_step {
    size_t queue, claim;
    size_t blocker; /* WAIT_NONE: the owner of `claim`, which it holds, waits for the end of its
                       part, the next step's owner */
};

struct wait_cycle {
    const struct wait_step *steps; /* the last waits for the first */
    size_t n;
    size_t victim; /* the member that gives up: the youngest that waits and yields; WAIT_NONE */
    bool certain;  /* no member can proceed, whatever sessions without named owners do */
};

struct wait_verdict {
    struct wait_cycle
        *cycles; /* no owner is in two: cycles that share one are found one after the other */
    size_t n;
    struct wait_step *steps; /* of all */
    size_t stuck;            /* owners that cannot proceed, in a cycle or waiting for one, as far as
                                is known */
    size_t looked;           /* at claims: in proportion to how many there are */
};

/* `seed` keys the hash of the owners' texts, which others choose. ENOMEM. The verdict depends
 * neither on it nor on the order of the queues. */
clave_err clave__waitgraph_solve(const struct clave_mem *mem, uint64_t seed,
                                 const struct wait_queue *queues, size_t n,
                                 struct wait_verdict *out);
void clave__waitgraph_fini(const struct clave_mem *mem, struct wait_verdict *v);

#endif
