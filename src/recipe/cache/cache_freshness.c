/* cache_freshness.c - when a cache is current, and how old it is at most. Called by cache.c, by
 * cache_watch.c when the connection goes or comes, and by cache_read.c. When no node waits to be
 * read (cache_read.c), the cache equals the tree as of the newest answer. Under a steady stream of
 * changes that may never be: so the cache is current as soon as no node is owed: all was read that
 * had no event. From then on rounds say how old it is at most: each owes what waits when it begins.
 */
#include <assert.h>

#include "recipe/cache/cache_internal.h"

/* ---- how old it is at most ------------------------------------------------------------------- */

/* Events come before every answer to what was sent after the change. So without anything to be
 * read the cache has all that was changed before the newest answered request was sent. */
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

/* A round: what is owed now shows, once it is read, all that was changed before. */
static void cache_begin_round(clave_async_cache *cache)
{
    cache->since = clave__client_contact(cache->client);
    for (size_t i = 0; i < cache->queue.count; i++)
        clave__cache_owe(cache, cache->queue.at[(cache->queue.first + i) % cache->queue.cap]);
    for (size_t i = 0; i < cache->o.window; i++)
        if (cache->requests[i].node)
            clave__cache_owe(cache, cache->requests[i].node);
}

/* ---- when everything is answered ------------------------------------------------------------- */

void clave__cache_become_stale(clave_async_cache *cache)
{
    if (cache->phase != CACHE_CURRENT)
        return;
    clave__cache_note_as_of(cache);
    cache->phase = CACHE_STALE;
    clave__cache_tell(cache, CLAVE_CACHE_STALE, CLAVE_OK);
}

/* Nothing is missing any more as soon as nothing is owed again. */
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
    (void)res; /* if it failed, the reads are as good as without it */
    cache->under_way--;
    cache->syncs--;
    clave__cache_leave(cache); /* what _sync entered */
}

void clave__cache_sync(clave_async_cache *cache)
{
    const char *path = clave__cache_tree_path(cache->tree.root, cache->tree.path.data);
    if (clave_async_sync(cache->client, path, cache_on_synced, cache) != CLAVE_OK) {
        clave__cache_missed(cache, NULL); /* a resync begins with another one */
        return;
    }
    clave__cache_enter(cache);
    cache->since = clave__client_contact(cache->client);
    cache->under_way++;
    cache->syncs++;
}

void clave__cache_compare(clave_async_cache *cache, struct cache_node *n)
{
    n->check = true;
    if (n->unreadable)
        n->denied = n->no_data = false;
    n->no_list = n->no_list && n->left_out; /* a list that is too long stays so */
    clave__cache_want(cache, n, n->unreadable ? CACHE_WANT_DATA : CACHE_WANT_STAT);
}

void clave__cache_resync(clave_async_cache *cache)
{
    struct cache_node *top = cache->tree.root;
    cache->must_resync = false;
    cache->up = true;
    cache->since = clave__client_contact(cache->client);
    if (cache->phase != CACHE_LOADING)
        clave__cache_sync(cache);
    clave__cache_owe(cache, top);
    for (struct cache_node *n = top->present ? top : NULL; n;
         n = clave__cache_tree_down(&cache->tree, top, n)) {
        clave__cache_compare(cache, n);
    }
    if (!top->present)
        clave__cache_want(cache, top, CACHE_WANT_STAT);
}

/* What waits now is owed when events come again. */
void clave__cache_suspend(clave_async_cache *cache)
{
    const struct cache_queue *q = &cache->queue;
    for (size_t i = 0; i < q->count; i++)
        clave__cache_owe(cache, q->at[(q->first + i) % q->cap]);
    clave__cache_become_stale(cache);
    cache->up = false;
}
