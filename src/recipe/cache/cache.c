/* cache.c - a cache of a tree: clave/async/cache.h. This file has its creation and end, its events,
 * and the queries; what it reads is in cache_read.c, and how it notices changes in cache_watch.c.
 *
 * What must stay true: the nodes live until the outermost call into the cache ends, even if the
 * user frees the cache inside that call. */
#include "clave/async/cache.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "recipe/cache/cache_internal.h"

/* BATCH reads go into a multiRead, so that its answer fits into four frames of 1 MiB, which the
 * client accepts, unless their data averages more than 256 KiB. */
enum { WINDOW = 256, WINDOW_MAX = 65536, BATCH = 16 };

/* ---- telling the user ------------------------------------------------------------------------ */

/* Between _enter and _leave the user may free the cache, after which nothing is reported any
 * more. */

static clave_cache_node cache_view(const char *path, const struct cache_value *v)
{
    return (clave_cache_node){.path = path,
                              .stat = v->stat,
                              .data = v->data,
                              .len = v->len,
                              .has_data = v->has_data,
                              .unreadable = v->unreadable};
}

void clave__cache_tell(clave_async_cache *cache, clave_cache_event_type type, clave_err err)
{
    assert(cache->refs > 0);
    if (cache->freed || !cache->cb)
        return;
    clave_cache_event ev = {.type = type, .zxid = cache->zxid, .err = err};
    ev.path = clave__cache_tree_path(cache->tree.root, cache->tree.path.data);
    cache->cb(cache, &ev, cache->arg);
}

void clave__cache_tell_node(clave_async_cache *cache, clave_cache_event_type type,
                            const struct cache_node *node, const struct cache_value *now,
                            const struct cache_value *was)
{
    assert(cache->refs > 0 && (now || was));
    if (cache->freed || !cache->cb)
        return;
    clave_cache_event ev = {.type = type};
    clave_cache_node seen_now, seen_was;
    ev.path = clave__cache_tree_path(node, cache->tree.path.data);
    if (now) {
        seen_now = cache_view(ev.path, now);
        ev.now = &seen_now;
    }
    if (was) {
        seen_was = cache_view(ev.path, was);
        ev.was = &seen_was;
    }
    cache->cb(cache, &ev, cache->arg);
}

/* ---- creating and freeing -------------------------------------------------------------------- */

void clave__cache_enter(clave_async_cache *cache)
{
    cache->refs++;
}

static void cache_drop(clave_async_cache *cache)
{
    assert(cache->refs > 0);
    if (--cache->refs > 0)
        return;
    clave_async_client *c = cache->client;
    struct clave_mem mem = cache->mem;
    clave__cache_tree_fini(&cache->tree);
    clave__mem_free(&mem, cache->queue.at);
    clave__mem_free(&mem, cache->requests);
    clave__mem_free(&mem, cache);
    clave__client_unref(c);
}

void clave__cache_leave(clave_async_cache *cache)
{
    clave__cache_pump(cache);
    cache_drop(cache);
}

void clave__cache_end(clave_async_cache *cache, clave_err err)
{
    if (cache->phase == CACHE_ENDED)
        return;
    cache->phase = CACHE_ENDED;
    cache->up = false;
    clave__client_timer_clear(cache->client, &cache->pause);
    clave__cache_poll_end(cache);
    clave__cache_tell(cache, CLAVE_CACHE_ENDED, err);
}

void clave_async_cache_free(clave_async_cache *cache)
{
    if (!cache)
        return;
    cache->freed = true;
    cache->up = false;
    clave__client_timer_clear(cache->client, &cache->pause);
    clave__cache_poll_end(cache);
    clave__cache_unwatch(cache);
    cache_drop(cache);
}

static void cache_on_pause(struct timer *t, int64_t now)
{
    clave_async_cache *cache = LIST_ENTRY(t, struct clave_async_cache, pause);
    (void)now;
    clave__cache_enter(cache);
    if (cache->must_resync && cache->up)
        clave__cache_resync(cache);
    clave__cache_leave(cache);
}

/* A multiRead is used only for reading data. */
static size_t cache_batch(const clave_cache_options *o)
{
    size_t quarter = o->window / 4;
    if (o->without_data || quarter == 0)
        return 1;
    return quarter < BATCH ? quarter : BATCH;
}

static clave_err cache_make_requests(clave_async_cache *cache)
{
    size_t n = cache->o.window;
    cache->requests = clave__mem_zalloc(&cache->mem, n * sizeof *cache->requests);
    if (!cache->requests)
        return CLAVE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        cache->requests[i].cache = cache;
        cache->requests[i].next = cache->free_requests;
        cache->free_requests = &cache->requests[i];
    }
    cache->nfree = n;
    cache->batch = cache_batch(&cache->o);
    return CLAVE_OK;
}

static clave_err cache_begin(clave_async_cache *cache, const char *path)
{
    clave_err err = clave__cache_tree_init(&cache->tree, &cache->mem,
                                           clave__client_hash_seed(cache->client), path);
    if (err == CLAVE_OK)
        err = cache_make_requests(cache);
    if (err != CLAVE_OK)
        return err;
    cache->tree.root->followed = !cache->o.single_node;
    return clave__cache_watch(cache, path);
}

static clave_err cache_check(clave_async_client *c, const char *path, const clave_cache_options *o)
{
    const char *fault = path ? clave__path_fault(path, strlen(path), false) : "is missing";
    if (fault) {
        clave__client_fault(c, "the cache's path \"%s\" is not valid: %s", path ? path : "", fault);
        return CLAVE_EPATH;
    }
    if (o->window > WINDOW_MAX) {
        clave__client_fault(c, "the window of a cache is at most %d requests", (int)WINDOW_MAX);
        return CLAVE_EINVAL;
    }
    return clave_async_client_state(c) == CLAVE_STATE_CLOSED ? CLAVE_ECLOSED : CLAVE_OK;
}

