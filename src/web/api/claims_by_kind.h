/* claims_by_kind.h - /v1/claims: a claim belongs to a session (claims/claims_api.h) or, of kind
 * "slot", to an owner (slots/slots_api.h). */
#ifndef CLAVE_WEB_API_CLAIMS_BY_KIND_H
#define CLAVE_WEB_API_CLAIMS_BY_KIND_H

#include "web/http/exchange.h"

web_handler clave__web_post_any_claim;
web_handler clave__web_get_any_claim;
web_handler clave__web_patch_any_claim;
web_handler clave__web_delete_any_claim;

#endif
