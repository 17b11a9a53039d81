/* reconfig.c - reconfig, which is refused: this server is no ensemble. The table in request.c
 * refers to it. */
#include "server/request/write.h"

clave_err clave__write_reconfig(struct server_conn *c, int32_t op, const union wire_body *body)
{
    (void)c;
    (void)op;
    (void)body;
    return CLAVE_ERECONFIGDISABLED;
}
