/* cache.c - clave_cache: clave_async_cache for threads. The copy of the tree belongs to the loop's
 * thread, so each query visits it there and brings back a copy of the answer. Only what
 * clave_cache_wait waits for is published under the loop's mutex. */
#include "clave/cache.h"

#include <assert.h>
#include <stdlib.h>

#include "base/path.h"
#include "runtime/blocking/arena.h"
#include "runtime/blocking/call.h"

struct clave_cache {
    struct child child;
    clave_async_cache *cache; /* used by the loop's thread only; NULL: it has ended */
    clave_async_cache_cb *cb; /* the user's */
    void *arg;
    bool current;  /* under the loop's mutex, as is everything below */
    clave_err err; /* why the cache has ended; CLAVE_OK: it has not */
    struct cell changed;
};

/* ---- publishing, on the loop's thread -------------------------------------------------------- */

static void cache_publish(clave_cache *c, bool current, clave_err err)
{
    assert(clave__loop_is_current(c->child.client->loop));
    clave__loop_lock(c->child.client->loop);
    c->current = current;
    if (c->err == CLAVE_OK)
        c->err = err;
    clave__cell_wake(&c->changed);
    clave__loop_unlock(c->child.client->loop);
}

static void cache_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    clave_cache *c = arg;
    if (!ev->now && !ev->was) /* an event of the cache, not of a node */
        cache_publish(c, clave_async_cache_status_of(cache).current, ev->err);
    if (c->cb)
        c->cb(cache, ev, c->arg); /* this may free the cache */
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static clave_err cache_make(clave_async_client *client, const struct args *a)
{
    clave_cache *c = a->of;
    return clave_async_cache_new(&c->cache, client, a->path, a->options, cache_on_event, c);
}

static void cache_on_ended(struct child *child)
{
    clave_cache *c = LIST_ENTRY(child, clave_cache, child);
    clave_async_cache_free(c->cache);
    c->cache = NULL;
    cache_publish(c, false, CLAVE_ECLOSED);
}

static void cache_destroy(clave_cache *c)
{
    clave__cell_fini(&c->changed);
    free(c);
}

clave_err clave_cache_new(clave_cache **out, clave_client *client, const char *path,
                          const clave_cache_options *o, clave_async_cache_cb *cb, void *arg)
{
    static const struct child_kind kind = {.ended = cache_on_ended};
    clave_cache_options own;
    *out = NULL;
    clave_err err =
        clave__blocking_take_options(client, &own, sizeof own, o, "clave_cache_options");
    if (err != CLAVE_OK)
        return err;
    clave_cache *c = calloc(1, sizeof *c);
    if (!c)
        return CLAVE_ENOMEM;
    c->cb = cb;
    c->arg = arg;
    clave__cell_init(&c->changed);
    err = clave__child_open(&c->child, client, &kind, cache_make,
                            &(struct args){.of = c, .path = path, .options = &own});
    if (err == CLAVE_OK)
        *out = c;
    else
        cache_destroy(c);
    return err;
}

void clave_cache_free(clave_cache *c)
{
    if (c && clave__child_close(&c->child))
        cache_destroy(c);
}

/* Call it with the mutex held. */
static clave_err cache_await(clave_cache *c, int64_t deadline)
{
    while (!c->current && c->err == CLAVE_OK)
        if (!clave__cell_wait(&c->changed, c->child.client->loop, deadline))
            return c->child.client->was_connected ? CLAVE_ETIMEDOUT : CLAVE_EUNREACHABLE;
    return c->err;
}

clave_err clave_cache_wait(clave_cache *c, int64_t timeout_ms)
{
    int64_t deadline = clave__deadline_after(timeout_ms);
    clave_err err = clave__wait_enter(c->child.client);
    if (err != CLAVE_OK)
        return err;
    err = cache_await(c, deadline);
    clave__wait_leave(c->child.client);
    return err;
}

/* ---- copies of nodes ------------------------------------------------------------------------- */

struct reading {
    clave_reply *reply;
    struct arena names; /* of children: measured first, then copied */
};

