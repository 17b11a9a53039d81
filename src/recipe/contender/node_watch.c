/* node_watch.c - reads one node and watches it; see node_watch.h. What must stay true: no event of
 * an earlier node is reported after the watch has moved to another node. */
#include "recipe/contender/node_watch.h"

#include <string.h>

#include "base/path.h"

static void on_watch(clave_async_client *c, clave_async_watch *w, const clave_event *ev, void *arg)
{
    (void)c;
    (void)w;
    struct node_watch *nw = arg;
    /* CLAVE_EVENT_LOST is handled by the state listener, which is told as well */
    if (!nw->moved && ev->type != CLAVE_EVENT_LOST)
        nw->on_event(nw, ev);
}

clave_err clave__node_watch_init(struct node_watch *w, clave_async_client *c,
                                 const struct clave_mem *mem, size_t cap)
{
    w->client = c;
    w->mem = mem;
    w->cap = cap;
    w->path = clave__mem_zalloc(mem, cap);
    if (!w->path)
        return CLAVE_ENOMEM;
    clave_err err = clave_async_watch_new(&w->watch, c, on_watch, w);
    if (err != CLAVE_OK)
        clave__node_watch_fini(w);
    return err;
}

void clave__node_watch_fini(struct node_watch *w)
{
    if (w->watch)
        clave_async_watch_free(w->watch);
    clave__mem_free(w->mem, w->path);
    w->watch = NULL;
    w->path = NULL;
}

clave_err clave__node_watch_set(struct node_watch *w, const char *dir, const char *name)
{
    size_t need = strlen(dir) + (name ? strlen(name) : 0) + 2;
    if (need > w->cap) {
        char *path = clave__mem_realloc(w->mem, w->path, need);
        if (!path)
            return CLAVE_ENOMEM;
        w->path = path;
        w->cap = need;
    }
    if (name)
        clave__path_put_child(w->path, dir, name);
    else
        memcpy(w->path, dir, strlen(dir) + 1);
    return CLAVE_OK;
}

static void node_watch_on_reply(clave_async_client *c, const clave_result *res, void *arg)
{
    struct node_watch *w = arg;
    bool again = w->again && res->err == CLAVE_OK;
    w->asking = w->again = false;
    if (w->moved || again) {
        if (w->moved)
            clave_async_watch_disarm(w->watch);
        w->moved = false;
        clave_err err = clave__node_watch_read(w);
        if (err != CLAVE_OK)
            w->on_reply(w, &(clave_result){.err = err, .path = w->path});
        return;
    }
    w->connection = clave_async_client_connection(c);
    w->on_reply(w, res);
}

clave_err clave__node_watch_read(struct node_watch *w)
{
    if (w->asking) {
        /* The pending getData set no watch because one was armed, and that one has fired since. */
        w->again = w->again || !clave_async_watch_is_armed(w->watch);
        return CLAVE_OK;
    }
    clave_async_watch *watch = clave_async_watch_is_armed(w->watch) ? NULL : w->watch;
    clave_err err = clave_async_get(w->client, w->path, watch, node_watch_on_reply, w);
    w->asking = err == CLAVE_OK;
    return err;
}

clave_err clave__node_watch_move(struct node_watch *w, const char *dir, const char *name)
{
    bool same = clave__path_is_child(w->path, dir, name);
    if (same && (w->asking || clave_async_watch_is_armed(w->watch))) {
        /* After a reconnect the client registers its watches again before anything else, and
         * therefore before the reply being processed: the watch is armed on this connection. */
        if (!w->asking)
            w->connection = clave_async_client_connection(w->client);
        return CLAVE_OK;
    }
    clave_err err = same ? CLAVE_OK : clave__node_watch_set(w, dir, name);
    if (err != CLAVE_OK)
        return err;
    if (w->asking) {
        w->moved = true;
        return CLAVE_OK;
    }
    clave_async_watch_disarm(w->watch);
    return clave__node_watch_read(w);
}

void clave__node_watch_clear(struct node_watch *w)
{
    clave_async_watch_disarm(w->watch);
    w->moved = w->again = false;
    w->path[0] = '\0';
}

bool clave__node_watch_is_armed(const struct node_watch *w)
{
    return !w->asking && clave_async_watch_is_armed(w->watch);
}
