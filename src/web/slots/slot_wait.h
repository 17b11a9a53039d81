/* slot_wait.h - takes of slots that wait. A take belongs to a path and an owner, not to the
 * request that began it: its place in the queue is kept over the requests that poll it, and given
 * up when nobody has polled for SLOT_KEEP_MS. It is a place of the engine's own session, so another
 * gate has another one; whichever comes first takes, and the other finds that the owner has it.
 * Invariant: for a path and an owner there is at most one that is not being left. */
#ifndef CLAVE_WEB_SLOTS_SLOT_WAIT_H
#define CLAVE_WEB_SLOTS_SLOT_WAIT_H

#include "clave/async/slots.h"
#include "web/web_internal.h"

struct sender;
struct slot_wait; /* opaque */

enum { SLOT_KEEP_MS = 30000 };

/* What a poll is told, valid during the call. */
struct slot_news {
    bool ended;             /* false: it waits */
    clave_err err;          /* how it ended, as of clave_async_slots_take_cb */
    const clave_slot *slot; /* that the owner has; NULL: none */
    bool taken;             /* by this take */
    size_t position;        /* from 1; 0: not known */
    const char *left_over;  /* as of clave_slots_event */
};

struct slot_poll {
    struct list link; /* of the place */
    struct slot_wait *place;
    struct timer until;
    bool wants_position;
    void (*done)(struct slot_poll *p, const struct slot_news *news); /* once */
};

/* What is asked for; `limit` is that of clave_slots_options. */
struct slot_order {
    const char *path;
    clave_slot as;
    uint32_t limit;
};

/* Makes the slots of the order's path on the engine's own client, to be freed. */
clave_err clave__slot_order_open(struct web *w, const struct slot_order *o,
                                 clave_async_slots **out);

/* NULL: none. */
struct slot_wait *clave__slot_wait_find(struct web *w, const char *path, const char *owner);
bool clave__slot_wait_is_left(const struct slot_wait *p);
/* Begins to take, for this sender, to whose SENDER_WAITS it counts. Errors as of
 * clave_async_slots_take; ENOMEM. */
clave_err clave__slot_wait_new(struct web *w, struct sender *s, const struct slot_order *o,
                               struct slot_wait **out);
/* Calls poll->done at the end of the take, at this time, or when the position is known, if that is
 * wanted; perhaps at once. `done` of the poll is set. */
void clave__slot_wait_await(struct slot_wait *p, struct slot_poll *poll, int64_t until);
/* It is told nothing any more. Harmless when it does not wait. */
void clave__slot_poll_cancel(struct slot_poll *poll);
/* Somebody has asked for it: it is kept from now on. */
void clave__slot_wait_touch(struct slot_wait *p);
/* Leaves the queue. What was sent already may still take; polls are told how it ended. */
void clave__slot_wait_leave(struct slot_wait *p);
/* Roles have changed: what nobody polls now is left, since nobody has shown that it may go on. */
void clave__slot_places_judge(struct web *w);

#endif
