/* node_json.h - what ZooKeeper says of a node, as JSON: stat, access list; and back. */
#ifndef CLAVE_WEB_API_ZNODES_NODE_JSON_H
#define CLAVE_WEB_API_ZNODES_NODE_JSON_H

#include "web/http/exchange.h"

/* NULL: null. */
void clave__web_json_stat(struct json *j, const char *key, const clave_stat *st);
void clave__web_json_acls(struct json *j, const char *key, const clave_acl *acls, size_t n);

/* Reads the array of access entries {perms, scheme, id}; texts belong to the exchange. false: it
 * has answered. `list` NULL: *acls is NULL. */
bool clave__web_read_acls(struct web_exchange *x, const json_t *list, const clave_acl **acls,
                          size_t *n);

#endif
