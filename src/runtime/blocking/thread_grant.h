/* thread_grant.h - clave_grant, as the holders in this folder make it. */
#ifndef CLAVE_RUNTIME_BLOCKING_THREAD_GRANT_H
#define CLAVE_RUNTIME_BLOCKING_THREAD_GRANT_H

#include "clave/grant.h"
#include "runtime/blocking/call.h"

/* Finds the grant of what `owner` holds through the holder, whose type the function knows. Called
 * on the loop's thread. */
typedef clave_err thread_grant_find(void *holder, uint64_t owner, clave_async_grant **out);

/* Any thread: makes a grant from the one that `find` finds. Errors as `find`; ENOMEM, ECLOSED. */
clave_err clave__thread_grant_take(clave_grant **out, clave_client *c, thread_grant_find *find,
                                   void *holder, uint64_t owner);
/* clave_grant_deadline; call it with the loop's mutex held. */
int64_t clave__thread_grant_deadline_locked(const clave_grant *g);
/* On the loop's thread: the engine's grant; NULL: the session has ended. */
clave_async_grant *clave__thread_grant_of_engine(const clave_grant *g);
clave_client *clave__thread_grant_session(const clave_grant *g);

#endif
