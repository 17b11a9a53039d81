/* waitgraph_internal.h - the graph while it is solved, as three files share it: waitgraph.c makes
 * it, wait_reduction.c takes out who proceeds, wait_cycle.c names the cycles among the others. */
#ifndef CLAVE_RECIPE_DEADLOCK_WAITGRAPH_INTERNAL_H
#define CLAVE_RECIPE_DEADLOCK_WAITGRAPH_INTERNAL_H

#include <assert.h>

#include "base/map.h"
#include "recipe/deadlock/waitgraph.h"

struct owner {
    struct map_node node;
    const char *text;
    size_t len;
    bool known;
    bool moving;
    bool stuck;         /* true until it is seen to proceed; in the end: it certainly does not */
    size_t claims;      /* its first link */
    size_t waits;       /* how many of them wait at all */
    size_t blocked;     /* and how many still do */
    size_t parent;      /* WAIT_NONE: of no owner */
    size_t stuck_parts; /* that are stuck */
    size_t part;        /* after the reduction: the least of them; WAIT_NONE */
    size_t next;        /* likewise: the owner that it waits for */
    size_t walk;        /* number of the walk that visited it, looking for cycles; 0: none */
    struct wait_step step;
};

/* A claim, and its queue. */
struct link {
    size_t queue, claim;
    size_t owner;
    size_t next; /* of the same owner */
    bool waits;
    bool blocked; /* it still waits */
};

/* What is in the way of the claims of a queue: the first that is stuck, and the first after it that
 * is stuck and of another owner, for those who do not wait for their own. */
struct front {
    size_t head, second;
};

/* Of those who wait for all before them; and of shared ones, which wait for those that are not. */
enum front_side { FRONT_ALL, FRONT_ALONE, FRONTS };

struct line {
    size_t first; /* link of its first claim */
    struct front fronts[FRONTS];
    size_t lease; /* the only one that waits for room; WAIT_NONE */
    size_t going; /* how many of the others are not in its way */
};

struct solver {
    const struct clave_mem *mem;
    const struct wait_queue *queues;
    size_t n;
    struct line *lines; /* of each queue */
    struct link *links;
    size_t nlinks;
    struct owner *owners;
    size_t nowners;
    size_t *free; /* owners that proceed; what waited for them is still to be looked at */
    size_t nfree;
    size_t looked; /* at so many claims */
    struct map by_text;
};

static inline size_t clave__wait_index_of(const struct solver *s, const struct owner *o)
{
    assert(o >= s->owners);
    return (size_t)(o - s->owners);
}

static inline size_t clave__wait_owner_at(const struct solver *s, size_t q, size_t i)
{
    return s->links[s->lines[q].first + i].owner;
}

/* wait_reduction.c: owners that can proceed are stuck no more. */
void clave__wait_reduce(struct solver *s);
/* Nor are sessions that do not name their owners: one of those may hold without waiting. */
void clave__wait_reduce_to_certain(struct solver *s);
/* The claim that this one waits for; WAIT_NONE. */
size_t clave__wait_blocker(const struct solver *s, const struct link *l);

/* wait_cycle.c: the cycles among those that are stuck, and the victim of each. ENOMEM. */
clave_err clave__wait_cycles_find(struct solver *s, struct wait_verdict *v);

#endif
