/* participants.h - who stands in a queue, for threads. */
#ifndef CLAVE_ROLL_H
#define CLAVE_ROLL_H

#include "clave/mutex.h"
#include "clave/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clave_roll {
    const clave_participant *list; /* in queue order, who holds or leads first */
    size_t n;
} clave_roll;

/* Which queue: clave_participants, clave_latch_participants, clave_semaphore_participants, or a
 * function of your own that calls one of their kin. */
typedef clave_err clave_roll_call(clave_client *c, const char *path, clave_participants_cb *cb,
                                  void *arg);

/* Everything the ensemble's leader had committed before is in it (a sync goes first). A missing
 * path is an empty queue. *out is the caller's, to be given to clave_roll_free; NULL with any
 * error. As clave_session_children. */
CLAVE_EXPORT clave_err clave_session_roll(clave_session *s, clave_roll_call *call, const char *path,
                                          int64_t timeout_ms, clave_roll **out);
/* NULL is ignored. */
CLAVE_EXPORT void clave_roll_free(clave_roll *r);

#ifdef __cplusplus
}
#endif
#endif
