/* cache_limits.c - the bounds of a cache, max_nodes and max_bytes, and what is left out for want of
 * room. Called by cache_reply.c and cache_change.c; cache_freshness.c asks again when there is
 * room.
 */
#include "recipe/cache/cache_internal.h"

bool clave__cache_has_place(const clave_async_cache *cache)
{
    return !cache->o.max_nodes || cache->tree.nodes < cache->o.max_nodes;
}

bool clave__cache_has_room(const clave_async_cache *cache, size_t bytes)
{
    return !cache->o.max_bytes || cache->tree.bytes + bytes <= cache->o.max_bytes;
}

void clave__cache_forget_left_out(clave_async_cache *cache, struct cache_node *n)
{
    cache->left_out -= (size_t)n->left_out + n->lacks_data;
    n->left_out = n->lacks_data = false;
}

void clave__cache_leave_out(clave_async_cache *cache)
{
    cache->left_out++;
    if (cache->full)
        return;
    cache->full = true;
    clave__cache_tell(cache, CLAVE_CACHE_FULL, CLAVE_OK);
}

/* An eighth of the bound was freed: what was left out is tried again. */
bool clave__cache_has_made_room(const clave_async_cache *cache)
{
    const clave_cache_options *o = &cache->o;
    return cache->left_out > 0 && ((o->max_nodes && cache->places_made * 8 >= o->max_nodes) ||
                                   (o->max_bytes && cache->room_made * 8 >= o->max_bytes));
}
