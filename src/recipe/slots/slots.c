/* slots.c - the slots of a path: creating and freeing them, their nodes, their limit, and the list
 * of their owners. Implements the public API. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "recipe/contender/contender_grant.h"
#include "recipe/semaphore/shared_count.h"
#include "recipe/slots/slot_node.h"
#include "recipe/slots/slots_internal.h"

/* ---- creating and freeing -------------------------------------------------------------------- */

static clave_err slots_paths_init(struct slots_paths *p, clave_async_client *c, const char *path)
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

static void slots_paths_fini(struct slots_paths *p, const struct clave_mem *mem)
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
    slots_paths_fini(&s->paths, s->mem);
    clave__mem_free(s->mem, s);
}

/* The data of a place in the queue is in clave's form; each take adds its own fields. */
static clave_err slots_copy_options(clave_async_slots *s, const char *path,
                                    const clave_slots_options *o)
{
    char form[sizeof "clave/1\n"];
    size_t n = clave_identity_format(&(clave_identity){0}, form, sizeof form);
    clave_err err = slots_paths_init(&s->paths, s->client, path);
    if (err == CLAVE_OK)
        err = clave__contender_config_init(&s->queue, s->client, s->paths.queue,
                                           &clave__queue_order_mutex, "the path of the slots");
    s->queue.spec.owner_decides = true;
    if (err == CLAVE_OK)
        err = clave__contender_config_set_data(&s->queue, form, n);
    if (err == CLAVE_OK)
        err = clave__contender_config_set_acls(&s->queue, o->acls, o->nacls);
    s->seed = o->limit;
    s->event_cb = o->event_cb;
    s->event_arg = o->event_arg;
    return err;
}

/* True if the limit, once written, is read as a number. */
static bool slots_limit_is_valid(uint32_t limit)
{
    uint8_t data[SHARED_COUNT_SIZE];
    clave__shared_count_encode(limit, data);
    return clave__slot_limit_parse(data, sizeof data) == (int64_t)limit;
}

clave_err clave_async_slots_new(clave_async_slots **out, clave_async_client *c, const char *path,
                                const clave_slots_options *given)
{
    clave_slots_options o;
    *out = NULL;
    clave_err err = clave__client_take_options(c, &o, sizeof o, given, "clave_slots_options");
    if (err == CLAVE_OK && (!slots_limit_is_valid(o.limit) || (o.acls && o.nacls == 0)))
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
    list_init(&s->gives);
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
    s->event_cb = NULL;
    clave__slots_cancel_takes(s);
    clave__slots_cancel_gives(s);
    clave__slots_drop(s);
    clave__client_unref(c);
}

/* ---- grants ---------------------------------------------------------------------------------- */

/* True if the path of the node is <path>/owners/slot-ID/take-UUID. */
static bool slots_has_node(const clave_async_slots *s, const char *node)
{
    size_t n = strlen(s->paths.owners);
    const char *name = clave__path_name(node);
    const char *slot = strncmp(node, s->paths.owners, n) == 0 && node[n] == '/' ? node + n + 1 : "";
    return slot < name && *name && strchr(slot, '/') + 1 == name;
}

clave_err clave_async_slots_grant(const clave_async_slots *s, const clave_slot *slot,
                                  clave_async_grant **out)
{
    *out = NULL;
    return slot->node && slots_has_node(s, slot->node)
               ? clave__grant_new_kept(out, s->client, slot->node, slot->token)
               : CLAVE_EINVAL;
}

/* ---- creating missing nodes ------------------------------------------------------------------ */

/* If the answer to a create was lost, it is left to the caller's next attempt, which finds the
 * node. */
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

/* ---- the limit ------------------------------------------------------------------------------- */

int64_t clave__slots_limit_of(const clave_result *res)
{
    return res->err == CLAVE_ENONODE ? CLAVE_SLOTS_LIMIT_NONE
                                     : clave__slot_limit_parse(res->data, res->len);
}

/* Sets the limit, even if somebody else creates the node meanwhile. */
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

/* Somebody else may have created it, with another limit. */
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
    if (!slots_limit_is_valid(limit))
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

/* ---- the list: first the names, then the content of each node -------------------------------- */

struct slot_list;
/* A child of P/owners. */
struct slot_listed {
    struct slot_list *list;
    char *path;
    char *below; /* name of a slot's child; NULL: it has none, or is not a slot */
    struct slot_copy *copy;
};

struct slot_list {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct slots_paths paths;
    unsigned pending; /* answers still to come in this step */
    clave_err err;    /* the first error */
    int64_t limit;
    struct slot_copy *broken;
    struct slot_listed *at;
    size_t n;
    clave_async_slots_list_cb *cb;
    void *arg;
};

static void slot_list_note(struct slot_list *l, clave_err err)
{
    if (err != CLAVE_OK && l->err == CLAVE_OK)
        l->err = err;
}

static void slot_list_submitted(struct slot_list *l, clave_err err)
{
    l->pending += err == CLAVE_OK;
    slot_list_note(l, err);
}

static void slot_list_free(struct slot_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        clave__mem_free(l->mem, l->at[i].path);
        clave__mem_free(l->mem, l->at[i].below);
        clave__mem_free(l->mem, l->at[i].copy);
    }
    clave__mem_free(l->mem, l->at);
    clave__mem_free(l->mem, l->broken);
    slots_paths_fini(&l->paths, l->mem);
    clave__mem_free(l->mem, l);
}

static int slot_list_compare(const void *a, const void *b)
{
    const clave_slot *x = a;
    const clave_slot *y = b;
    return x->token < y->token ? -1 : x->token > y->token;
}

