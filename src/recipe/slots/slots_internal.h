/* slots_internal.h - slots: places in a semaphore that belong to an id, and outlive processes.
 * Their queue is a mutex's (recipe/contender), their limit a node as a semaphore's; what is added
 * here is a place that stays. The folder:
 *
 *   slots.c      their life, their nodes, the limit, the list
 *   slot_take.c  a take: its place in the queue, is there room, the transaction
 *   slot_give.c  a give; a break is a give that leaves a record
 *   slot_node.c  the names of their nodes, and what these say
 *
 *     P/limit                     how many there may be
 *     P/owners                    its version counts the takes, its children take room
 *     P/owners/slot-ID            of one owner: who, why; its czxid is the token
 *     P/owners/slot-ID/take-UUID  of that take alone
 *     P/queue                     those who wait
 *     P/broken                    what was broken last
 *
 * The name of a slot follows from its id: so an id owns one at most, and whoever waits with an id
 * watches one node to learn that another process has taken for it. A name of before does not come
 * back, though, in the node below it: what is sent to end a slot deletes that node as well, and so
 * it cannot end a later one, however late it arrives.
 *
 * Three rules hold for takes and gives alike, since callers give up, and repeat elsewhere:
 *
 *   - Nothing is sent after the callback has been told. What was sent before may still be done.
 *   - A give ends the takes of its id that wait, at every server and gate: it deletes their places,
 *     and a take without its place fails, though its transaction be on its way.
 *   - An id that owns a slot already, and takes, writes that slot again: what was sent before, to
 *     end it, fails. */
#ifndef CLAVE_RECIPE_SLOTS_SLOTS_INTERNAL_H
#define CLAVE_RECIPE_SLOTS_SLOTS_INTERNAL_H

#include "base/list.h"
#include "clave/async/slots.h"
#include "recipe/contender/contender_config.h"

enum { SLOTS_LIMIT_MAX = INT32_MAX, SLOTS_PAUSE_MS = 250 };

/* The nodes of the slots at a path. */
struct slots_paths {
    char *limit;
    char *owners;
    char *broken;
    char *queue;
};

struct clave_async_slots {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct slots_paths paths;
    struct contender_config queue; /* its ACLs are those of all nodes */
    uint32_t seed;                 /* what a missing limit is made with; 0: it is not */
    clave_slots_event_cb *event_cb;
    void *event_arg;
    struct list takes, gives; /* that are not answered */
    unsigned refs;            /* the user, and the calls under way */
};

/* ---- slots.c --------------------------------------------------------------------------------- */

void clave__slots_hold(clave_async_slots *s);
void clave__slots_drop(clave_async_slots *s);

/* What the node of a limit says: CLAVE_SLOTS_LIMIT_NONE for ENONODE, CLAVE_SLOTS_LIMIT_BAD. */
int64_t clave__slots_limit_of(const clave_result *res);

/* Makes <path>/owners and, unless `limit` is negative, <path>/limit, where they are missing. */
struct slots_prepare {
    clave_async_slots *slots;
    int64_t limit;
    void (*done)(struct slots_prepare *p, clave_err err); /* CLAVE_OK: they are there */
    bool limit_made;                                      /* by this call */
};
/* Errors as of clave_async_create, at once and in `done`. */
clave_err clave__slots_prepare(struct slots_prepare *p);

/* ---- slot_take.c, slot_give.c -----------------------------------------------------------------
 */

/* NULL: no take of this number is pending. */
struct slot_take *clave__slot_take_find(const clave_async_slots *s, uint64_t request);
/* Ends it with ECANCELED, now or, unless `at_once`, when it is known how its transaction ended. */
void clave__slot_take_cancel(struct slot_take *t, bool at_once);
/* At the end of the slots: all that is pending, at once. */
void clave__slots_cancel_takes(clave_async_slots *s);
void clave__slots_cancel_gives(clave_async_slots *s);

#endif
