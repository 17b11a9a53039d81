/* contender_grant.h - clave_async_grant as holders make it of the place in a queue that they hold.
 */
#ifndef CLAVE_RECIPE_CONTENDER_CONTENDER_GRANT_H
#define CLAVE_RECIPE_CONTENDER_CONTENDER_GRANT_H

#include "clave/async/grant.h"

struct grant_facts;

/* The grant of what is held: `f` is what its holder says at this moment. ENOMEM. */
clave_err clave__grant_new(clave_async_grant **out, const struct grant_facts *f);
/* The grant of a node that no session and no deadline of ours keeps. ENOMEM. */
clave_err clave__grant_new_kept(clave_async_grant **out, clave_async_client *c, const char *node,
                                int64_t token);
/* `on_over` runs when the grant is over, before its holder is told of a loss; it must not free the
 * grant. At most one. */
typedef void grant_over(void *arg);
void clave__grant_observe(clave_async_grant *g, grant_over *on_over, void *arg);

clave_async_client *clave__grant_client(const clave_async_grant *g);

/* One operation under one grant: the result is that of the operation. */
clave_err clave__grant_write(clave_async_grant *g, const clave_op *op, clave_result_cb *cb,
                             void *arg);

#endif
