/* subtree_api.h - DELETE /v1/znodes/PATH?recursive: a node with all that is below it, up to a
 * bound.
 */
#ifndef CLAVE_WEB_API_ACTIONS_SUBTREE_API_H
#define CLAVE_WEB_API_ACTIONS_SUBTREE_API_H

#include "web/http/exchange.h"

void clave__web_delete_subtree(struct web_exchange *x);

#endif
