/* participants.h - who stands in a queue, for threads. */
#ifndef CLAVE_PARTICIPANTS_H
#define CLAVE_PARTICIPANTS_H

#include "clave/async/mutex.h"
#include "clave/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_participant_list {
    const clave_participant *list; /* in queue order, who holds or leads first */
    size_t n;
} clave_participant_list;

/* Which queue: clave_async_participants, clave_async_latch_participants,
 * clave_async_semaphore_participants, or a function of your own that calls one of their kin. */
typedef clave_err clave_participants_fn(clave_async_client *c, const char *path,
                                        clave_async_participants_cb *cb, void *arg);

/* Everything the ensemble's leader had committed before is in it (a sync goes first). A missing
 * path is an empty queue. *out is the caller's, to be given to clave_participant_list_free; NULL
 * with any error. As clave_children. */
CLAVE_EXPORT clave_err clave_participants(clave_client *s, clave_participants_fn *call,
                                          const char *path, int64_t timeout_ms,
                                          clave_participant_list **out);
/* NULL is ignored. */
CLAVE_EXPORT void clave_participant_list_free(clave_participant_list *r);

#ifdef __cplusplus
}
#endif
#endif