/* `fn` fills the reply in the struct reading to which a->data points. */
static clave_err cache_read(clave_cache *c, loop_visit *fn, const char *path, clave_reply **out)
{
    struct reading r = {.reply = clave__reply_new(0, 0)};
    *out = NULL;
    if (!r.reply)
        return CLAVE_ENOMEM;
    clave_err err =
        clave__visit(c->child.client, fn, &(struct args){.of = c, .path = path, .data = &r});
    if (err == CLAVE_OK)
        *out = r.reply;
    else
        clave_reply_free(r.reply);
    return err;
}

static clave_err cache_get(clave_async_client *client, const struct args *a)
{
    const clave_cache *c = a->of;
    const struct reading *r = a->data;
    clave_cache_node node;
    (void)client;
    clave_err err = clave_async_cache_get(c->cache, a->path, &node);
    if (err != CLAVE_OK)
        return err;
    if (node.unreadable)
        return CLAVE_ENOAUTH;
    const clave_result res = {.stat = &node.stat, .data = node.data, .len = node.len};
    return clave__reply_fill(r->reply, 0, &res);
}

clave_err clave_cache_get(clave_cache *c, const char *path, clave_reply **out)
{
    return cache_read(c, cache_get, path, out);
}

static bool cache_measure_name(const clave_cache_node *node, void *arg)
{
    struct reading *r = arg;
    arena_text(&r->names, clave__path_name(node->path));
    r->reply->nnames++;
    return true;
}

static bool cache_copy_name(const clave_cache_node *node, void *arg)
{
    struct reading *r = arg;
    char *name = r->names.at + r->names.n;
    arena_text(&r->names, clave__path_name(node->path));
    r->reply->names[r->reply->nnames++] = name;
    return true;
}

static clave_err cache_list(clave_async_client *client, const struct args *a)
{
    const clave_cache *c = a->of;
    struct reading r = *(const struct reading *)a->data;
    clave_reply *reply = r.reply;
    clave_cache_node node;
    (void)client;
    clave_err err = clave_async_cache_get(c->cache, a->path, &node);
    if (err == CLAVE_OK)
        err = clave_async_cache_children(c->cache, a->path, cache_measure_name, &r);
    if (err != CLAVE_OK)
        return err;
    reply->has_stat = true;
    reply->stat = node.stat;
    if (reply->nnames == 0)
        return CLAVE_OK;
    reply->names = malloc(reply->nnames * sizeof *reply->names + r.names.n);
    if (!reply->names)
        return CLAVE_ENOMEM;
    r.names = (struct arena){.at = (char *)(reply->names + reply->nnames)};
    reply->nnames = 0;
    return clave_async_cache_children(c->cache, a->path, cache_copy_name, &r);
}

clave_err clave_cache_children(clave_cache *c, const char *path, clave_reply **out)
{
    return cache_read(c, cache_list, path, out);
}

struct walk {
    clave_cache_visit_cb *visit;
    void *arg;
};

static clave_err cache_walk(clave_async_client *client, const struct args *a)
{
    const clave_cache *c = a->of;
    const struct walk *w = a->data;
    (void)client;
    return clave_async_cache_walk(c->cache, a->path, w->visit, w->arg);
}

clave_err clave_cache_walk(clave_cache *c, const char *path, clave_cache_visit_cb *visit, void *arg)
{
    const struct walk w = {visit, arg};
    struct args a = {.of = c, .path = path, .data = &w};
    return clave__visit(c->child.client, cache_walk, &a);
}

/* ---- walks and status ------------------------------------------------------------------------ */

struct survey {
    const clave_cache *c;
    clave_cache_status status;
};

static clave_err cache_survey(clave_async_client *client, const struct args *a)
{
    struct survey *v = a->of;
    (void)client;
    v->status = clave_async_cache_status_of(v->c->cache);
    return CLAVE_OK;
}

clave_cache_status clave_cache_status_of(clave_cache *c)
{
    struct survey v = {.c = c};
    (void)clave__visit(c->child.client, cache_survey, &(struct args){.of = &v});
    return v.status;
}
