/* latch_leadership.c - what a latch knows of its leadership, and what only a leader may write. The
 * public API's file. Invariant: it leads only while its node is the first and its grant lasts. */
#include "recipe/contender/fenced_write.h"
#include "recipe/election/latch_internal.h"

/* ---- what is known --------------------------------------------------------------------- */

bool clave_async_latch_grant(const clave_async_latch *l, clave_grant *out)
{
    if (!clave__latch_leads(l))
        return false;
    *out = clave__contender_grant(l->place);
    return true;
}

bool clave_async_latch_valid_for(const clave_async_latch *l, int64_t now, int64_t ms)
{
    clave_grant g;
    return clave_async_latch_grant(l, &g) && clave__grant_lasts(&g, now, ms);
}

bool clave_async_latch_has_leadership(const clave_async_latch *l, int64_t now)
{
    return clave_async_latch_valid_for(l, now, 0);
}

clave_latch_state clave_async_latch_state_of(const clave_async_latch *l)
{
    if (clave__latch_is_started(l))
        return CLAVE_LATCH_STARTED;
    return l->state == LATCH_LATENT ? CLAVE_LATCH_LATENT : CLAVE_LATCH_CLOSED;
}

const char *clave_async_latch_id(const clave_async_latch *l)
{
    return l->id;
}

const char *clave_async_latch_own_path(const clave_async_latch *l)
{
    const struct contender *p = l->place;
    bool stands = p && p->state >= CONTENDER_WAITING && p->state <= CONTENDER_HELD;
    return stands ? p->own.path : NULL;
}

bool clave__latch_lead(const clave_async_latch *l, struct latch_lead *out)
{
    if (!clave__latch_leads(l))
        return false;
    *out = (struct latch_lead){l->client, l->config.path, l->place->own.path, l->place->token};
    return true;
}

/* ---- guarded writes -------------------------------------------------------------------- */

static clave_err latch_leadership_guard_one(clave_async_latch *l, const clave_op *op,
                                            clave_result_cb *cb, void *arg)
{
    if (!clave__latch_leads(l))
        return CLAVE_ENOTHELD;
    return clave__fenced_write_one(l->client, l->place->own.path, op, cb, arg);
}

clave_err clave_async_latch_create(clave_async_latch *l, const char *path, const void *data,
                                   size_t len, clave_create_mode mode, clave_result_cb *cb,
                                   void *arg)
{
    clave_op op = {.kind = CLAVE_OP_CREATE, .path = path, .data = data, .len = len, .mode = mode};
    return latch_leadership_guard_one(l, &op, cb, arg);
}

clave_err clave_async_latch_set(clave_async_latch *l, const char *path, const void *data,
                                size_t len, int32_t version, clave_result_cb *cb, void *arg)
{
    clave_op op = {
        .kind = CLAVE_OP_SET, .path = path, .data = data, .len = len, .version = version};
    return latch_leadership_guard_one(l, &op, cb, arg);
}

clave_err clave_async_latch_delete(clave_async_latch *l, const char *path, int32_t version,
                                   clave_result_cb *cb, void *arg)
{
    clave_op op = {.kind = CLAVE_OP_DELETE, .path = path, .version = version};
    return latch_leadership_guard_one(l, &op, cb, arg);
}

clave_err clave_async_latch_multi(clave_async_latch *l, const clave_op *ops, size_t nops,
                                  clave_result_cb *cb, void *arg)
{
    if (!clave__latch_leads(l))
        return CLAVE_ENOTHELD;
    return clave__fenced_write_multi(l->client, l->place->own.path, ops, nops, cb, arg);
}
