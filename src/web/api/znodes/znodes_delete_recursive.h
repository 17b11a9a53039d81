/* znodes_delete_recursive.h - DELETE /v1/znodes/PATH?recursive: a node with all that is below it,
 * up to a bound.
 */
#ifndef CLAVE_WEB_API_ZNODES_ZNODES_DELETE_RECURSIVE_H
#define CLAVE_WEB_API_ZNODES_ZNODES_DELETE_RECURSIVE_H

#include "web/http/exchange.h"

void clave__web_delete_subtree(struct web_exchange *x);

#endif
