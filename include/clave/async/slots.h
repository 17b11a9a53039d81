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
 * Takers queue as for a mutex. A taker takes its slot once the owners and the takers before it are
 * fewer than the limit. It does so in one transaction, which checks that the limit is as it was
 * read, creates the slot, and deletes the taker's place in the queue. So a take that arrives late
 * does nothing if its session has ended or its place was deleted. A slot stays until it is given
 * back or broken. It has no time limit, because the work of an owner that cannot be reached would
 * not stop with it.
 *
 * The ids are the caller's: 1 to 128 bytes of UTF-8 without control characters. In the name of a
 * node, bytes other than letters, digits and "._~@:+-" are written as %XX. An id owns one slot at
 * most. The czxid of the slot's node is the fencing token; the name of the node below it is new
 * with each take.
 *
 * After its callback, nothing more is sent for a call. A request that was sent before and whose
 * answer was lost may still be done, with two exceptions: a give or break that has succeeded ends
 * all takes of its id that were requested before it, and a take that has succeeded ends all gives
 * and breaks requested before it. The success of either is proved by a transaction, even that of a
 * give that finds nothing: what was only read may come from a leader that was deposed and does not
 * know it.
 *
 * Every child of <path>/owners counts as a slot, whatever its name. One that is not a slot is
 * listed without an id, and clave_async_slots_break removes it by its name.
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

/* A slot. In a take, `id`, `host`, `by` and `reason` are given by the caller. */
typedef struct clave_slot {
    const char *id;     /* NULL, in a list: a node made by others that is not a slot */
    const char *host;   /* NULL: not given, here and in the next two; at most 1024 bytes each */
    const char *by;     /* the person or role that took it */
    const char *reason; /* what it is for */
    const char *node; /* the full path of the node of its take or, if it is not a slot, of the node
                         itself */
    int64_t token;    /* the czxid of the slot, which grows with every take, by any client */
    int64_t since;    /* milliseconds since 1970, by the servers' clock */
} clave_slot;

/* A take waits, or its position has changed; or it is refused for lack of room, and EBUSY
 * follows. */
typedef struct clave_slots_event {
    uint64_t request;
    size_t ahead;          /* how many others are before it; 0: it is waiting for room */
    const char *left_over; /* as in clave_mutex_event */
    bool refused;
    size_t owned;        /* how many nodes took room in the most recent count */
    int64_t limit;       /* the limit at that time, as in clave_slots_view */
    const char *strange; /* the path of one of them that is not a slot; NULL: there is none */
} clave_slots_event;
typedef void clave_slots_event_cb(clave_async_slots *s, const clave_slots_event *ev, void *arg);

enum { CLAVE_SLOT_ID_MAX = 128, CLAVE_SLOT_TEXT_MAX = 1024 };
/* In place of a limit: there is no such node; or it does not contain a number of slots, and nobody
 * can take one. */
enum { CLAVE_SLOTS_LIMIT_NONE = -1, CLAVE_SLOTS_LIMIT_BAD = -2 };

typedef struct clave_slots_options {
    size_t size;    /* CLAVE_SLOTS_OPTIONS_INIT sets it: clave/options.h */
    uint32_t limit; /* with which a missing limit is created; 0: it is not created, and a take fails
                       with ENONODE */
    const clave_acl *acls; /* of all nodes created; NULL: open; copied */
    size_t nacls;
    clave_slots_event_cb *event_cb; /* may be NULL */
    void *event_arg;
} clave_slots_options;
#define CLAVE_SLOTS_OPTIONS_INIT CLAVE_OPTIONS_INIT(clave_slots_options)

/* Makes a handle for the slots of `path`; does not contact the server. On CLAVE_OK *out belongs to
 * the caller, who frees it with clave_async_slots_free; on an error it is NULL. EPATH: the path is
 * not valid. EINVAL: an option is out of range. ENOMEM. */
CLAVE_MAKING clave_err clave_async_slots_new(clave_async_slots **out, clave_async_client *c,
                                             const char *path, const clave_slots_options *o);
/* Cancels every pending take, give and break: its callback runs later, with ECANCELED or, if its
 * transaction was already sent and may still be done, with an error of class UNKNOWN. The callbacks
 * of other pending calls run as usual. Slots stay with their owners. NULL is ignored. */
CLAVE_EXPORT void clave_async_slots_free(clave_async_slots *s);

