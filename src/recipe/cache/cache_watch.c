/* cache_watch.c - how a cache keeps up with the tree: how it notices changes, what events mean, and
 * how old the cache can be.
 *
 * Changes are noticed through one persistent watch or, on servers before 3.6, through a data watch
 * and a child watch on each node, which the reads in cache_read.c set again after each event.
 *
 * If no node is waiting to be read, the cache equals the tree as of the newest answer. Under a
 * steady stream of changes that may never happen, so the cache counts as current as soon as no node
 * is owed, which means that everything was read that has no event. From then on, rounds bound its
 * age: each round owes whatever is waiting when it begins.
 *
 * No event tells of nodes that may not be read, or of changed access lists. So each node that can
 * have such children, or turn into another node, is compared with the server's once per refresh_ms,
 * a tenth of them at a time, or as many as MOST_A_STEP allows. A step leaves out nodes whose
 * changes all cause events, so a tree of lock nodes costs only one read per lock. It also leaves
 * out nodes that are being read or listed; otherwise, if answers take longer than a step, they
 * would never be done. */
#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "recipe/cache/cache_internal.h"

enum { STEPS = 10, MOST_A_STEP = 300 };

struct cache_watches {
    clave_async_cache *cache;
    struct cache_children *dir; /* of the node's children */
    clave_async_watch *data, *children;
};

/* ---- how old the cache can be ---------------------------------------------------------------- */

/* Events arrive before any answer to a request that was sent after the change. So if nothing is to
 * be read, the cache has every change made before the newest answered request was sent. */
static bool cache_is_idle(const clave_async_cache *cache)
{
    return cache->queue.count == 0 && cache->under_way == 0 && !cache->pause.armed;
}

int64_t clave__cache_as_of(const clave_async_cache *cache)
{
    bool equals = cache->phase == CACHE_CURRENT && cache->up && cache_is_idle(cache);
    return equals ? clave__client_contact(cache->client) : cache->as_of;
}

void clave__cache_note_as_of(clave_async_cache *cache)
{
    cache->as_of = clave__cache_as_of(cache);
}

/* Begins a round: once everything that it owes has been read, the cache has every change made
 * before now. */
static void cache_begin_round(clave_async_cache *cache)
{
    cache->since = clave__client_contact(cache->client);
    for (size_t i = 0; i < cache->queue.count; i++)
        clave__cache_owe(cache, cache->queue.at[(cache->queue.first + i) % cache->queue.cap]);
    for (size_t i = 0; i < cache->o.window; i++)
        if (cache->requests[i].node)
            clave__cache_owe(cache, cache->requests[i].node);
}

/* ---- when everything has been answered ------------------------------------------------------- */

void clave__cache_become_stale(clave_async_cache *cache)
{
    if (cache->phase != CACHE_CURRENT)
        return;
    clave__cache_note_as_of(cache);
    cache->phase = CACHE_STALE;
    clave__cache_tell(cache, CLAVE_CACHE_STALE, CLAVE_OK);
}

/* Tries to read what was left out. Nothing is missing any more once nothing is owed again. */
static bool cache_try_again(clave_async_cache *cache)
{
    struct cache_node *top = cache->tree.root;
    if (cache->owed > 0 || cache->pause.armed || !clave__cache_has_made_room(cache))
        return false;
    cache->room_made = cache->places_made = 0;
    for (struct cache_node *n = top->present ? top : NULL; n;
         n = clave__cache_tree_down(&cache->tree, top, n)) {
        unsigned wants = (n->left_out && !n->no_list ? CACHE_WANT_LIST : 0) |
                         (n->lacks_data ? CACHE_WANT_DATA : 0);
        if (!wants)
            continue;
        clave__cache_owe(cache, n);
        clave__cache_want(cache, n, wants);
    }
    return true;
}

static void cache_become_current(clave_async_cache *cache, bool equals)
{
    bool was_loading = cache->phase == CACHE_LOADING, was_current = cache->phase == CACHE_CURRENT;
    bool has_room_again = cache->full && cache->left_out == 0;
    if (equals)
        cache->zxid = cache->answer_zxid;
    cache->phase = CACHE_CURRENT;
    cache->full = cache->full && !has_room_again;
    if (was_loading)
        clave__cache_tell(cache, CLAVE_CACHE_INITIALIZED, CLAVE_OK);
    else if (!was_current || has_room_again)
        clave__cache_tell(cache, CLAVE_CACHE_RESYNCED, CLAVE_OK);
}

