/* thread_grant.h - clave_grant, as the holders of this folder give it. */
#ifndef CLAVE_RUNTIME_BLOCKING_THREAD_GRANT_H
#define CLAVE_RUNTIME_BLOCKING_THREAD_GRANT_H

#include "clave/grant.h"
#include "runtime/blocking/call.h"

/* What is held by `owner` of a holder, whose type the function knows. On the loop's thread. */
typedef clave_err thread_grant_find(void *holder, uint64_t owner, clave_async_grant **out);

/* Any thread: the grant that `find` finds. Its errors; ENOMEM, ECLOSED. */
clave_err clave__thread_grant_take(clave_grant **out, clave_client *c, thread_grant_find *find,
                                   void *holder, uint64_t owner);
/* clave_grant_deadline, with the loop's mutex held. */
int64_t clave__thread_grant_deadline_locked(const clave_grant *g);
/* On the loop's thread: the grant of the engine; NULL: the session has ended. */
clave_async_grant *clave__thread_grant_of_engine(const clave_grant *g);
clave_client *clave__thread_grant_session(const clave_grant *g);

#endif
