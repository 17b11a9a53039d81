/* node_create.h - what creating a node takes beside its data and access list: its mode, the right
 * to it, and the answer's Location. */
#ifndef CLAVE_WEB_API_ZNODES_NODE_CREATE_H
#define CLAVE_WEB_API_ZNODES_NODE_CREATE_H

#include "web/http/exchange.h"

/* The mode of this name, "ephemeral_sequential"; false: there is none. */
bool clave__web_parse_mode(const char *name, clave_create_mode *out);
static inline bool clave__web_mode_is_ephemeral(clave_create_mode mode)
{
    return mode == CLAVE_EPHEMERAL || mode == CLAVE_EPHEMERAL_SEQUENTIAL;
}

static inline bool clave__web_mode_is_sequential(clave_create_mode mode)
{
    return mode == CLAVE_PERSISTENT_SEQUENTIAL || mode == CLAVE_EPHEMERAL_SEQUENTIAL ||
           mode == CLAVE_PERSISTENT_SEQUENTIAL_TTL;
}
static inline bool clave__web_mode_has_ttl(clave_create_mode mode)
{
    return mode == CLAVE_PERSISTENT_TTL || mode == CLAVE_PERSISTENT_SEQUENTIAL_TTL;
}
/* The sender may create it: a sequential node is beside its path, which its number follows. false:
 * it has answered. */
bool clave__web_must_create(struct web_exchange *x, clave_create_mode mode, const char *path);

/* The path of a node's resource, percent-encoded, as header Location. */
void clave__web_set_location(struct web_exchange *x, const char *path);

#endif