void clave__cache_pump(clave_async_cache *cache)
{
    if (cache->freed || !cache->up)
        return;
    while (clave__cache_ask_some(cache) || cache_try_again(cache)) {
    }
    bool is_idle = cache->queue.count == 0 && cache->under_way == 0;
    bool is_read = cache->owed == 0 && cache->syncs == 0 && !cache->pause.armed;
    if (!is_read || cache->phase == CACHE_ENDED)
        return;
    if (cache->since > cache->as_of)
        cache->as_of = cache->since;
    if (!is_idle)
        cache_begin_round(cache);
    cache_become_current(cache, is_idle);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void cache_on_synced(clave_async_client *c, const clave_result *res, void *arg)
{
    clave_async_cache *cache = arg;
    assert(cache->syncs > 0 && cache->under_way > 0);
    (void)c;
    (void)res; /* if it failed, the reads are just as good without it */
    cache->under_way--;
    cache->syncs--;
    clave__cache_leave(cache); /* matches the _enter in _sync */
}

/* Waits until the server has caught up with what this client has seen elsewhere; until then nothing
 * is current. */
static void cache_sync(clave_async_cache *cache)
{
    const char *path = clave__cache_tree_path(cache->tree.root, cache->tree.path.data);
    if (clave_async_sync(cache->client, path, cache_on_synced, cache) != CLAVE_OK) {
        clave__cache_missed(cache, NULL); /* a resync begins with another sync */
        return;
    }
    clave__cache_enter(cache);
    cache->since = clave__client_contact(cache->client);
    cache->under_way++;
    cache->syncs++;
}

/* Reads the node again, since it may have changed without an event, as may its children. One that
 * could not be read may have become readable. */
static void cache_compare(clave_async_cache *cache, struct cache_node *n)
{
    n->check = true;
    if (n->unreadable)
        n->denied = n->no_data = false;
    n->no_list = n->no_list && n->left_out; /* a listing that was too long stays that way */
    clave__cache_want(cache, n, n->unreadable ? CACHE_WANT_DATA : CACHE_WANT_STAT);
}

void clave__cache_resync(clave_async_cache *cache)
{
    struct cache_node *top = cache->tree.root;
    cache->must_resync = false;
    cache->up = true;
    cache->since = clave__client_contact(cache->client);
    if (cache->phase != CACHE_LOADING)
        cache_sync(cache);
    clave__cache_owe(cache, top);
    for (struct cache_node *n = top->present ? top : NULL; n;
         n = clave__cache_tree_down(&cache->tree, top, n)) {
        cache_compare(cache, n);
    }
    if (!top->present)
        clave__cache_want(cache, top, CACHE_WANT_STAT);
}

/* The connection is gone: what is waiting now is owed once events arrive again. */
static void cache_suspend(clave_async_cache *cache)
{
    const struct cache_queue *q = &cache->queue;
    for (size_t i = 0; i < q->count; i++)
        clave__cache_owe(cache, q->at[(q->first + i) % q->cap]);
    clave__cache_become_stale(cache);
    cache->up = false;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* True if the answer under way will show the change, because it comes after its event. Where each
 * node has its own watch, though, that answer does not set the watch again. */
static bool cache_is_covered(const clave_async_cache *cache, const struct cache_node *n)
{
    return n->phase == CACHE_NODE_ASKED && !n->asked_list && !cache->watches_each;
}

static void cache_changed(clave_async_cache *cache, const char *path)
{
    struct cache_node *n = clave__cache_tree_find(&cache->tree, path, strlen(path));
    if (n && n->unreadable)
        n->denied = n->no_data = false; /* otherwise there would be no event */
    if (n && !cache_is_covered(cache, n))
        clave__cache_want(cache, n, CACHE_WANT_DATA);
}

/* A node was deleted. If it is waiting to be read, that is not needed any more: should it come
 * back, there will be an event. */
static void cache_deleted(clave_async_cache *cache, const char *path)
{
    struct cache_node *n = clave__cache_tree_find(&cache->tree, path, strlen(path));
    if (!n)
        return;
    if (n->phase == CACHE_NODE_QUEUED && n->parent && !cache->watches_each)
        n->wants_read = n->wants_data = n->wants_list = false;
    if (n->present)
        clave__cache_delete(cache, n);
}

/* A node was created. Only a parent whose children are listed lacks it; any other has still to be
 * listed. */
static void cache_created(clave_async_cache *cache, const char *path)
{
    struct cache_tree *t = &cache->tree;
    size_t len = strlen(path);
    struct cache_node *n = clave__cache_tree_find(t, path, len);
    if (n) {
        cache_changed(cache, path);
        return;
    }
    const char *name = strrchr(path, '/') + 1;
    size_t above = (size_t)(name - path) > 1 ? (size_t)(name - path) - 1 : 1;
    struct cache_node *up = clave__cache_tree_find(t, path, above);
    if (!up || !up->present || !up->listed || !up->followed)
        return;
    up->moved = true;
    clave__cache_add_child(cache, up, name, len - (size_t)(name - path));
}

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
    /* Read the root again to set a watch for its creation. Read a node again if a request was sent
     * while this watch was armed, since its answer sets no watch. */
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

/* If the node was deleted, its data watch takes care of that. */
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

/* The client itself registers these watches again, and the server sends the events that were
 * missed. The answer to a sync shows that all of them have arrived. */
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
            cache_sync(cache);
        break;
    case CLAVE_STATE_CLOSED:
        clave__cache_end(cache, CLAVE_ECLOSED);
        break;
    case CLAVE_STATE_LATENT:
    case CLAVE_STATE_SUSPENDED:
    case CLAVE_STATE_LOST:
        cache_suspend(cache);
        break;
    }
    clave__cache_leave(cache);
}

