/* async/slots.h - slots: places that belong to an id, not to a session. A slot is for what outlives
 * the process that took it: a machine that reboots, a deployment in several steps. At most as many
 * ids own a slot as the limit says:
 *
 *     <path>/limit                             the limit: four bytes, as Curator's SharedCount
 *     <path>/owners/slot-<id>                  one for each slot that is owned (persistent)
 *     <path>/owners/slot-<id>/take-<uuid>      the take that made it (persistent)
 *     <path>/queue/_c_<uuid>-lock-<10 digits>  those who wait (ephemeral, as a mutex)
 *     <path>/broken                            the slot that was broken last, and why
 *
 * Takers queue as for a mutex. A taker takes its slot when the owners and those before it are fewer
 * than the limit, in one transaction: the limit is as it was read, the slot is made, and the
 * taker's place in the queue goes. So a take that comes late does nothing once its session has
 * ended, or its place was deleted. A slot stays until it is given back or broken. No clock ends it:
 * an owner that is away cannot be stopped by one.
 *
 * The ids are the caller's: 1 to 128 bytes of UTF-8 without control characters. In the name of a
 * node, bytes other than letters, digits and "._~@:+-" are written as %XX. An id owns one slot at
 * most. The czxid of the slot's node is the fencing token; the name of the node below it is new
 * with each take.
 *
 * After a callback nothing more is sent for its call. A request that was sent before and whose
 * answer was lost may still be done, with two exceptions: a give or break that has succeeded ends
 * all takes of its id that were asked for before, and a take that has succeeded all gives and
 * breaks.
 *
 * Every child of <path>/owners takes room, whatever its name. One that is no slot is listed without
 * an id, and clave_async_slots_break takes it away by its name.
 *
 * Asynchronous, on a clave_async_client and under its thread and callback rules. The blocking form
 * is clave/slots.h. */
#ifndef CLAVE_ASYNC_SLOTS_H
#define CLAVE_ASYNC_SLOTS_H

#include "clave/async/grant.h"
#include "clave/async/mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_async_slots clave_async_slots; /* opaque */

/* A slot. Of a take, `id`, `host`, `by` and `reason` are the caller's. */
typedef struct clave_slot {
    const char *id;     /* NULL, in a list: a node that others made, and that is no slot */
    const char *host;   /* NULL: not said, in this and the next two; at most 1024 bytes each */
    const char *by;     /* the person or role that took it */
    const char *reason; /* what it is for */
    const char *node;   /* the full path of its take's node; of what is no slot, its own */
    int64_t token;      /* the czxid of the slot, which grows with every take, by any client */
    int64_t since;      /* milliseconds since 1970, by the servers' clock */
} clave_slot;

/* A take waits, or its position has changed; or it is refused for lack of room, and EBUSY follows.
 */
typedef struct clave_slots_event {
    uint64_t request;
    size_t ahead;          /* others are before it; 0: it waits for room */
    const char *left_over; /* as of clave_mutex_event */
    bool refused;
    size_t owned;        /* nodes that took room when it counted most recently */
    int64_t limit;       /* then, as of clave_slots_view */
    const char *strange; /* the path of one of them that is no slot; NULL: there is none */
} clave_slots_event;
typedef void clave_slots_event_cb(clave_async_slots *s, const clave_slots_event *ev, void *arg);

enum { CLAVE_SLOT_ID_MAX = 128, CLAVE_SLOT_TEXT_MAX = 1024 };
/* In place of a limit: there is no node; it holds no number of slots, and nobody takes any. */
enum { CLAVE_SLOTS_LIMIT_NONE = -1, CLAVE_SLOTS_LIMIT_BAD = -2 };

typedef struct clave_slots_options {
    size_t size;    /* CLAVE_SLOTS_OPTIONS_INIT sets it: clave/options.h */
    uint32_t limit; /* what a missing limit is created with; 0: it is not, and a take is ENONODE */
    const clave_acl *acls; /* of all nodes created; NULL: open; copied */
    size_t nacls;
    clave_slots_event_cb *event_cb; /* may be NULL */
    void *event_arg;
} clave_slots_options;
#define CLAVE_SLOTS_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_slots_options)

/* Makes the slots of `path`; contacts no server. On CLAVE_OK *out belongs to the caller, who frees
 * it with clave_async_slots_free; on an error it is NULL. EPATH: the path is not valid. EINVAL: an
 * option is out of range. ENOMEM. */
CLAVE_MAKING clave_err clave_async_slots_new(clave_async_slots **out, clave_async_client *c,
                                             const char *path, const clave_slots_options *o);
/* Cancels every pending take, give and break: its callback runs with ECANCELED, later; or with an
 * error of class UNKNOWN when its transaction was sent already, which may still be done. The
 * callbacks of other pending calls run as ever. Slots stay with their owners. NULL is ignored. */
CLAVE_EXPORT void clave_async_slots_free(clave_async_slots *s);

/* CLAVE_OK: the id owns `slot`, valid during the call only; `taken` is false when it owned one
 * before this call. Any other error of class UNKNOWN: the slot may have been taken, and
 * clave_async_slots_list tells after the connection is back. Otherwise it was not. EBUSY,
 * EUNREACHABLE: not in time, as of clave_async_mutex_acquire. ECANCELED: clave_async_slots_cancel,
 * or a give or break of the id, by any client, which ends its takes that wait. ENONODE: no limit is
 * set. ENOAUTH and other final errors: the server refused a node. ENOMEM. ECLOSED. */
