/* contender_grant.h - makes a clave_async_grant from the place in a queue that a holder has. */
#ifndef CLAVE_RECIPE_CONTENDER_CONTENDER_GRANT_H
#define CLAVE_RECIPE_CONTENDER_CONTENDER_GRANT_H

#include "clave/async/grant.h"

struct grant_facts;

/* Makes the grant of what is held, as its holder describes it at this moment. ENOMEM. */
clave_err clave__grant_new(clave_async_grant **out, const struct grant_facts *f);
/* Makes the grant of a node that is kept neither by a session nor by a deadline of ours. ENOMEM. */
clave_err clave__grant_new_kept(clave_async_grant **out, clave_async_client *c, const char *node,
                                int64_t token);
/* `on_over` is called when the grant is over, before its holder is told of a loss; it must not free
 * the grant. There can be only one. */
typedef void grant_over(void *arg);
void clave__grant_observe(clave_async_grant *g, grant_over *on_over, void *arg);

clave_async_client *clave__grant_client(const clave_async_grant *g);

/* Does one operation under one grant; the result is that of the operation. */
clave_err clave__grant_write(clave_async_grant *g, const clave_op *op, clave_result_cb *cb,
                             void *arg);

#endif
