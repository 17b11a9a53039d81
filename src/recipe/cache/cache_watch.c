/* cache_watch.c - where a cache learns of changes: one persistent watch, or, on servers before 3.6,
 * a data watch and a child watch for each node, which the reads of cache_read.c arm again after
 * each event. Called by cache.c and cache_read.c. */
#include "recipe/cache/cache_internal.h"

#include <assert.h>
#include <string.h>

struct cache_watches {
    clave_async_cache *cache;
    struct cache_children *dir; /* of the node */
    clave_async_watch *data, *children;
};

/* ---- a watch for each node ------------------------------------------------------------------- */

static void cache_watches_free(struct cache_watches *w)
{
    clave_async_watch_free(w->data);
    clave_async_watch_free(w->children);
    clave__mem_free(&w->cache->mem, w);
}

static void cache_watch_on_data_event(clave_async_client *c, clave_async_watch *watch,
                                      const clave_event *ev, void *arg)
{
    struct cache_watches *w = arg;
    clave_async_cache *cache = w->cache;
    struct cache_node *n = w->dir->owner;
    /* Of the root, to leave a watch for its creation; and when what is under way was asked for
     * while this watch was armed, so that its answer leaves none. */
    bool is_read_again = !n->parent || (n->phase == CACHE_NODE_ASKED && !n->asked_list);
    (void)c;
    (void)watch;
    clave__cache_enter(cache);
    if (ev->type == CLAVE_EVENT_DELETED && n->present)
        clave__cache_delete(cache, n);
    if (ev->type != CLAVE_EVENT_DELETED)
        clave__cache_want(cache, n, CACHE_WANT_DATA);
    else if (is_read_again)
        clave__cache_want(cache, n, CACHE_WANT_STAT);
    clave__cache_leave(cache);
}

/* A deleted node is the business of its data watch. */
static void cache_watch_on_children_event(clave_async_client *c, clave_async_watch *watch,
                                          const clave_event *ev, void *arg)
{
    struct cache_watches *w = arg;
    clave_async_cache *cache = w->cache;
    (void)c;
    (void)watch;
    if (ev->type == CLAVE_EVENT_DELETED)
        return;
    clave__cache_enter(cache);
    clave__cache_want(cache, w->dir->owner, CACHE_WANT_LIST);
    clave__cache_leave(cache);
}

static clave_err cache_watches_make(clave_async_cache *cache, struct cache_node *n)
{
    clave_err err = clave__cache_tree_make_dir(&cache->tree, n);
    if (err != CLAVE_OK || n->dir->watches)
        return err;
    struct cache_watches *w = clave__mem_zalloc(&cache->mem, sizeof *w);
    if (!w)
        return CLAVE_ENOMEM;
    w->cache = cache;
    w->dir = n->dir;
    err = clave_async_watch_new(&w->data, cache->client, cache_watch_on_data_event, w);
    if (err == CLAVE_OK)
        err = clave_async_watch_new(&w->children, cache->client, cache_watch_on_children_event, w);
    if (err == CLAVE_OK)
        n->dir->watches = w;
    else
        cache_watches_free(w);
    return err;
}

clave_err clave__cache_watch_of(clave_async_cache *cache, struct cache_node *n, bool children,
                                clave_async_watch **out)
{
    clave_err err = cache_watches_make(cache, n);
    if (err != CLAVE_OK)
        return err;
    clave_async_watch *w = children ? n->dir->watches->children : n->dir->watches->data;
    *out = clave_async_watch_is_armed(w) ? NULL : w;
    return CLAVE_OK;
}

void clave__cache_drop_child_watch(const clave_async_cache *cache, struct cache_node *n)
{
    if (cache->watches_each || !n->dir || !n->dir->watches)
        return;
    cache_watches_free(n->dir->watches);
    n->dir->watches = NULL;
}

bool clave__cache_watches_children(const clave_async_cache *cache, const struct cache_node *n)
{
    (void)cache;
    return n->listed && n->dir && n->dir->watches &&
           clave_async_watch_is_armed(n->dir->watches->children);
}

