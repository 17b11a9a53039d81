/* slot_owners_and_limit.h - how many slots are owned, what the limit is, and whether an id owns
 * one: one reading of <path>/owners and <path>/limit at a time. The watches, if there are any, tell
 * that either has changed since. */
#ifndef CLAVE_RECIPE_SLOTS_SLOT_OWNERS_AND_LIMIT_H
#define CLAVE_RECIPE_SLOTS_SLOT_OWNERS_AND_LIMIT_H

#include "client/client_for_recipes.h"
#include "recipe/slots/slots_internal.h"

struct slot_count {
    clave_async_slots *slots;
    const char *id; /* borrowed */
    void (*done)(struct slot_count *c);
    void (*changed)(struct slot_count *c); /* after the call in which the event came */
    clave_async_watch *owners_watch;       /* NULL: nothing is watched */
    clave_async_watch *limit_watch;
    struct client_task news;
    unsigned pending; /* answers of the reading under way */

    clave_err err;       /* of the newest reading; a missing node is none */
    bool limit_missing;  /* no limit is set */
    bool owners_missing; /* nobody has ever owned a slot */
    uint32_t limit;
    int32_t limit_version;
    int32_t owners_version; /* each take raises it */
    size_t owned;
    char *own; /* the path of the id's node; NULL: it owns none */
};

/* `changed` NULL: without watches. ENOMEM: _fini is harmless. */
clave_err clave__slot_count_init(struct slot_count *c, clave_async_slots *s, const char *id,
                                 void (*done)(struct slot_count *c),
                                 void (*changed)(struct slot_count *c));
/* None may be under way. */
void clave__slot_count_fini(struct slot_count *c);

/* Reads, `synced`: what the leader had when this began. None may be under way. `done` runs once,
 * later; when the first request cannot be made, the error is returned, and it does not run. */
clave_err clave__slot_count_read(struct slot_count *c, bool synced, bool watched);
/* No `changed` any more until the next watched reading. */
void clave__slot_count_unwatch(struct slot_count *c);
/* There is room for one more. */
bool clave__slot_count_has_room(const struct slot_count *c);

#endif
