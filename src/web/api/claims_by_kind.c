/* claims_by_kind.c - see claims_by_kind.h. Called by the table of routes. */
#include "web/api/claims_by_kind.h"

#include "web/api/claims/claims_api.h"
#include "web/api/slots/slots_api.h"
#include "web/http/problem.h"

static void any_claim_handle(struct web_exchange *x, web_handler *of_owner, web_handler *of_session)
{
    static const struct problem bad = {.status = 400, .err = CLAVE_EINVAL};
    if (clave__web_is_slot_claim(x))
        of_owner(x);
    else if (clave__web_query(x, "token"))
        clave__web_problem(x, &bad, "\"token\" is for claims of kind \"slot\"");
    else
        of_session(x);
}

void clave__web_post_any_claim(struct web_exchange *x)
{
    any_claim_handle(x, clave__web_post_slot_claim, clave__web_post_claim);
}

void clave__web_get_any_claim(struct web_exchange *x)
{
    any_claim_handle(x, clave__web_get_slot_claim, clave__web_get_claim);
}

void clave__web_patch_any_claim(struct web_exchange *x)
{
    any_claim_handle(x, clave__web_patch_slot_claim, clave__web_patch_claim);
}

void clave__web_delete_any_claim(struct web_exchange *x)
{
    any_claim_handle(x, clave__web_delete_slot_claim, clave__web_delete_claim);
}