static clave_err slot_list_tell(struct slot_list *l)
{
    clave_slot *slots = clave__mem_alloc(l->mem, (l->n + 1) * sizeof *slots);
    if (!slots)
        return CLAVE_ENOMEM;
    clave_slots_view view = {.limit = l->limit, .slots = slots};
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].copy) /* otherwise it has gone meanwhile */
            slots[view.n++] = l->at[i].copy->slot;
    if (view.n > 1)
        qsort(slots, view.n, sizeof *slots, slot_list_compare);
    if (l->broken)
        view.broken = l->broken->slot;
    l->cb(l->client, CLAVE_OK, &view, l->arg);
    clave__mem_free(l->mem, slots);
    return CLAVE_OK;
}

static void slot_list_finish(struct slot_list *l)
{
    if (l->err == CLAVE_OK)
        l->err = slot_list_tell(l);
    if (l->err != CLAVE_OK)
        l->cb(l->client, l->err, NULL, l->arg);
    slot_list_free(l);
}

/* This answer comes before the one with the data, which was requested after this one. */
static void slot_list_on_below(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_listed *it = arg;
    struct slot_list *l = it->list;
    if (res->err == CLAVE_OK && res->nnames > 0) {
        it->below = clave__mem_strdup(l->mem, res->names[0]);
        slot_list_note(l, it->below ? CLAVE_OK : CLAVE_ENOMEM);
    } else if (res->err != CLAVE_ENONODE) {
        slot_list_note(l, res->err);
    }
    if (--l->pending == 0)
        slot_list_finish(l);
}

static void slot_list_on_slot(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_listed *it = arg;
    struct slot_list *l = it->list;
    if (res->err == CLAVE_OK) {
        it->copy = clave__slot_data_parse(l->mem, res, it->below);
        slot_list_note(l, it->copy ? CLAVE_OK : CLAVE_ENOMEM);
    } else if (res->err != CLAVE_ENONODE) {
        slot_list_note(l, res->err);
    }
    if (--l->pending == 0)
        slot_list_finish(l);
}

static void slot_list_read_all(struct slot_list *l)
{
    char id[CLAVE_SLOT_ID_MAX + 1];
    for (size_t i = 0; i < l->n && l->err == CLAVE_OK; i++) {
        struct slot_listed *it = &l->at[i];
        if (clave__slot_name_parse(clave__path_name(it->path), id))
            slot_list_submitted(
                l, clave_async_children(l->client, it->path, NULL, slot_list_on_below, it));
        slot_list_submitted(l, clave_async_get(l->client, it->path, NULL, slot_list_on_slot, it));
    }
    if (l->pending == 0)
        slot_list_finish(l);
}

static void slot_list_answered(struct slot_list *l)
{
    if (--l->pending == 0)
        slot_list_read_all(l);
}

static void slot_list_on_sync(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_list *l = arg;
    slot_list_note(l, res->err);
    slot_list_answered(l);
}

static void slot_list_on_limit(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_list *l = arg;
    if (res->err == CLAVE_OK || res->err == CLAVE_ENONODE)
        l->limit = clave__slots_limit_of(res);
    else
        slot_list_note(l, res->err);
    slot_list_answered(l);
}

static void slot_list_on_broken(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_list *l = arg;
    if (res->err == CLAVE_OK && res->len > 0) {
        l->broken = clave__slot_data_parse_record(l->mem, res);
        slot_list_note(l, l->broken ? CLAVE_OK : CLAVE_ENOMEM);
    } else if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE) {
        slot_list_note(l, res->err);
    }
    slot_list_answered(l);
}

static clave_err slot_list_take_names(struct slot_list *l, const clave_result *res)
{
    l->at = clave__mem_zalloc(l->mem, (res->nnames + 1) * sizeof *l->at);
    if (!l->at)
        return CLAVE_ENOMEM;
    for (; l->n < res->nnames; l->n++) {
        char *path = clave__path_child(l->mem, l->paths.owners, res->names[l->n]);
        if (!path)
            return CLAVE_ENOMEM;
        l->at[l->n] = (struct slot_listed){.list = l, .path = path};
    }
    return CLAVE_OK;
}

static void slot_list_on_owners(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_list *l = arg;
    if (res->err == CLAVE_OK)
        slot_list_note(l, slot_list_take_names(l, res));
    else if (res->err != CLAVE_ENONODE)
        slot_list_note(l, res->err);
    slot_list_answered(l);
}

clave_err clave_async_slots_list(clave_async_client *c, const char *path,
                                 clave_async_slots_list_cb *cb, void *arg)
{
    const struct clave_mem *mem = clave__client_mem(c);
    struct slot_list *l = clave__mem_zalloc(mem, sizeof *l);
    if (!l)
        return CLAVE_ENOMEM;
    *l = (struct slot_list){
        .client = c, .mem = mem, .limit = CLAVE_SLOTS_LIMIT_NONE, .cb = cb, .arg = arg};
    clave_err err = cb ? slots_paths_init(&l->paths, c, path) : CLAVE_EINVAL;
    if (err == CLAVE_OK)
        err = clave_async_sync(c, l->paths.owners, slot_list_on_sync, l);
    if (err != CLAVE_OK) {
        slot_list_free(l);
        return err;
    }
    l->pending = 1;
    slot_list_submitted(l, clave_async_get(c, l->paths.limit, NULL, slot_list_on_limit, l));
    slot_list_submitted(l, clave_async_get(c, l->paths.broken, NULL, slot_list_on_broken, l));
    slot_list_submitted(l, clave_async_children(c, l->paths.owners, NULL, slot_list_on_owners, l));
    return CLAVE_OK;
}
