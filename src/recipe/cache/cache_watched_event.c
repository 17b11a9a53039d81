/* cache_watched_event.c - what events mean to a cache. Called by cache_watch.c with each event. */
#include <string.h>

#include "recipe/cache/cache_internal.h"

/* The answer that is under way shows the change: it is after its event. It arms no watch again,
 * though, where there is one for each node. */
static bool cache_is_covered(const clave_async_cache *cache, const struct cache_node *n)
{
    return n->phase == CACHE_NODE_ASKED && !n->asked_list && !cache->watches_each;
}

void clave__cache_changed(clave_async_cache *cache, const char *path)
{
    struct cache_node *n = clave__cache_tree_find(&cache->tree, path, strlen(path));
    if (n && n->unreadable)
        n->denied = n->no_data = false; /* or there would be no event */
    if (n && !cache_is_covered(cache, n))
        clave__cache_want(cache, n, CACHE_WANT_DATA);
}

/* One that waits to be read is not asked for in vain: should it come again, there is an event. */
void clave__cache_deleted(clave_async_cache *cache, const char *path)
{
    struct cache_node *n = clave__cache_tree_find(&cache->tree, path, strlen(path));
    if (!n)
        return;
    if (n->phase == CACHE_NODE_QUEUED && n->parent && !cache->watches_each)
        n->wants_read = n->wants_data = n->wants_list = false;
    if (n->present)
        clave__cache_delete(cache, n);
}

/* Only a parent that is listed lacks the new child: any other is still to be listed. */
void clave__cache_created(clave_async_cache *cache, const char *path)
{
    struct cache_tree *t = &cache->tree;
    size_t len = strlen(path);
    struct cache_node *n = clave__cache_tree_find(t, path, len);
    if (n) {
        clave__cache_changed(cache, path);
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