/* Reads everything that is known once more, to set watches. */
static void cache_watch_each(clave_async_cache *cache)
{
    assert(!cache->watches_each);
    cache->watches_each = true;
    cache->batch = 1; /* a multiRead sets no watches */
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
        cache_suspend(cache);
        break;
    case CLAVE_PERSISTENT_WATCHER_CREATED:
        cache_created(cache, ev->path);
        break;
    case CLAVE_PERSISTENT_WATCHER_CHANGED:
        cache_changed(cache, ev->path);
        break;
    case CLAVE_PERSISTENT_WATCHER_DELETED:
        cache_deleted(cache, ev->path);
        break;
    case CLAVE_PERSISTENT_WATCHER_CHILDREN:
        break; /* this cache has a single node, whose children are not followed */
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
    clave__cache_pump(cache); /* only to send requests: there is something to be read */
    return CLAVE_OK;
}

void clave__cache_unwatch(clave_async_cache *cache)
{
    clave__client_unlisten(&cache->listener);
    clave_async_persistent_watcher_free(cache->watcher);
    cache->watcher = NULL;
}

/* ---- changes without events ------------------------------------------------------------------ */

/* False if the user has freed the cache, as may happen when it becomes stale. */
static bool poll_goes_on(const clave_async_cache *cache)
{
    return cache->o.refresh_ms && !cache->freed && cache->phase != CACHE_ENDED;
}

static void poll_set(clave_async_cache *cache)
{
    if (poll_goes_on(cache))
        clave__client_timer_set(cache->client, &cache->refresh,
                                clave__client_now(cache->client) + cache->o.refresh_ms / STEPS + 1);
}

/* The node that is next or, if it is gone, its closest ancestor. */
static struct cache_node *poll_next(const clave_async_cache *cache)
{
    const char *path = clave__buf_text(&cache->refresh_at);
    for (size_t len = strlen(path); len > 1; len = clave__path_parent_len(path, len)) {
        struct cache_node *n = clave__cache_tree_find(&cache->tree, path, len);
        if (n && n->present)
            return n;
    }
    return cache->tree.root->present ? cache->tree.root : NULL;
}

/* True if the name ends in the ten digits that the server appends; no other name there can have the
 * same number. */
static bool poll_has_number(const struct cache_node *n)
{
    const char *name = clave__cache_children_name(n);
    uint32_t digits = 0;
    while (digits < n->name_len && name[n->name_len - 1 - digits] >= '0' &&
           name[n->name_len - 1 - digits] <= '9')
        digits++;
    return digits >= 10;
}

/* False for nodes whose changes all cause events: an ephemeral node has no children, and its
 * parent's listing shows its end unless another one takes its name. Containers and nodes with a TTL
 * have a marker in place of the session. */
static bool poll_may_differ(const struct cache_node *n)
{
    int64_t owner = clave__cache_tree_stat(n).ephemeral_owner;
    return owner == 0 || owner == INT64_MIN || (uint64_t)owner >> 56 == 0xff || !poll_has_number(n);
}

static void poll_step(clave_async_cache *cache)
{
    struct cache_node *n = poll_next(cache);
    size_t asked = 0;
    for (size_t left = 1 + cache->tree.count / STEPS; n && left > 0 && asked < MOST_A_STEP;
         left--) {
        if (n->phase == CACHE_NODE_IDLE && poll_may_differ(n)) {
            cache_compare(cache, n);
            asked++;
        }
        n = clave__cache_tree_down(&cache->tree, cache->tree.root, n);
    }
    if (!poll_goes_on(cache))
        return;
    const char *path = n ? clave__cache_tree_path(n, cache->tree.path.data) : "";
    (void)clave__buf_set_text(&cache->refresh_at, path); /* without memory it stays where it was */
}

static void cache_poll_on_time(struct timer *t, int64_t now)
{
    clave_async_cache *cache = LIST_ENTRY(t, struct clave_async_cache, refresh);
    (void)now;
    clave__cache_enter(cache);
    if (cache->up && cache->phase == CACHE_CURRENT)
        poll_step(cache);
    poll_set(cache);
    clave__cache_leave(cache);
}

void clave__cache_poll_init(clave_async_cache *cache)
{
    clave__buf_init(&cache->refresh_at, &cache->mem, SIZE_MAX / 2);
    clave__timer_init(&cache->refresh, cache_poll_on_time);
    poll_set(cache);
}

void clave__cache_poll_end(clave_async_cache *cache)
{
    clave__client_timer_clear(cache->client, &cache->refresh);
    clave__buf_fini(&cache->refresh_at);
}
