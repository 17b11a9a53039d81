/* cache.c - the events of a cache, and questions to it, which the loop's thread answers from
 * memory into a note. */
#include "bridge.h"

static void cache_put_node(struct bridge_note *n, const clave_cache_node *node)
{
    if (!node) {
        bridge__put_none(n);
        return;
    }
    bridge__put_list(n, 4);
    bridge__put_text(n, node->path);
    bridge__put_stat(n, &node->stat);
    bridge__put_bytes(n, node->data, node->len);
    bridge__put_int(n, node->unreadable);
}

void bridge_on_cache_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    (void)cache;
    const struct bridge_source *s = arg;
    struct bridge_note *n = s->kinds >> ev->type & 1 ? bridge_note_new() : NULL;
    if (!n)
        return;
    n->id = s->id;
    bridge__put_int(n, ev->type);
    bridge__put_text(n, ev->path);
    cache_put_node(n, ev->now);
    cache_put_node(n, ev->was);
    bridge__put_int(n, ev->err);
    bridge__channel_push(s->channel, n);
}

clave_err bridge_cache_get(const clave_async_cache *cache, const char *path, struct bridge_note *n)
{
    clave_cache_node node;
    clave_err err = clave_async_cache_get(cache, path, &node);
    if (err == CLAVE_OK)
        cache_put_node(n, &node);
    return err;
}

static bool cache_put_path(const clave_cache_node *node, void *arg)
{
    bridge__put_text(arg, node->path);
    return true;
}

clave_err bridge_cache_children(const clave_async_cache *cache, const char *path,
                                struct bridge_note *n)
{
    return clave_async_cache_children(cache, path, cache_put_path, n);
}

/* The paths of a node and all below it: those of one moment. */
clave_err bridge_cache_walk(const clave_async_cache *cache, const char *path, struct bridge_note *n)
{
    return clave_async_cache_walk(cache, path, cache_put_path, n);
}

clave_err bridge_cache_status(const clave_async_cache *cache, struct bridge_note *n)
{
    clave_cache_status status = clave_async_cache_status_of(cache);
    bridge__put_int(n, (int64_t)status.count);
    bridge__put_int(n, (int64_t)status.bytes);
    bridge__put_int(n, status.zxid);
    bridge__put_int(n, status.current);
    bridge__put_int(n, status.complete);
    return CLAVE_OK;
}
