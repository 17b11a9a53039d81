/* slots_internal.h - slots: places in a semaphore that belong to an id and outlive processes. They
 * queue like a mutex (recipe/contender) and have a limit in a node like a semaphore; what is new
 * here is the place that stays. The folder:
 *
 *   slots.c      their life, their nodes, the limit, the list
 *   slot_take.c  a take: its place in the queue, is there room, the transaction
 *   slot_give.c  a give; a break is a give that leaves a record
 *   slot_node.c  the names of their nodes, and what these say
 *
 *     P/limit                     how many there may be
 *     P/owners                    its version counts the takes, each child takes up room
 *     P/owners/slot-ID            of one owner: who, why; its czxid is the token
 *     P/owners/slot-ID/take-UUID  of that take alone
 *     P/queue                     those who wait
 *     P/broken                    what was broken last
 *
 * The name of a slot is determined by its id. So an id owns at most one, and a process that waits
 * for an id needs to watch only one node to learn that another process has taken a slot for it. The
 * node below a slot, however, never has the same name twice. Whatever is sent to end a slot deletes
 * that node as well, so it cannot end a later slot, however late it arrives.
 *
 * Because callers give up and repeat elsewhere, three rules hold for takes and gives alike:
 *
 *   - Nothing is sent after the callback has been told. What was sent before may still be done.
 *   - A give ends the takes of its id that wait, at every server and gate: it deletes their places,
 *     and a take without its place fails, even if its transaction is already on its way.
 *   - If an id that already owns a slot takes again, it writes that slot again, so whatever was
 *     sent earlier to end it fails. */
#ifndef CLAVE_RECIPE_SLOTS_SLOTS_INTERNAL_H
#define CLAVE_RECIPE_SLOTS_SLOTS_INTERNAL_H

#include "base/list.h"
#include "clave/async/slots.h"
#include "recipe/contender/contender_config.h"

enum { SLOTS_PAUSE_MS = 250 };

/* The paths of the nodes of slots. */
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
    struct contender_config queue; /* its ACLs apply to all nodes */
    uint32_t seed; /* the limit with which a missing P/limit is created; 0: it is not created */
    clave_slots_event_cb *event_cb;
    void *event_arg;
    struct list takes, gives; /* those that are not answered yet */
    unsigned refs;            /* the user, and the calls under way */
};

/* ---- slots.c --------------------------------------------------------------------------------- */

void clave__slots_hold(clave_async_slots *s);
void clave__slots_drop(clave_async_slots *s);

/* The limit according to the answer to a getData of its node: CLAVE_SLOTS_LIMIT_NONE if the node
 * does not exist (ENONODE), CLAVE_SLOTS_LIMIT_BAD if it makes no sense. */
int64_t clave__slots_limit_of(const clave_result *res);

/* Creates <path>/owners and, unless `limit` is negative, <path>/limit, if they are missing. */
struct slots_prepare {
    clave_async_slots *slots;
    int64_t limit;
    void (*done)(struct slots_prepare *p, clave_err err); /* CLAVE_OK: both exist */
    bool limit_made;                                      /* the limit was created by this call */
};
/* Starts. Errors as clave_async_create, both at once and in `done`. */
clave_err clave__slots_prepare(struct slots_prepare *p);

/* ---- slot_take.c, slot_give.c -----------------------------------------------------------------
 */

/* NULL: no take with this number is pending. */
struct slot_take *clave__slot_take_find(const clave_async_slots *s, uint64_t request);
/* Ends the take with ECANCELED: now if `at_once`, otherwise once it is known how its transaction
 * ended. */
void clave__slot_take_cancel(struct slot_take *t, bool at_once);
/* When the slots are freed: ends everything that is pending, at once. */
void clave__slots_cancel_takes(clave_async_slots *s);
void clave__slots_cancel_gives(clave_async_slots *s);

#endif