/* The client registers these watches again by itself, and the server sends the events that were
 * missed; what comes after them is told by the answer to a sync. */
static void cache_on_state(struct listener *l, clave_state state, clave_err why)
{
    clave_async_cache *cache = LIST_ENTRY(l, struct clave_async_cache, listener);
    (void)why;
    clave__cache_enter(cache);
    switch (state) {
    case CLAVE_STATE_CONNECTED:
    case CLAVE_STATE_RECONNECTED:
    case CLAVE_STATE_READ_ONLY:
        cache->up = cache->phase != CACHE_ENDED;
        if (cache->up && cache->must_resync && !cache->pause.armed)
            clave__cache_resync(cache);
        else if (cache->up && cache->phase != CACHE_LOADING)
            clave__cache_sync(cache);
        break;
    case CLAVE_STATE_CLOSED:
        clave__cache_end(cache, CLAVE_ECLOSED);
        break;
    case CLAVE_STATE_LATENT:
    case CLAVE_STATE_SUSPENDED:
    case CLAVE_STATE_LOST:
        clave__cache_suspend(cache);
        break;
    }
    clave__cache_leave(cache);
}

/* What is known already is read once more, to leave a watch. */
static void cache_watch_each(clave_async_cache *cache)
{
    assert(!cache->watches_each);
    cache->watches_each = true;
    cache->batch = 1; /* a multiRead leaves no watches */
    clave__client_listen(cache->client, &cache->listener);
    clave__cache_resync(cache);
    cache->up = clave_async_client_is_connected(cache->client);
}

/* ---- one persistent watch -------------------------------------------------------------------- */

static void cache_watcher_ended(clave_async_cache *cache, clave_err err)
{
    assert(cache->watcher);
    clave_async_persistent_watcher_free(cache->watcher);
    cache->watcher = NULL;
    if (err == CLAVE_EUNIMPLEMENTED)
        cache_watch_each(cache);
    else
        clave__cache_end(cache, err);
}

static void cache_on_watcher(clave_async_persistent_watcher *w,
                             const clave_persistent_watcher_event *ev, void *arg)
{
    clave_async_cache *cache = arg;
    (void)w;
    clave__cache_enter(cache);
    switch (ev->type) {
    case CLAVE_PERSISTENT_WATCHER_ARMED:
        clave__cache_resync(cache);
        break;
    case CLAVE_PERSISTENT_WATCHER_SUSPENDED:
        clave__cache_suspend(cache);
        break;
    case CLAVE_PERSISTENT_WATCHER_CREATED:
        clave__cache_created(cache, ev->path);
        break;
    case CLAVE_PERSISTENT_WATCHER_CHANGED:
        clave__cache_changed(cache, ev->path);
        break;
    case CLAVE_PERSISTENT_WATCHER_DELETED:
        clave__cache_deleted(cache, ev->path);
        break;
    case CLAVE_PERSISTENT_WATCHER_CHILDREN:
        break; /* of a single node: its children are not followed */
    case CLAVE_PERSISTENT_WATCHER_ENDED:
        cache_watcher_ended(cache, ev->err);
        break;
    }
    clave__cache_leave(cache);
}

clave_err clave__cache_watch(clave_async_cache *cache, const char *path)
{
    clave_persistent_watcher_options o = CLAVE_PERSISTENT_WATCHER_OPTIONS_INIT;
    o.single_node = cache->o.single_node;
    cache->tree.free_watches = cache_watches_free;
    list_init(&cache->listener.link);
    cache->listener.on_state = cache_on_state;
    if (!cache->o.without_persistent_watch)
        return clave_async_persistent_watcher_new(&cache->watcher, cache->client, path, &o,
                                                  cache_on_watcher, cache);
    cache_watch_each(cache);
    clave__cache_pump(cache); /* only asks: there is something to be asked for */
    return CLAVE_OK;
}

void clave__cache_unwatch(clave_async_cache *cache)
{
    clave__client_unlisten(&cache->listener);
    clave_async_persistent_watcher_free(cache->watcher);
    cache->watcher = NULL;
}
