/* slots_prepare.c - makes the nodes of slots that are missing. Called by slots.c and slot_take.c.
 * A create whose answer was lost is left to the caller's next attempt: it finds the node. */
#include "recipe/semaphore/shared_count.h"
#include "recipe/slots/slots_internal.h"

static void slots_prepare_done(struct slots_prepare *p, clave_err err)
{
    clave_async_slots *s = p->slots;
    p->done(p, err);
    clave__slots_drop(s);
}

static clave_err slots_prepare_create(struct slots_prepare *p, const char *path, const void *data,
                                      size_t len, clave_result_cb *cb)
{
    const struct contender_spec *spec = &p->slots->queue.spec;
    const clave_create_options o = {
        .size = sizeof o, .flags = CLAVE_CREATE_PARENTS, .acls = spec->acls, .nacls = spec->nacls};
    return clave_async_create(p->slots->client, path, data, len, &o, cb, p);
}

static void slots_prepare_on_limit(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slots_prepare *p = arg;
    p->limit_made = res->err == CLAVE_OK;
    slots_prepare_done(p, res->err == CLAVE_ENODEEXISTS ? CLAVE_OK : res->err);
}

static void slots_prepare_on_owners(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slots_prepare *p = arg;
    uint8_t data[SHARED_COUNT_SIZE];
    clave_err err = res->err == CLAVE_ENODEEXISTS ? CLAVE_OK : res->err;
    if (err != CLAVE_OK || p->limit < 0) {
        slots_prepare_done(p, err);
        return;
    }
    clave__shared_count_encode((uint32_t)p->limit, data);
    err = slots_prepare_create(p, p->slots->paths.limit, data, sizeof data, slots_prepare_on_limit);
    if (err != CLAVE_OK)
        slots_prepare_done(p, err);
}

clave_err clave__slots_prepare(struct slots_prepare *p)
{
    p->limit_made = false;
    clave_err err = slots_prepare_create(p, p->slots->paths.owners, "", 0, slots_prepare_on_owners);
    if (err == CLAVE_OK)
        clave__slots_hold(p->slots);
    return err;
}
