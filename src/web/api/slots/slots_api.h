/* slots_api.h - the endpoints of slots, which belong to an owner (an id) and no session. The
 * folder:
 *
 *   slots_api.c      /v1/slots/{path}: who owns, who waits, the limit, breaking; and what all have
 * in common: a request that uses slots slot_claims.c    claims of kind "slot" (Clave-Owner): their
 * ids, takes that wait, the endpoints fleetlock_api.c  FleetLock, by which machines of a fleet
 * reboot in turns: POST /v1/pre-reboot takes a slot, POST /v1/steady-state gives it back. Each
 * group has its slots below the path of --fleetlock, which switches these endpoints on; a group
 *                    without a limit has one of 1
 *
 * Invariants: each answer tells what the servers answered to this request, or to the take that it
 * polls; and what a request has asked of the servers goes no further than its answer. */
#ifndef CLAVE_WEB_API_SLOTS_SLOTS_API_H
#define CLAVE_WEB_API_SLOTS_SLOTS_API_H

#include "base/json_writer.h"
#include "clave/async/slots.h"
#include "web/http/exchange.h"

web_handler clave__web_get_slots;
web_handler clave__web_put_slots_limit;
web_handler clave__web_break_slot;

/* The request is about a claim of kind "slot": it has the header Clave-Owner, or the id of one in
 * its path. */
bool clave__web_is_slot_claim(const struct web_exchange *x);
web_handler clave__web_post_slot_claim;
web_handler clave__web_get_slot_claim;
web_handler clave__web_patch_slot_claim;
web_handler clave__web_delete_slot_claim;
/* Roles have changed: what nobody polls now is left, since nobody has shown that it may go on. */
void clave__slot_places_judge(struct web *w);

web_handler clave__web_fleetlock_take;
web_handler clave__web_fleetlock_give;

/* ---- between the files ----------------------------------------------------------------------- */

/* What is asked for; `limit` is that of clave_slots_options. */
struct slot_order {
    const char *path;
    clave_slot as;
    uint32_t limit;
};

/* What was known of the room when a take was told to wait, or refused. */
struct slot_room {
    bool known, has_strange;
    size_t ahead, owned;
    int64_t limit;
    char strange[256];   /* cut off if it is longer */
    char left_over[256]; /* of the same; "": none, see clave_mutex_event */
};
void clave__slot_room_note(struct slot_room *r, const clave_slots_event *ev);
/* "3 of 5 slots of /s are owned, and 2 wait before it: ..." */
const char *clave__slot_room_text(struct web_exchange *x, const char *path,
                                  const struct slot_room *r);

/* A request that makes one call of slots, on the engine's client. They are freed with its answer,
 * and when nobody waits for that any more: then the call ends, too. */
struct slot_request {
    struct web_exchange *x;
    clave_async_slots *slots;
    struct slot_order order;
    const char *what; /* "take a slot of" */
    struct slot_room room;
};
/* _open, then a call with the exchange as its argument, then _sent with what that returned; in the
 * callback _over first. After _open has failed there is no call, but _sent. */
clave_err clave__slot_request_open(struct slot_request *r, const char *what);
/* false: it could not be made, and `x` is unanswered. */
bool clave__slot_request_sent(struct slot_request *r, clave_err err);
/* false: nobody waits for the answer any more, and the exchange may be gone. */
bool clave__slot_request_over(struct slot_request *r);

/* The members token, since, host, by, reason and node of an open object. */
void clave__slot_put(struct json *j, const clave_slot *slot);
/* "since": a moment in ms since 1970. */
void clave__slot_put_time(struct json *j, const char *key, int64_t ms);

#endif
