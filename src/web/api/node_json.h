/* node_json.h - what ZooKeeper says of a node, as JSON: stat, access list; and back. */
#ifndef CLAVE_WEB_API_NODE_JSON_H
#define CLAVE_WEB_API_NODE_JSON_H

#include "web/http/exchange.h"

/* NULL: null. */
void clave__web_json_stat(struct json *j, const char *key, const clave_stat *st);
void clave__web_json_acls(struct json *j, const char *key, const clave_acl *acls, size_t n);

/* Reads the array of access entries {perms, scheme, id}; texts belong to the exchange. false: it
 * has answered. `list` NULL: *acls is NULL. */
bool clave__web_read_acls(struct web_exchange *x, const json_t *list, const clave_acl **acls,
                          size_t *n);

/* The mode of this name, "ephemeral_sequential"; false: there is none. */
bool clave__web_parse_mode(const char *name, clave_create_mode *out);
static inline bool clave__web_mode_is_ephemeral(clave_create_mode mode)
{
    return mode == CLAVE_EPHEMERAL || mode == CLAVE_EPHEMERAL_SEQUENTIAL;
}

/* The path of a node's resource, percent-encoded, as header Location. */
void clave__web_set_location(struct web_exchange *x, const char *path);

#endif