typedef void clave_async_slots_take_cb(clave_async_slots *s, clave_err err, const clave_slot *slot,
                                       bool taken, void *arg);
/* Takes a slot for the id of `as`, whose texts are copied, until `deadline`: a time of the client's
 * clock, CLAVE_TRY or CLAVE_NEVER, as for clave_async_mutex_acquire. `request` is a number of the
 * caller's choice, for _cancel. An id that owns a slot gets that one at once. cb runs once, later.
 * At once: EINVAL: the id or a text is not valid, or a request of this number is pending. ENOMEM.
 * ECLOSED. */
CLAVE_METHOD clave_err clave_async_slots_take(clave_async_slots *s, uint64_t request,
                                              const clave_slot *as, int64_t deadline,
                                              clave_async_slots_take_cb *cb, void *arg);
/* Ends a pending take. Its callback runs later: with ECANCELED, unless the transaction was sent
 * already; then it tells how that ended. ENOTHELD: none is pending. */
CLAVE_METHOD clave_err clave_async_slots_cancel(clave_async_slots *s, uint64_t request);

/* CLAVE_OK: the id owns no slot now, or none of this token; `slot` is the one that it owned, valid
 * during the call only, or NULL: it owned none. ECONNLOSS, ETIMEDOUT and others of class UNKNOWN:
 * it may own it still. ECANCELED: the slots were freed, and nothing was given. ENOTEMPTY: others
 * have made nodes below it. ENOAUTH and other final errors: the server refused. ENOMEM. ECLOSED. */
typedef void clave_async_slots_give_cb(clave_async_slots *s, clave_err err, const clave_slot *slot,
                                       void *arg);
/* Gives back the slot of an id, and ends the takes of that id that wait, at every client. With a
 * `token` other than 0, only the slot of that token, and takes that were begun before it: so a give
 * that is repeated after its answer was lost never gives back a later take of the same id.
 * `deadline` is a time of the client's clock or CLAVE_NEVER: then it ends with ETIMEDOUT or
 * ECONNLOSS. cb (may be NULL) runs once, later. At once: EINVAL: the id. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_slots_give(clave_async_slots *s, const char *id, int64_t token,
                                              int64_t deadline, clave_async_slots_give_cb *cb,
                                              void *arg);
/* Takes the slot away from an id, as an operator does, and records in the same transaction who did
 * it (`by`, may be NULL) and why (`reason`), in <path>/broken. Of `which` these two, the id and the
 * token (0: any) count. If no slot is that of the id, a child of <path>/owners that is no slot and
 * has this name. Otherwise as clave_async_slots_give. EINVAL: there is no reason, or a text is not
 * valid. */
CLAVE_METHOD clave_err clave_async_slots_break(clave_async_slots *s, const clave_slot *which,
                                               int64_t deadline, clave_async_slots_give_cb *cb,
                                               void *arg);

typedef void clave_async_slots_limit_cb(clave_async_slots *s, clave_err err, void *arg);
/* Sets the limit, and creates the path if it is missing. Raising it admits those that wait;
 * lowering it takes nobody's slot; 0 lets nobody take one. cb (may be NULL) runs once, later, with
 * errors as of clave_async_set. At once: EINVAL: more than 2147483647, or a number whose four bytes
 * would be read as text, as 808464432 ("0000"). ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_slots_set_limit(clave_async_slots *s, uint32_t limit,
                                                   clave_async_slots_limit_cb *cb, void *arg);

/* What is known of the slots at a path. */
typedef struct clave_slots_view {
    int64_t limit;           /* or CLAVE_SLOTS_LIMIT_NONE, CLAVE_SLOTS_LIMIT_BAD */
    const clave_slot *slots; /* the oldest first */
    size_t n;
    clave_slot broken; /* the one broken last; all NULL and 0: none. `by` and `reason` are the
                          operator's, `since` is when */
} clave_slots_view;
typedef void clave_async_slots_list_cb(clave_async_client *c, clave_err err,
                                       const clave_slots_view *view, void *arg);
/* Lists the owners of the slots at `path`, after a sync; the view is valid during the call only. A
 * missing path has no slots. Those who wait are the participants (clave_async_participants) of
 * <path>/queue, each with its id as the name. cb runs once, later. At once: EPATH. ENOMEM. ECLOSED.
 */
CLAVE_METHOD clave_err clave_async_slots_list(clave_async_client *c, const char *path,
                                              clave_async_slots_list_cb *cb, void *arg);

/* What a slot is worth: a grant for guarded writes, which are done only while the slot is owned.
 * `slot` has its node and its token. The grant has no deadline (CLAVE_NEVER), since only the server
 * knows of a give or a break, and no session: its session id is 0. EINVAL: the node is not one of
 * these slots. ENOMEM. */
CLAVE_METHOD clave_err clave_async_slots_grant(const clave_async_slots *s, const clave_slot *slot,
                                               clave_async_grant **out);

#ifdef __cplusplus
}
#endif
#endif
