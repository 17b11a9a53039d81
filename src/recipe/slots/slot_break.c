/* slot_break.c - breaks a slot: gives it back in its owner's place. The public API's file.
 * Invariant: nobody breaks a slot without a reason; slot_give.c writes it down with the delete. */
#include "base/memory.h"
#include "recipe/slots/slot_give.h"
#include "recipe/slots/slot_name.h"

clave_err clave_async_slots_break(clave_async_slots *s, const clave_slot *which,
                                  clave_async_slots_give_cb *cb, void *arg)
{
    const char *by = which->by, *reason = which->reason;
    struct slot_give *g;
    if (!reason || !*reason || !clave__slot_text_is_valid(reason) || !clave__slot_text_is_valid(by))
        return CLAVE_EINVAL;
    clave_err err = clave__slot_give_new(&g, s, which->id, which->token);
    if (err != CLAVE_OK)
        return err;
    g->breaks = true;
    g->reason = clave__mem_strdup(s->mem, reason);
    g->by = by ? clave__mem_strdup(s->mem, by) : NULL;
    if (!g->reason || (by && !g->by)) {
        clave__slot_give_free(g);
        return CLAVE_ENOMEM;
    }
    return clave__slot_give_start(g, cb, arg);
}
