/* znodes_api.h - /v1/znodes/PATH: a znode is a resource. Its data are the body as it is, its
 * version is the entity tag; ?stat, ?children and ?acl are JSON. */
#ifndef CLAVE_WEB_API_ZNODES_ZNODES_API_H
#define CLAVE_WEB_API_ZNODES_ZNODES_API_H

#include "web/http/exchange.h"

web_handler clave__web_get_znode, clave__web_put_znode, clave__web_post_znode,
    clave__web_delete_znode;

#endif
