/* node_watch.c - a getData with a watch on one node. Called by the contender, participant_list.c
 * and shared_count.c. Invariant: no event of an earlier node is reported after the watch has moved
 * to another. */
#include "recipe/contender/node_watch.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"

static void on_watch(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    (void)c;
    (void)w;
    struct node_watch *l = arg;
    /* CLAVE_EVENT_LOST is left to the state listener, which is told of it too. */
    if (!l->moved && ev->type != CLAVE_EVENT_LOST)
        l->on_event(l, ev);
}

clave_err clave__node_watch_init(struct node_watch *l, clave_async_client *c,
                                 const struct clave_mem *mem, size_t cap)
{
    l->client = c;
    l->mem = mem;
    l->cap = cap;
    l->path = clave__mem_zalloc(mem, cap);
    if (!l->path)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_watch_new(&l->watch, c, on_watch, l);
    if (err != CLAVE_OK)
        clave__node_watch_fini(l);
    return err;
}

void clave__node_watch_fini(struct node_watch *l)
{
    if (l->watch)
        clave_async_watch_free(l->watch);
    clave__mem_free(l->mem, l->path);
    l->watch = NULL;
    l->path = NULL;
}

clave_err clave__node_watch_set(struct node_watch *l, const char *dir, const char *name)
{
    size_t need = strlen(dir) + (name ? strlen(name) : 0) + 2;
    if (need > l->cap) {
        char *path = clave__mem_realloc(l->mem, l->path, need);
        if (!path)
            return CLAVE_ENOMEM;
        l->path = path;
        l->cap = need;
    }
    if (name)
        clave__path_put_child(l->path, dir, name);
    else
        memcpy(l->path, dir, strlen(dir) + 1);
    return CLAVE_OK;
}

static void node_watch_on_reply(clave_async_client *c, const clave_result *res, void *arg)
{
    struct node_watch *l = arg;
    bool again = l->again && res->err == CLAVE_OK;
    l->asking = l->again = false;
    if (l->moved || again) {
        if (l->moved)
            clave_async_watch_disarm(l->watch);
        l->moved = false;
        clave_err err = clave__node_watch_read(l);
        if (err != CLAVE_OK)
            l->on_reply(l, &(clave_result){.err = err, .path = l->path});
        return;
    }
    l->connection = clave_async_client_connection(c);
    l->on_reply(l, res);
}

clave_err clave__node_watch_read(struct node_watch *l)
{
    assert(l->path[0] == '/');
    if (l->asking) {
        /* The pending getData set no watch, because one was armed; that one has fired since. */
        l->again = l->again || !clave_async_watch_is_armed(l->watch);
        return CLAVE_OK;
    }
    clave_async_watch *watch = clave_async_watch_is_armed(l->watch) ? NULL : l->watch;
    clave_err err = clave_async_get(l->client, l->path, watch, node_watch_on_reply, l);
    l->asking = err == CLAVE_OK;
    return err;
}

clave_err clave__node_watch_move(struct node_watch *l, const char *dir, const char *name)
{
    bool same = clave__path_is_child(l->path, dir, name);
    if (same && (l->asking || clave_async_watch_is_armed(l->watch))) {
        /* After a reconnect the client registers its watches again before anything else, and so
         * before the reply at hand: the watch is armed on this connection. */
        if (!l->asking)
            l->connection = clave_async_client_connection(l->client);
        return CLAVE_OK;
    }
    clave_err err = same ? CLAVE_OK : clave__node_watch_set(l, dir, name);
    if (err != CLAVE_OK)
        return err;
    if (l->asking) {
        l->moved = true;
        return CLAVE_OK;
    }
    clave_async_watch_disarm(l->watch);
    return clave__node_watch_read(l);
}

void clave__node_watch_clear(struct node_watch *l)
{
    clave_async_watch_disarm(l->watch);
    l->moved = l->again = false;
    l->path[0] = '\0';
}

bool clave__node_watch_is_armed(const struct node_watch *l)
{
    return !l->asking && clave_async_watch_is_armed(l->watch);
}
