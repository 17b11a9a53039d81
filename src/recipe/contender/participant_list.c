/* participant_list.c - lists who is in a queue: one listing, then every node's data in one flight.
 * Called by rwlock, semaphore and leader_watch. Invariant: the callback runs once, later. */
#include <stdint.h>
#include <string.h>

#include "client/client_internal.h"
#include "recipe/contender/identity.h"
#include "recipe/contender/node_watch.h"
#include "recipe/contender/participant_list.h"
#include "recipe/contender/priority_tag.h"

struct member {
    struct roll *roll;
    char *node;
    char *data; /* a copy, NUL behind it */
    size_t len;
    clave_stat stat;
    bool listed; /* still there */
};

struct roll {
    clave_async_client *client;
    const struct clave_mem *mem;
    char *path;
    const struct queue_order_rule *rule;
    bool own_kind;
    clave_async_participants_cb *cb;
    void *arg;
    struct member *members; /* in queue order */
    size_t n;
    size_t pending; /* getData under way */
    clave_err err;  /* the first that counts */
};

static void free_roll(struct roll *r)
{
    for (size_t i = 0; i < r->n; i++) {
        clave__mem_free(r->mem, r->members[i].node);
        clave__mem_free(r->mem, r->members[i].data);
    }
    clave__mem_free(r->mem, r->members);
    clave__mem_free(r->mem, r->path);
    clave__mem_free(r->mem, r);
}

static void recipe_participants_report(struct roll *r)
{
    clave_participant *list = NULL;
    size_t n = 0;
    if (r->err == CLAVE_OK && r->n > 0) {
        list = clave__mem_zalloc(r->mem, r->n * sizeof *list);
        if (!list)
            r->err = CLAVE_ENOMEM;
    }
    for (size_t i = 0; list && i < r->n; i++) {
        struct member *m = &r->members[i];
        if (!m->listed)
            continue;
        list[n].node = m->node;
        list[n].stat = m->stat;
        list[n].priority = clave__priority_of(m->node);
        if (m->data)
            clave__identity_parse(m->data, m->len, &list[n].identity);
        n++;
    }
    r->cb(r->client, r->err, list, n, r->arg);
    clave__mem_free(r->mem, list);
    free_roll(r);
}

static void recipe_participants_fault(struct roll *r, clave_err err)
{
    if (r->err == CLAVE_OK)
        r->err = err;
}

static void recipe_participants_on_data(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct member *m = arg;
    struct roll *r = m->roll;
    /* Not ours to read, but it stands in the queue all the same. */
    m->listed = res->err == CLAVE_OK || res->err == CLAVE_ENOAUTH;
    if (res->err == CLAVE_OK) {
        m->len = res->len;
        m->stat = *res->stat;
        m->data = clave__mem_strndup(r->mem, res->len ? res->data : "", res->len);
        if (!m->data)
            recipe_participants_fault(r, CLAVE_ENOMEM);
    } else if (!m->listed && res->err != CLAVE_ENONODE) {
        recipe_participants_fault(r, res->err);
    }
    if (--r->pending == 0)
        recipe_participants_report(r);
}

/* Other children take no part. Where nobody queues in our way, they are all there is: the nodes of
 * a program written by hand, perhaps. */
static bool stands(const struct roll *r, const char *name, const char *first)
{
    if (r->own_kind)
        return clave__queue_order_is_kind(r->rule, name);
    return clave__queue_order_key(r->rule, name).contender ||
           !clave__queue_order_key(r->rule, first).contender;
}

static clave_err recipe_participants_copy_names(struct roll *r, const clave_result *res)
{
    size_t n = res->nnames;
    size_t *order = clave__mem_alloc(r->mem, n * sizeof *order);
    r->members = clave__mem_zalloc(r->mem, n * sizeof *r->members);
    clave_err err = order && r->members ? CLAVE_OK : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        err = clave__queue_order_sort(r->rule, r->mem, res->names, n, order);
    for (size_t i = 0; err == CLAVE_OK && i < n; i++) {
        const char *name = res->names[order[i]];
        if (!stands(r, name, res->names[order[0]]))
            continue;
        struct member *m = &r->members[r->n++];
        m->roll = r;
        m->node = clave__mem_strdup(r->mem, name);
        if (!m->node)
            err = CLAVE_ENOMEM;
    }
    clave__mem_free(r->mem, order);
    return err;
}

static clave_err recipe_participants_ask(struct roll *r, struct member *m)
{
    size_t ndir = strlen(r->path) == 1 ? 0 : strlen(r->path);
    size_t nname = strlen(m->node) + 1;
    char *path = clave__mem_alloc(r->mem, ndir + 1 + nname);
    if (!path)
        return CLAVE_ENOMEM;
    memcpy(path, r->path, ndir);
    path[ndir] = '/';
    memcpy(path + ndir + 1, m->node, nname);
    clave_err err = clave_async_get(r->client, path, NULL, recipe_participants_on_data, m);
    clave__mem_free(r->mem, path);
    return err;
}

static void recipe_participants_on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    struct roll *r = arg;
    if (res->err != CLAVE_OK && res->err != CLAVE_ENONODE)
        recipe_participants_fault(r, res->err);
    else if (res->err == CLAVE_OK && res->nnames > 0)
        r->err = recipe_participants_copy_names(r, res);
    for (size_t i = 0; r->err == CLAVE_OK && i < r->n; i++) {
        r->err = recipe_participants_ask(r, &r->members[i]);
        if (r->err == CLAVE_OK)
            r->pending++;
    }
    if (r->pending == 0)
        recipe_participants_report(r);
}

clave_err clave__roll_call(clave_async_client *c, const char *path,
                           const struct queue_order_rule *rule, bool own_kind,
                           clave_async_participants_cb *cb, void *arg)
{
    const struct clave_mem *mem = clave__client_mem(c);
    struct roll *r = clave__mem_zalloc(mem, sizeof *r);
    if (!r)
        return CLAVE_ENOMEM;
    *r = (struct roll){.client = c, .mem = mem, .cb = cb, .arg = arg};
    r->rule = rule;
    r->own_kind = own_kind;
    r->path = clave__mem_strdup(mem, path);
    clave_err err = r->path ? clave_async_children(c, path, NULL, recipe_participants_on_names, r)
                            : CLAVE_ENOMEM;
    if (err != CLAVE_OK)
        free_roll(r);
    return err;
}

clave_err clave_async_participants(clave_async_client *c, const char *path,
                                   clave_async_participants_cb *cb, void *arg)
{
    return clave__roll_call(c, path, &clave__queue_order_mutex, false, cb, arg);
}
