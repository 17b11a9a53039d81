/* slots_limit.c - sets the limit of slots, and makes its node if that is missing. The public API's
 * file. Invariant: a node that somebody else has made meanwhile is written too. */
#include "recipe/semaphore/shared_count.h"
#include "recipe/slots/slots_internal.h"

struct slots_limit {
    clave_async_slots *slots;
    uint32_t value;
    struct slots_prepare prepare;
    clave_async_slots_limit_cb *cb;
    void *arg;
};

static void slots_limit_done(struct slots_limit *l, clave_err err)
{
    clave_async_slots *s = l->slots;
    if (l->cb)
        l->cb(s, err, l->arg);
    clave__mem_free(s->mem, l);
    clave__slots_drop(s);
}

static clave_err slots_limit_write(struct slots_limit *l, clave_result_cb *cb)
{
    uint8_t data[SHARED_COUNT_SIZE];
    clave__shared_count_encode(l->value, data);
    return clave_async_set(l->slots->client, l->slots->paths.limit, data, sizeof data, -1, cb, l);
}

static void slots_limit_on_written(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    slots_limit_done(arg, res->err);
}

/* Somebody else may have made it, with another number. */
static void slots_limit_on_prepared(struct slots_prepare *p, clave_err err)
{
    struct slots_limit *l = LIST_ENTRY(p, struct slots_limit, prepare);
    if (err == CLAVE_OK && !p->limit_made)
        err = slots_limit_write(l, slots_limit_on_written);
    if (err != CLAVE_OK || p->limit_made)
        slots_limit_done(l, err);
}

static void slots_limit_on_set(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slots_limit *l = arg;
    clave_err err = res->err;
    if (err == CLAVE_ENONODE) {
        l->prepare = (struct slots_prepare){
            .slots = l->slots, .limit = l->value, .done = slots_limit_on_prepared};
        err = clave__slots_prepare(&l->prepare);
        if (err == CLAVE_OK)
            return;
    }
    slots_limit_done(l, err);
}

clave_err clave_async_slots_set_limit(clave_async_slots *s, uint32_t limit,
                                      clave_async_slots_limit_cb *cb, void *arg)
{
    if (limit > SLOTS_LIMIT_MAX)
        return CLAVE_EINVAL;
    struct slots_limit *l = clave__mem_zalloc(s->mem, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    *l = (struct slots_limit){.slots = s, .value = limit, .cb = cb, .arg = arg};
    clave_err err = slots_limit_write(l, slots_limit_on_set);
    if (err != CLAVE_OK) {
        clave__mem_free(s->mem, l);
        return err;
    }
    clave__slots_hold(s);
    return CLAVE_OK;
}
