/* slots.c - the slots of a path, and the calls. The public API's file. */
#include "recipe/slots/slots_internal.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "recipe/contender/contender_grant.h"
#include "recipe/slots/slot_name.h"

/* ---- life ------------------------------------------------------------------------------------ */

clave_err clave__slots_paths_init(struct slots_paths *p, clave_async_client *c, const char *path)
{
    const struct clave_mem *mem = clave__client_mem(c);
    const char *fault = clave__path_fault(path, strlen(path), false);
    *p = (struct slots_paths){0};
    if (fault) {
        clave__client_fault(c, "the path of the slots \"%s\" %s", path, fault);
        return CLAVE_EPATH;
    }
    p->limit = clave__path_child(mem, path, "limit");
    p->owners = clave__path_child(mem, path, "owners");
    p->broken = clave__path_child(mem, path, "broken");
    p->queue = clave__path_child(mem, path, "queue");
    return p->limit && p->owners && p->broken && p->queue ? CLAVE_OK : CLAVE_ENOMEM;
}

void clave__slots_paths_fini(struct slots_paths *p, const struct clave_mem *mem)
{
    clave__mem_free(mem, p->limit);
    clave__mem_free(mem, p->owners);
    clave__mem_free(mem, p->broken);
    clave__mem_free(mem, p->queue);
}

void clave__slots_hold(clave_async_slots *s)
{
    s->refs++;
}

void clave__slots_drop(clave_async_slots *s)
{
    assert(s->refs > 0);
    if (--s->refs > 0)
        return;
    clave__contender_config_fini(&s->queue);
    clave__slots_paths_fini(&s->paths, s->mem);
    clave__mem_free(s->mem, s);
}

/* The data of a place in the queue is clave's form; each take adds what it says. */
static clave_err slots_copy_options(clave_async_slots *s, const char *path,
                                    const clave_slots_options *o)
{
    char form[sizeof "clave/1\n"];
    size_t n = clave_identity_format(&(clave_identity){0}, form, sizeof form);
    clave_err err = clave__slots_paths_init(&s->paths, s->client, path);
    if (err == CLAVE_OK)
        err = clave__contender_config_init(&s->queue, s->client, s->paths.queue,
                                           &clave__queue_order_mutex, "the path of the slots");
    if (err == CLAVE_OK)
        err = clave__contender_config_set_data(&s->queue, form, n);
    if (err == CLAVE_OK)
        err = clave__contender_config_set_acls(&s->queue, o->acls, o->nacls);
    s->seed = o->limit;
    s->event_cb = o->event_cb;
    s->event_arg = o->event_arg;
    return err;
}

clave_err clave_async_slots_new(clave_async_slots **out, clave_async_client *c, const char *path,
                                const clave_slots_options *given)
{
    clave_slots_options o;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_slots_options");
    if (err == CLAVE_OK && (o.limit > SLOTS_LIMIT_MAX || (o.acls && o.nacls == 0)))
        err = CLAVE_EINVAL;
    if (err != CLAVE_OK)
        return err;
    const struct clave_mem *mem = clave__client_mem(c);
    clave_async_slots *s = clave__mem_zalloc(mem, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    s->client = c;
    s->mem = s->queue.mem = mem;
    s->refs = 1;
    list_init(&s->takes);
    err = slots_copy_options(s, path, &o);
    if (err != CLAVE_OK) {
        clave__slots_drop(s);
        return err;
    }
    clave__client_ref(c);
    *out = s;
    return CLAVE_OK;
}

void clave_async_slots_free(clave_async_slots *s)
{
    if (!s)
        return;
    clave_async_client *c = s->client;
    struct slot_take *t;
    s->event_cb = NULL;
    while ((t = clave__slot_take_first(s)))
        clave__slot_take_cancel(t, true);
    clave__slots_drop(s);
    clave__client_unref(c);
}

/* ---- take ------------------------------------------------------------------------------------ */

static bool slots_is_closed(const clave_async_slots *s)
{
    return clave_async_client_state(s->client) == CLAVE_STATE_CLOSED;
}

static bool slots_may_say(const clave_slot *as)
{
    return clave__slot_id_is_valid(as->id) && clave__slot_text_is_valid(as->host) &&
           clave__slot_text_is_valid(as->by) && clave__slot_text_is_valid(as->reason);
}

clave_err clave_async_slots_take(clave_async_slots *s, uint64_t request, const clave_slot *as,
                                 int64_t deadline, clave_async_slots_take_cb *cb, void *arg)
{
    if (!cb || !slots_may_say(as) || clave__slot_take_find(s, request))
        return CLAVE_EINVAL;
    if (slots_is_closed(s))
        return CLAVE_ECLOSED;
    struct slot_take *t;
    clave_err err = clave__slot_take_new(&t, s, request, as);
    if (err == CLAVE_OK)
        clave__slot_take_start(t, deadline, cb, arg);
    return err;
}

clave_err clave_async_slots_cancel(clave_async_slots *s, uint64_t request)
{
    struct slot_take *t = clave__slot_take_find(s, request);
    if (!t)
        return CLAVE_ENOTHELD;
    clave__slot_take_cancel(t, false);
    return CLAVE_OK;
}

clave_err clave_async_slots_grant(const clave_async_slots *s, const clave_slot *slot,
                                  clave_async_grant **out)
{
    *out = NULL;
    if (!slot->node ||
        !clave__path_is_child(slot->node, s->paths.owners, clave__path_name(slot->node)))
        return CLAVE_EINVAL;
    return clave__grant_new_kept(out, s->client, slot->node, slot->token);
}
