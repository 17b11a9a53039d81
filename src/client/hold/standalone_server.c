/* standalone_server.c - whether the server is standalone or a member of an ensemble, where an
 * answer alone does not extend the hold deadline. Asked on every connection; until the answer, and
 * where there is none, the server counts as a member. */
#include "client/client_internal.h"

bool clave__is_standalone(const clave_async_client *c)
{
    return c->hold_deadline.relay_ms == 0;
}

/* /zookeeper/config is empty on a standalone server and lists the members in an ensemble. In an
 * ensemble, a session that is re-attached with holds keeps its previous deadline until something
 * is committed. */
static void standalone_server_on_config(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)arg;
    if (res->err == CLAVE_OK && res->len == 0)
        clave__hold_deadline_set_relay(&c->hold_deadline, 0);
    else if (c->hold_deadline.proven < c->hold_deadline.attached)
        clave__heartbeat_catch_up(c);
    clave__session_hold_moved(c);
}

/* Without memory for the request the server counts as a member of an ensemble, which is safe. */
void clave__standalone_server_ask(clave_async_client *c)
{
    struct request *r;
    struct request_spec spec = {.again = AGAIN_NEVER,
                                .op = OP_GET_DATA,
                                .path = "/zookeeper/config",
                                .cb = standalone_server_on_config,
                                .quiet = true,
                                .raw = true};
    union wire_body body = {.read = {.path = clave__jbytes(spec.path)}};
    if (clave__request_new(c, &spec, &body, &r) == CLAVE_OK)
        clave__pipeline_submit(c, r);
}
