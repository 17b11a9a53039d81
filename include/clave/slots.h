/* slots.h - slots, blocking, for threads: places that belong to an id, not to a session. The
 * asynchronous form, which describes the slots, their nodes, the ids and the options, is
 * clave/async/slots.h; both forms share one path.
 *
 * Owners   a slot is its id's: any process that names the id may give it back.
 * Threads  any thread may call anything here. On the loop's thread (in a callback) the calls that
 *          wait return ELOOPTHREAD.
 * Times    timeout_ms is in milliseconds from now; negative: no limit. */
#ifndef CLAVE_SLOTS_H
#define CLAVE_SLOTS_H

#include "clave/async/slots.h"
#include "clave/grant.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_slots clave_slots; /* opaque */

/* Makes a handle for the slots of `path`; does not contact the server. On CLAVE_OK *out belongs to
 * the caller, who frees it with clave_slots_free; on an error it is NULL. `o` is as for
 * clave_async_slots_new; its event callback runs on the loop's thread. The slots may outlive the
 * session: see clave_client_close. EPATH: the path is not valid. EINVAL: an option is out of range.
 * ENOMEM. ECLOSED: the session has ended. */
CLAVE_MAKING clave_err clave_slots_new(clave_slots **out, clave_client *client, const char *path,
                                       const clave_slots_options *o);
/* Frees the handle; slots stay with their owners. No thread may be in a call. NULL is ignored. */
CLAVE_EXPORT void clave_slots_free(clave_slots *s);

/* Takes a slot for the id of `as`, as clave_async_slots_take. CLAVE_OK: the id owns *out, which
 * belongs to the caller (clave_slot_free); *taken (may be NULL) is false if the id already owned a
 * slot before this call. On an error *out is NULL. timeout_ms 0: only if there is room now. Errors
 * of class UNKNOWN: the slot may have been taken; clave_slots_list tells. On other errors it was
 * not. EBUSY, EUNREACHABLE: not taken in time, with the same distinction as in clave_mutex_acquire.
 * ECANCELED: clave_slots_cancel. ENONODE: no limit is set. EINVAL: the id or a text is not valid.
 * ENOAUTH and other final errors: the server refused a node. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_slots_take(clave_slots *s, const clave_slot *as, int64_t timeout_ms,
                                        clave_slot **out, bool *taken);
/* Frees the description of a slot; the slot stays owned. NULL is ignored. */
CLAVE_EXPORT void clave_slot_free(clave_slot *slot);
/* Makes every take that waits in another thread return ECANCELED, except one whose transaction was
 * already sent: that one returns its outcome. Does not wait; may also be called in callbacks. */
CLAVE_METHOD void clave_slots_cancel(clave_slots *s);

/* Gives back the slot of an id. If `token` is not 0, only the slot with that token, so that
 * repeating a give whose answer was lost never gives back a later take. CLAVE_OK: the id owns no
 * slot now; *given (may be NULL) is the token of the slot that it owned, or 0 if it owned none.
 * ECONNLOSS, ETIMEDOUT and others of class UNKNOWN: the id may still own it. EINVAL: the id.
 * ENOAUTH and other final errors: the server refused. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_slots_give(clave_slots *s, const char *id, int64_t token,
                                        int64_t timeout_ms, int64_t *given);
/* Takes the slot away from the id of `which`, as an operator does, and records why, like
 * clave_async_slots_break. Otherwise like clave_slots_give.
 * EINVAL: there is no reason, or a text is not valid. */
CLAVE_METHOD clave_err clave_slots_break(clave_slots *s, const clave_slot *which,
                                         int64_t timeout_ms, int64_t *broken);

/* Sets the limit, as clave_async_slots_set_limit. Errors as of clave_set, and EINVAL: more than
 * 2147483647. */
CLAVE_METHOD clave_err clave_slots_set_limit(clave_slots *s, uint32_t limit, int64_t timeout_ms);

/* Lists the owners of the slots at `path`, after a sync. A missing path has no slots. On CLAVE_OK
 * *out belongs to the caller (clave_slots_view_free); on an error it is NULL. Errors as
 * clave_children. To list those who wait, use clave_participants on <path>/queue. */
CLAVE_METHOD clave_err clave_slots_list(clave_client *client, const char *path, int64_t timeout_ms,
                                        clave_slots_view **out);
/* Frees a view and everything in it. NULL is ignored. */
CLAVE_EXPORT void clave_slots_view_free(clave_slots_view *view);

/* The grant of a slot, as clave_async_slots_grant: its guarded writes are done only while the slot
 * is owned. EINVAL: the node is not one of these slots. ENOMEM. ECLOSED. */
CLAVE_METHOD clave_err clave_slots_grant(clave_slots *s, const clave_slot *slot, clave_grant **out);

#ifdef __cplusplus
}
#endif
#endif
