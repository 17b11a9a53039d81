/* cache_poll.c - what no event tells of: nodes that may not be read, access lists. Called by
 * cache.c. Every node that can have such children, or turn into another, is compared with the
 * server's once in refresh_ms, a tenth of them at a time, or as many as MOST_A_STEP allows.
 * Invariant: a step reads nothing that an event tells of, so that a tree of lock nodes costs a read
 * for each lock only; and no node that is being read or listed, which would never be done on a way
 * longer than a step. */
#include <string.h>

#include "base/path.h"
#include "recipe/cache/cache_children.h"
#include "recipe/cache/cache_internal.h"

enum { STEPS = 10, MOST_A_STEP = 300 };

/* The user may free the cache when it becomes stale. */
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

/* The node that is next, or, where it is gone, the one above it. */
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

/* The server appends ten digits, which it appends to no other name there. */
static bool poll_has_number(const struct cache_node *n)
{
    const char *name = clave__cache_children_name(n);
    uint32_t digits = 0;
    while (digits < n->name_len && name[n->name_len - 1 - digits] >= '0' &&
           name[n->name_len - 1 - digits] <= '9')
        digits++;
    return digits >= 10;
}

/* An ephemeral node has no children, and its parent's listing tells of its end, if no other comes
 * in its place. Containers and nodes with a TTL have marks in the place of a session. */
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
            clave__cache_compare(cache, n);
            asked++;
        }
        n = clave__cache_tree_down(&cache->tree, cache->tree.root, n);
    }
    if (!poll_goes_on(cache))
        return;
    const char *path = n ? clave__cache_tree_path(n, cache->tree.path.data) : "";
    (void)clave__buf_set_text(&cache->refresh_at, path); /* without memory it stays where it is */
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
