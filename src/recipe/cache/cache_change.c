/* cache_change.c - nodes that come to a cache and go. Called by cache_reply.c and
 * cache_watched_event.c.
 */
#include "recipe/cache/cache_internal.h"

static void cache_delete_one(clave_async_cache *cache, struct cache_node *n)
{
    struct cache_value was = clave__cache_tree_value(n);
    clave__cache_forget_left_out(cache, n);
    clave__cache_drop_child_watch(cache, n);
    n->listed = n->moved = n->check = n->no_data = n->no_list = false;
    n->denied = n->unreadable = false;
    clave__cache_tree_set_present(&cache->tree, n, false);
    clave__cache_tell_node(cache, CLAVE_CACHE_DELETED, n, NULL, &was);
    clave__cache_tree_prune(&cache->tree, n);
}

void clave__cache_delete(clave_async_cache *cache, struct cache_node *top)
{
    struct cache_tree *t = &cache->tree;
    struct cache_node *up = clave__cache_tree_parent(top);
    size_t bytes = t->bytes, nodes = t->nodes;
    struct cache_node *n = clave__cache_tree_deepest(top);
    if (up)
        up->moved = true;
    while (n != top) {
        struct cache_children *parent = n->parent;
        uint32_t slot = clave__cache_tree_slot(t, n);
        cache_delete_one(cache, n);
        n = clave__cache_tree_after(parent, slot);
    }
    cache_delete_one(cache, top);
    cache->room_made += bytes - t->bytes;
    cache->places_made += nodes - t->nodes;
}

/* A place for a child that is new; nothing when the filter does not take it, or it does not fit. */
void clave__cache_add_child(clave_async_cache *cache, struct cache_node *parent, const char *name,
                            size_t len)
{
    struct cache_node *n;
    const clave_cache_options *o = &cache->o;
    clave_cache_take take = CLAVE_CACHE_TAKE_TREE;
    bool fits =
        clave__cache_has_place(cache) && clave__cache_has_room(cache, clave__cache_tree_room(len));
    if (!fits && parent->left_out)
        return;
    if (clave__cache_tree_add(&cache->tree, parent, name, len, &n) != CLAVE_OK) {
        clave__cache_missed(cache, parent);
        return;
    }
    if (o->filter)
        take = o->filter(clave__cache_tree_path(n, cache->tree.path.data), o->filter_arg);
    n->followed = take == CLAVE_CACHE_TAKE_TREE;
    if (take != CLAVE_CACHE_TAKE_NOTHING && fits) {
        clave__cache_want(cache, n, CACHE_WANT_STAT);
        return;
    }
    clave__cache_tree_prune(&cache->tree, n);
    if (take != CLAVE_CACHE_TAKE_NOTHING) {
        parent->left_out = true;
        clave__cache_leave_out(cache);
    }
}
