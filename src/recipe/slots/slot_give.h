/* slot_give.h - a give under way, or a break: a break is a give that leaves a record. */
#ifndef CLAVE_RECIPE_SLOTS_SLOT_GIVE_H
#define CLAVE_RECIPE_SLOTS_SLOT_GIVE_H

#include "recipe/slots/slot_owners_and_limit.h"

struct slot_give {
    clave_async_slots *slots;
    struct slot_count count;
    int64_t token; /* 0: any */
    char *record;  /* a break's, once the slot is known; NULL: this is a give */
    size_t nrecord;
    bool breaks;
    int tries;
    bool doubt;              /* a delete may have been done */
    struct slot_copy *found; /* NULL: not looked at yet */
    struct timer pause;
    struct listener listener; /* of the end of the client, while it pauses */
    clave_async_slots_give_cb *cb;
    void *arg;
    char id[CLAVE_SLOT_ID_MAX + 1];
    char *by, *reason; /* a break's */
};

/* `token` 0: any. EINVAL: the id or the token is none. ENOMEM. */
clave_err clave__slot_give_new(struct slot_give **out, clave_async_slots *s, const char *id,
                               int64_t token);
/* Frees it if it is an error, and does not call back. */
clave_err clave__slot_give_start(struct slot_give *g, clave_async_slots_give_cb *cb, void *arg);
/* Before the start. */
void clave__slot_give_free(struct slot_give *g);

#endif
