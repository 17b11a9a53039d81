/* cache_listener.c - what a cache says to its user. Called by cache.c, cache_read.c and
 * cache_watch.c, between clave__cache_enter and clave__cache_leave: the user may free the cache in
 * it, and is told nothing any more. */
#include <assert.h>

#include "recipe/cache/cache_internal.h"

clave_cache_node clave__cache_view(const char *path, const struct cache_value *v)
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
        seen_now = clave__cache_view(ev.path, now);
        ev.now = &seen_now;
    }
    if (was) {
        seen_was = clave__cache_view(ev.path, was);
        ev.was = &seen_was;
    }
    cache->cb(cache, &ev, cache->arg);
}
