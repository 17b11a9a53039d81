/* cache.c - clave_cache: clave_async_cache for threads. Called by users, on any thread. The copy
 * of the tree belongs to the loop's thread, so each query visits it there, and takes away a copy;
 * only what clave_cache_wait waits for is published under the loop's mutex. */
#include "clave/cache.h"

#include <assert.h>
#include <stdlib.h>

#include "base/path.h"
#include "runtime/blocking/arena.h"
#include "runtime/blocking/call.h"

struct clave_cache {
    clave_client *client;
    clave_async_cache *cache; /* the loop's thread only, like the observer; NULL: it has ended */
    struct observer observer;
    clave_async_cache_cb *cb; /* the user's */
    void *arg;
    bool current;  /* under the loop's mutex, as is everything below */
    clave_err err; /* nothing is followed any more, and why; CLAVE_OK: it is */
    struct cell changed;
};

/* ---- what the loop's thread publishes ------------------------------------------------------- */

static void blocking_cache_publish(clave_cache *c, bool current, clave_err err)
{
    assert(clave__loop_is_current(c->client->loop));
    clave__loop_lock(c->client->loop);
    c->current = current;
    if (c->err == CLAVE_OK)
        c->err = err;
    clave__cell_wake(&c->changed);
    clave__loop_unlock(c->client->loop);
}

static void blocking_cache_on_event(clave_async_cache *cache, const clave_cache_event *ev,
                                    void *arg)
{
    clave_cache *c = arg;
    if (!ev->now && !ev->was) /* of the cache, not of a node */
        blocking_cache_publish(c, clave_async_cache_status_of(cache).current, ev->err);
    if (c->cb)
        c->cb(cache, ev, c->arg); /* may free the cache */
}

/* ---- life ----------------------------------------------------------------------------------- */

struct creation {
    clave_cache *c;
    const char *path;
    const clave_cache_options *o;
    clave_err err;
};

static void blocking_cache_create(clave_async_client *client, void *arg)
{
    struct creation *b = arg;
    b->err =
        clave_async_cache_new(&b->c->cache, client, b->path, b->o, blocking_cache_on_event, b->c);
    if (b->err == CLAVE_OK)
        clave__session_adopt(b->c->client, &b->c->observer);
}

static void blocking_cache_on_session_ended(struct observer *o)
{
    clave_cache *c = LIST_ENTRY(o, clave_cache, observer);
    clave_async_cache_free(c->cache);
    c->cache = NULL;
    blocking_cache_publish(c, false, CLAVE_ECLOSED);
}

clave_err clave_cache_new(clave_cache **out, clave_client *client, const char *path,
                          const clave_cache_options *o, clave_async_cache_cb *cb, void *arg)
{
    clave_cache_options own;
    *out = NULL;
    clave_err err = clave__session_take_options(client, &own, sizeof own, o, "clave_cache_options");
    if (err != CLAVE_OK)
        return err;
    clave_cache *c = calloc(1, sizeof *c);
    if (!c)
        return CLAVE_ENOMEM;
    c->client = client;
    c->cb = cb;
    c->arg = arg;
    c->observer.ended = blocking_cache_on_session_ended;
    clave__cell_init(&c->changed);
    struct creation b = {.c = c, .path = path, .o = &own, .err = CLAVE_ECLOSED};
    clave__blocking_do(client, blocking_cache_create, &b);
    if (b.err != CLAVE_OK) {
        clave__cell_fini(&c->changed);
        free(c);
        return b.err;
    }
    *out = c;
    return CLAVE_OK;
}

static void blocking_cache_destroy(clave_async_client *client, void *arg)
{
    clave_cache *c = arg;
    (void)client;
    list_remove(&c->observer.link);
    clave_async_cache_free(c->cache);
}

void clave_cache_free(clave_cache *c)
{
    if (!c || !clave__loop_is_here(c->client->loop))
        return;
    clave__blocking_do(c->client, blocking_cache_destroy, c);
    clave__cell_fini(&c->changed);
    clave__session_unref(c->client);
    free(c);
}

/* With the mutex held. */
static clave_err blocking_cache_await(clave_cache *c, int64_t deadline)
{
    while (!c->current && c->err == CLAVE_OK)
        if (!clave__cell_wait(&c->changed, c->client->loop, deadline))
            return c->client->was_connected ? CLAVE_ETIMEDOUT : CLAVE_EUNREACHABLE;
    return c->err;
}

