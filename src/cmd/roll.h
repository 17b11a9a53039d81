/* roll.h - who stands in a queue, read by a session and kept. */
#ifndef CLAVE_CMD_ROLL_H
#define CLAVE_CMD_ROLL_H

#include "clave/mutex.h"
#include "clave/session.h"

struct roll {
    clave_participant *list; /* in queue order, the holder first */
    size_t n;
};

/* Everything the leader has committed before this is in it. roll_fini() is for either case.
 * A missing path is an empty queue. */
clave_err roll_read(clave_session *s, const char *path, int64_t timeout_ms, struct roll *out);
void roll_fini(struct roll *r);

/* The same of another kind of queue: clave_participants or one of its kin. */
typedef clave_err roll_call_fn(clave_client *c, const char *path, clave_participants_cb *cb,
                               void *arg);
clave_err roll_read_by(clave_session *s, const char *path, roll_call_fn *call, int64_t timeout_ms,
                       struct roll *out);

#endif
