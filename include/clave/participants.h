/* participants.h - lists who is in a queue, blocking, for threads: Curator's getParticipantNodes
 * and getParticipants. The asynchronous calls are in clave/async/mutex.h, rwlock.h, semaphore.h and
 * leader.h.
 *
 * Any thread may call anything here; on the loop's thread (in a callback) what waits returns
 * ELOOPTHREAD. */
#ifndef CLAVE_PARTICIPANTS_H
#define CLAVE_PARTICIPANTS_H

#include "clave/async/mutex.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_participant_list {
    const clave_participant *list; /* in queue order: the holder or leader comes first */
    size_t n;
} clave_participant_list;

/* Which queue to list: clave_async_participants, clave_async_latch_participants,
 * clave_async_semaphore_participants, or a function of your own that calls one like them. */
typedef clave_err clave_participants_fn(clave_async_client *c, const char *path,
                                        clave_async_participants_cb *cb, void *arg);

/* Lists the queue at `path`, after a sync: everything is in it that the ensemble's leader had
 * committed before the call. A missing path is an empty queue. On CLAVE_OK *out belongs to the
 * caller (clave_participant_list_free); on an error it is NULL. Errors as clave_children: EPATH,
 * ENOAUTH, ECONNLOSS, ETIMEDOUT (after timeout_ms milliseconds; negative: no limit), ELOOPTHREAD,
 * ENOMEM, ECLOSED. */
CLAVE_METHOD clave_err clave_participants(clave_client *client, clave_participants_fn *call,
                                          const char *path, int64_t timeout_ms,
                                          clave_participant_list **out);
/* Frees a list and everything in it. NULL is ignored. */
CLAVE_EXPORT void clave_participant_list_free(clave_participant_list *r);

#ifdef __cplusplus
}
#endif
#endif
