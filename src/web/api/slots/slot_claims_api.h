/* slot_claims_api.h - claims of kind "slot", which belong to an owner (Clave-Owner), not to a
 * session: asked for, looked at, given back. */
#ifndef CLAVE_WEB_API_SLOTS_SLOT_CLAIMS_API_H
#define CLAVE_WEB_API_SLOTS_SLOT_CLAIMS_API_H

#include "web/http/exchange.h"

/* The request is about one: it has the header Clave-Owner, or the id of one in its path. */
bool clave__web_is_slot_claim(const struct web_exchange *x);

web_handler clave__web_post_slot_claim;
web_handler clave__web_get_slot_claim;
web_handler clave__web_patch_slot_claim;
web_handler clave__web_delete_slot_claim;

#endif