/* CLAVE_OK: the id owns `slot`, valid during the call only; `taken` is false if it already owned a
 * slot before this call. Any other error of class UNKNOWN: the slot may have been taken, and
 * clave_async_slots_list tells after the connection is back. Otherwise it was not. EBUSY,
 * EUNREACHABLE: not taken in time, with the same distinction as in clave_async_mutex_acquire.
 * ECANCELED: clave_async_slots_cancel was called, or any client gave back or broke the id's slot,
 * which ends its waiting takes. ENONODE: no limit is set. ENOAUTH and other final errors: the
 * server refused a node. ENOMEM. ECLOSED. */
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
/* Ends a pending take. Its callback runs later, with ECANCELED or, if the transaction was already
 * sent, with its outcome. ENOTHELD: none is pending. */
CLAVE_METHOD clave_err clave_async_slots_cancel(clave_async_slots *s, uint64_t request);

/* CLAVE_OK: the id owns no slot now, or none of this token; `slot` is the one that it owned, valid
 * during the call only, or NULL if it owned none. ECONNLOSS, ETIMEDOUT and others of class UNKNOWN:
 * it may still own it. ECANCELED: the slots were freed, and nothing was given. ENOTEMPTY: others
 * have created nodes below the slot. ENOAUTH and other final errors: the server refused. ENOMEM.
 * ECLOSED. */
typedef void clave_async_slots_give_cb(clave_async_slots *s, clave_err err, const clave_slot *slot,
                                       void *arg);
/* Gives back the slot of an id, and ends that id's waiting takes, at every client. If `token` is
 * not 0, only the slot with that token, and takes that were begun before it; so repeating a give
 * whose answer was lost never gives back a later take of the same id. At `deadline`, a time of the
 * client's clock or CLAVE_NEVER, it ends with ETIMEDOUT or ECONNLOSS. cb (may be NULL) runs once,
 * later. At once: EINVAL: the id. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_slots_give(clave_async_slots *s, const char *id, int64_t token,
                                              int64_t deadline, clave_async_slots_give_cb *cb,
                                              void *arg);
/* Takes the slot away from an id, as an operator does, and records in the same transaction who did
 * it (`by`, may be NULL) and why (`reason`), in <path>/broken. Only these two fields of `which`,
 * its id and its token (0: any) are used. If the id owns no slot, this breaks a child of
 * <path>/owners with that name that is not a slot. Otherwise as clave_async_slots_give. EINVAL:
 * there is no reason, or a text is not valid. */
CLAVE_METHOD clave_err clave_async_slots_break(clave_async_slots *s, const clave_slot *which,
                                               int64_t deadline, clave_async_slots_give_cb *cb,
                                               void *arg);

typedef void clave_async_slots_limit_cb(clave_async_slots *s, clave_err err, void *arg);
/* Sets the limit, and creates the path if it is missing. Raising it admits waiters; lowering it
 * takes away nobody's slot; with 0 nobody can take one. cb (may be NULL) runs once, later, with
 * errors as for clave_async_set. At once: EINVAL: more than 2147483647, or a number whose four
 * bytes would be read as text, such as 808464432 ("0000"). ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_async_slots_set_limit(clave_async_slots *s, uint32_t limit,
                                                   clave_async_slots_limit_cb *cb, void *arg);

/* The slots at a path as they were listed. */
typedef struct clave_slots_view {
    int64_t limit;           /* or CLAVE_SLOTS_LIMIT_NONE, CLAVE_SLOTS_LIMIT_BAD */
    const clave_slot *slots; /* oldest first */
    size_t n;
    clave_slot broken; /* the slot broken last, with `by` and `reason` from the operator and `since`
                          telling when; all NULL and 0: none was */
} clave_slots_view;
typedef void clave_async_slots_list_cb(clave_async_client *c, clave_err err,
                                       const clave_slots_view *view, void *arg);
/* Lists the owners of the slots at `path`, after a sync; the view is valid during the call only. A
 * missing path has no slots. Those that are waiting are the participants (clave_async_participants)
 * of <path>/queue, each with its id as the name. cb runs once, later. At once: EPATH. ENOMEM.
 * ECLOSED. */
CLAVE_METHOD clave_err clave_async_slots_list(clave_async_client *c, const char *path,
                                              clave_async_slots_list_cb *cb, void *arg);

/* The grant of a slot, for guarded writes that are done only while the slot is owned. `slot`
 * provides its node and its token. The grant has no deadline (CLAVE_NEVER), because only the server
 * knows of a give or a break, and no session: its session id is 0. EINVAL: the node is not one of
 * these slots. ENOMEM. */
CLAVE_METHOD clave_err clave_async_slots_grant(const clave_async_slots *s, const clave_slot *slot,
                                               clave_async_grant **out);

#ifdef __cplusplus
}
#endif
#endif