clave_err clave_async_cache_new(clave_async_cache **out, clave_async_client *c, const char *path,
                                const clave_cache_options *o, clave_async_cache_cb *cb, void *arg)
{
    clave_cache_options options;
    *out = NULL;
    clave_err err =
        clave__client_take_options(c, &options, sizeof options, o, "clave_cache_options");
    if (err == CLAVE_OK)
        err = cache_check(c, path, &options);
    if (err != CLAVE_OK)
        return err;
    if (options.window == 0)
        options.window = WINDOW;
    struct clave_mem mem = options.mem ? *options.mem : *clave__client_mem(c);
    clave_async_cache *cache = clave__mem_zalloc(&mem, sizeof *cache);
    if (!cache)
        return CLAVE_ENOMEM;
    cache->client = c;
    cache->mem = mem;
    cache->cb = cb;
    cache->arg = arg;
    cache->o = options;
    cache->refs = 1;
    cache->as_of = cache->since = INT64_MIN;
    list_init(&cache->listener.link);
    clave__timer_init(&cache->pause, cache_on_pause);
    clave__cache_poll_init(cache);
    clave__client_ref(c);
    err = cache_begin(cache, path);
    if (err != CLAVE_OK) {
        clave_async_cache_free(cache);
        return err;
    }
    *out = cache;
    return CLAVE_OK;
}

/* ---- queries --------------------------------------------------------------------------------- */

static struct cache_node *cache_find(const clave_async_cache *cache, const char *path)
{
    struct cache_node *n = clave__cache_tree_find(&cache->tree, path, strlen(path));
    return n && n->present ? n : NULL;
}

clave_err clave_async_cache_get(const clave_async_cache *cache, const char *path,
                                clave_cache_node *out)
{
    const struct cache_node *n = cache_find(cache, path);
    if (!n)
        return CLAVE_ENONODE;
    struct cache_value v = clave__cache_tree_value(n);
    *out = cache_view(path, &v);
    return CLAVE_OK;
}

/* A visit may start another walk, so each walk has its own room for paths. */
struct cache_walk {
    const clave_async_cache *cache;
    uint8_t *path;
    clave_cache_visit_cb *visit;
    void *arg;
};

static clave_err cache_walk_begin(struct cache_walk *w, const clave_async_cache *cache)
{
    w->cache = cache;
    w->path = clave__mem_alloc(&cache->mem, cache->tree.path.cap);
    return w->path ? CLAVE_OK : CLAVE_ENOMEM;
}

static bool cache_walk_visit(const struct cache_walk *w, const struct cache_node *n)
{
    struct cache_value v = clave__cache_tree_value(n);
    clave_cache_node seen = cache_view(clave__cache_tree_path(n, w->path), &v);
    return w->visit(&seen, w->arg);
}

clave_err clave_async_cache_children(const clave_async_cache *cache, const char *path,
                                     clave_cache_visit_cb *visit, void *arg)
{
    struct cache_walk w = {.visit = visit, .arg = arg};
    const struct cache_node *n = cache_find(cache, path);
    if (!n || n->unreadable)
        return n ? CLAVE_ENOAUTH : CLAVE_ENONODE;
    clave_err err = cache_walk_begin(&w, cache);
    bool more = err == CLAVE_OK && n->dir;
    for (uint32_t i = 0; more && i < n->dir->nslots; i++) {
        const struct cache_node *child = n->dir->slots[i];
        if (child && child->present)
            more = cache_walk_visit(&w, child);
    }
    clave__mem_free(&cache->mem, w.path);
    return err;
}

clave_err clave_async_cache_walk(const clave_async_cache *cache, const char *path,
                                 clave_cache_visit_cb *visit, void *arg)
{
    struct cache_walk w = {.visit = visit, .arg = arg};
    const struct cache_node *top = cache_find(cache, path), *n = top;
    if (!top)
        return CLAVE_ENONODE;
    clave_err err = cache_walk_begin(&w, cache);
    while (err == CLAVE_OK && n && cache_walk_visit(&w, n))
        n = clave__cache_tree_down(&cache->tree, top, n);
    clave__mem_free(&cache->mem, w.path);
    return err;
}

void clave__cache_cut(clave_async_cache *cache, clave_cache_cuts_cb *cuts)
{
    cache->cuts = cuts;
}

int64_t clave__cache_answered_zxid(const clave_async_cache *cache)
{
    return cache->answer_zxid;
}

/* Changes made while the connection is down, or dropped for lack of memory, are found by comparing
 * the whole tree, so until then a change of any path is awaited. */
bool clave__cache_awaits(const clave_async_cache *cache, const char *path)
{
    size_t top = cache->tree.root->name_len, len = strlen(path);
    if (!cache->up || cache->must_resync)
        return true;
    for (;; len = clave__path_parent_len(path, len)) {
        const struct cache_node *n = clave__cache_tree_find(&cache->tree, path, len);
        if ((n && n->phase != CACHE_NODE_IDLE) || len <= top)
            return n && n->phase != CACHE_NODE_IDLE;
    }
}

clave_cache_status clave_async_cache_status_of(const clave_async_cache *cache)
{
    return (clave_cache_status){.count = cache->tree.count,
                                .bytes = cache->tree.bytes,
                                .zxid = cache->zxid,
                                .current = cache->phase == CACHE_CURRENT,
                                .complete = !cache->full};
}