clave_err clave_cache_wait(clave_cache *c, int64_t timeout_ms)
{
    clave_loop *loop = c->client->loop;
    int64_t deadline = clave__deadline_after(timeout_ms);
    if (!clave__loop_is_here(loop) || clave__session_has_ended(c->client))
        return CLAVE_ECLOSED;
    if (clave__loop_is_current(loop))
        return CLAVE_ELOOPTHREAD;
    clave__loop_lock(loop);
    clave__blocking_enter_locked(c->client);
    clave_err err = blocking_cache_await(c, deadline);
    clave__blocking_leave_locked(c->client);
    clave__loop_unlock(loop);
    return err;
}

/* ---- copies of nodes ------------------------------------------------------------------------- */

struct reading {
    const clave_cache *c;
    const char *path;
    clave_reply *reply;
    struct arena names; /* children: measured first, then copied */
    clave_cache_visit_cb *visit;
    void *arg;
    clave_err err; /* ECLOSED, unless the loop's thread has answered */
};

static clave_err blocking_cache_read(struct reading *r, clave_loop_fn *fn, clave_reply **out)
{
    *out = NULL;
    r->reply = clave__reply_new(0, 0);
    if (!r->reply)
        return CLAVE_ENOMEM;
    clave__blocking_do(r->c->client, fn, r);
    if (r->err == CLAVE_OK)
        *out = r->reply;
    else
        clave_reply_free(r->reply);
    return r->err;
}

static void blocking_cache_get(clave_async_client *client, void *arg)
{
    struct reading *r = arg;
    clave_cache_node node;
    (void)client;
    r->err = clave_async_cache_get(r->c->cache, r->path, &node);
    if (r->err == CLAVE_OK && node.unreadable)
        r->err = CLAVE_ENOAUTH;
    if (r->err != CLAVE_OK)
        return;
    const clave_result res = {.stat = &node.stat, .data = node.data, .len = node.len};
    r->err = clave__reply_fill(r->reply, 0, &res);
}

clave_err clave_cache_get(clave_cache *c, const char *path, clave_reply **out)
{
    struct reading r = {.c = c, .path = path, .err = CLAVE_ECLOSED};
    return blocking_cache_read(&r, blocking_cache_get, out);
}

static bool blocking_cache_measure_name(const clave_cache_node *node, void *arg)
{
    struct reading *r = arg;
    arena_text(&r->names, clave__path_name(node->path));
    r->reply->nnames++;
    return true;
}

static bool blocking_cache_copy_name(const clave_cache_node *node, void *arg)
{
    struct reading *r = arg;
    char *name = r->names.at + r->names.n;
    arena_text(&r->names, clave__path_name(node->path));
    r->reply->names[r->reply->nnames++] = name;
    return true;
}

static void blocking_cache_list(clave_async_client *client, void *arg)
{
    struct reading *r = arg;
    clave_reply *reply = r->reply;
    clave_cache_node node;
    (void)client;
    r->err = clave_async_cache_get(r->c->cache, r->path, &node);
    if (r->err == CLAVE_OK)
        r->err = clave_async_cache_children(r->c->cache, r->path, blocking_cache_measure_name, r);
    if (r->err != CLAVE_OK)
        return;
    reply->has_stat = true;
    reply->stat = node.stat;
    if (reply->nnames == 0)
        return;
    reply->names = malloc(reply->nnames * sizeof *reply->names + r->names.n);
    if (!reply->names) {
        r->err = CLAVE_ENOMEM;
        return;
    }
    r->names = (struct arena){.at = (char *)(reply->names + reply->nnames)};
    reply->nnames = 0;
    r->err = clave_async_cache_children(r->c->cache, r->path, blocking_cache_copy_name, r);
}

clave_err clave_cache_children(clave_cache *c, const char *path, clave_reply **out)
{
    struct reading r = {.c = c, .path = path, .err = CLAVE_ECLOSED};
    return blocking_cache_read(&r, blocking_cache_list, out);
}

static void blocking_cache_walk(clave_async_client *client, void *arg)
{
    struct reading *r = arg;
    (void)client;
    r->err = clave_async_cache_walk(r->c->cache, r->path, r->visit, r->arg);
}

clave_err clave_cache_walk(clave_cache *c, const char *path, clave_cache_visit_cb *visit, void *arg)
{
    struct reading r = {.c = c, .path = path, .visit = visit, .arg = arg, .err = CLAVE_ECLOSED};
    clave__blocking_do(c->client, blocking_cache_walk, &r);
    return r.err;
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct survey {
    const clave_cache *c;
    clave_cache_status status;
};

static void blocking_cache_survey(clave_async_client *client, void *arg)
{
    struct survey *v = arg;
    (void)client;
    v->status = clave_async_cache_status_of(v->c->cache);
}

clave_cache_status clave_cache_status_of(clave_cache *c)
{
    struct survey v = {.c = c};
    clave__blocking_do(c->client, blocking_cache_survey, &v);
    return v.status;
}
