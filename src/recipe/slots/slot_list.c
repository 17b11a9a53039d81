/* slot_list.c - the list of the owners of slots: the names, then what each node says. The public
 * API's file. A slot that goes while it is read is left out. */
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "recipe/semaphore/shared_count.h"
#include "recipe/slots/slot_data.h"
#include "recipe/slots/slots_internal.h"

struct slot_list {
    clave_async_client *client;
    const struct clave_mem *mem;
    struct slots_paths paths;
    unsigned pending; /* answers of the step under way */
    clave_err err;    /* the first */
    int64_t limit;
    struct slot_copy *broken;
    char **nodes; /* the paths of the nodes */
    struct slot_copy **copies;
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

/* ---- the answer ------------------------------------------------------------------------------ */

static void slot_list_free(struct slot_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        clave__mem_free(l->mem, l->nodes ? l->nodes[i] : NULL);
        clave__mem_free(l->mem, l->copies ? l->copies[i] : NULL);
    }
    clave__mem_free(l->mem, l->nodes);
    clave__mem_free(l->mem, l->copies);
    clave__mem_free(l->mem, l->broken);
    clave__slots_paths_fini(&l->paths, l->mem);
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
        if (l->copies[i])
            slots[view.n++] = l->copies[i]->slot;
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

/* ---- what each slot says --------------------------------------------------------------------- */

struct slot_list_read {
    struct slot_list *list;
    size_t at;
};

static void slot_list_on_slot(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_list_read *r = arg;
    struct slot_list *l = r->list;
    if (res->err == CLAVE_OK) {
        l->copies[r->at] = clave__slot_data_parse(l->mem, res, false);
        slot_list_note(l, l->copies[r->at] ? CLAVE_OK : CLAVE_ENOMEM);
    } else if (res->err != CLAVE_ENONODE) {
        slot_list_note(l, res->err);
    }
    clave__mem_free(l->mem, r);
    if (--l->pending == 0)
        slot_list_finish(l);
}

static clave_err slot_list_read_one(struct slot_list *l, size_t at)
{
    struct slot_list_read *r = clave__mem_alloc(l->mem, sizeof *r);
    if (!r)
        return CLAVE_ENOMEM;
    *r = (struct slot_list_read){l, at};
    clave_err err = clave_async_get(l->client, l->nodes[at], NULL, slot_list_on_slot, r);
    if (err != CLAVE_OK)
        clave__mem_free(l->mem, r);
    return err;
}

static void slot_list_read_all(struct slot_list *l)
{
    for (size_t i = 0; i < l->n && l->err == CLAVE_OK; i++)
        slot_list_submitted(l, slot_list_read_one(l, i));
    if (l->pending == 0)
        slot_list_finish(l);
}

/* ---- the names, the limit, the record -------------------------------------------------------- */

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
    if (res->err == CLAVE_OK)
        l->limit = clave__shared_count_decode(res->data, res->len);
    else if (res->err != CLAVE_ENONODE)
        slot_list_note(l, res->err);
    slot_list_answered(l);
}

static void slot_list_on_broken(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct slot_list *l = arg;
    if (res->err == CLAVE_OK && res->len > 0) {
        l->broken = clave__slot_data_parse(l->mem, res, true);
        slot_list_note(l, l->broken ? CLAVE_OK : CLAVE_ENOMEM);
    } else if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE) {
        slot_list_note(l, res->err);
    }
    slot_list_answered(l);
}

static clave_err slot_list_take_names(struct slot_list *l, const clave_result *res)
{
    l->nodes = clave__mem_zalloc(l->mem, (res->nnames + 1) * sizeof *l->nodes);
    l->copies = clave__mem_zalloc(l->mem, (res->nnames + 1) * sizeof(struct slot_copy *));
    if (!l->nodes || !l->copies)
        return CLAVE_ENOMEM;
    for (; l->n < res->nnames; l->n++) {
        l->nodes[l->n] = clave__path_child(l->mem, l->paths.owners, res->names[l->n]);
        if (!l->nodes[l->n])
            return CLAVE_ENOMEM;
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
    *l = (struct slot_list){.client = c, .mem = mem, .limit = -1, .cb = cb, .arg = arg};
    clave_err err = cb ? clave__slots_paths_init(&l->paths, c, path) : CLAVE_EINVAL;
    if (err == CLAVE_OK) {
        err = clave_async_sync(c, l->paths.owners, slot_list_on_sync, l);
    }
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
