/* slots_internal.h - slots: places that belong to an id. The folder:
 *
 *   slots.c                  their life, the calls
 *   slots_limit.c            sets their limit
 *   slots_prepare.c          makes the nodes that are missing
 *   slot_take.c              one take: states, end, times
 *   slot_take_steps.c        what it does in them
 *   slot_give.c              a give, and what a break does
 *   slot_break.c             the call that breaks one
 *   slot_list.c              the list of the owners
 *   slot_owners_and_limit.c  how many are owned, and the limit
 *   slot_name.c              the names of their nodes
 *   slot_data.c              what these say */
#ifndef CLAVE_RECIPE_SLOTS_SLOTS_INTERNAL_H
#define CLAVE_RECIPE_SLOTS_SLOTS_INTERNAL_H

#include "base/list.h"
#include "clave/async/slots.h"
#include "recipe/contender/contender_config.h"

enum { SLOTS_LIMIT_MAX = INT32_MAX };

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
    struct list takes;
    unsigned refs; /* the user, takes, and calls under way */
};

/* EPATH: `path` is not valid. ENOMEM. _fini is harmless after an error. */
clave_err clave__slots_paths_init(struct slots_paths *p, clave_async_client *c, const char *path);
void clave__slots_paths_fini(struct slots_paths *p, const struct clave_mem *mem);

void clave__slots_hold(clave_async_slots *s);
void clave__slots_drop(clave_async_slots *s);

/* ---- slots_prepare.c ------------------------------------------------------------------------ */

/* Makes <path>/owners and, unless `limit` is negative, <path>/limit, where they are missing. */
struct slots_prepare {
    clave_async_slots *slots;
    int64_t limit;
    void (*done)(struct slots_prepare *p, clave_err err); /* CLAVE_OK: they are there */
    bool limit_made;                                      /* by this call */
};
/* Errors as of clave_async_create, at once and in `done`. */
clave_err clave__slots_prepare(struct slots_prepare *p);

/* ---- slot_take.c, for slots.c ---------------------------------------------------------------- */

struct slot_take;
clave_err clave__slot_take_new(struct slot_take **out, clave_async_slots *s, uint64_t request,
                               const clave_slot *as);
void clave__slot_take_start(struct slot_take *t, int64_t deadline, clave_async_slots_take_cb *cb,
                            void *arg);
/* NULL: no take of this number is pending. */
struct slot_take *clave__slot_take_find(const clave_async_slots *s, uint64_t request);
struct slot_take *clave__slot_take_first(const clave_async_slots *s); /* NULL: none is pending */
/* Ends it with ECANCELED, now or, unless `at_once`, when it is known how its transaction ended. */
void clave__slot_take_cancel(struct slot_take *t, bool at_once);

#endif
