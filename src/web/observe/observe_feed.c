/* observe_feed.c - see observe.h. Called by web.c and the endpoints. Invariant: what the model
 * was told is what the cache knows; a cache that had to be made anew begins with an empty model. */
#include "web/observe/observe.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "clave/async/cache.h"
#include "client/client_for_gate.h"
#include "recipe/cache/cache_progress.h"

enum {
    RETRY_MS = 2000,
    REFRESH_MS = 30000,
    PROBE_MS = OBSERVE_CURRENT_MS / 4,
};
#define MAX_BYTES ((size_t)512 << 20)

struct observe_feed {
    struct observe *o;
    clave_async_cache *cache; /* NULL: it ended, and `retry` is set */
    struct timer retry;
    struct timer probe;
    int64_t probed; /* when the last probe was sent */
    bool told;      /* the model has been told something since it was empty */
};

/* The server's own nodes are never locks. */
static clave_cache_take feed_takes(const char *path, void *arg)
{
    (void)arg;
    return strcmp(path, "/zookeeper") == 0 ? CLAVE_CACHE_TAKE_NOTHING : CLAVE_CACHE_TAKE_TREE;
}

static void feed_retry(struct observe_feed *f)
{
    struct web *w = f->o->web;
    if (!w->closing)
        clave__web_timer_set(w, &f->retry, w->now + RETRY_MS);
}

static void feed_on_ended(struct observe_feed *f, clave_err err)
{
    struct web *w = f->o->web;
    assert(f->cache);
    f->o->as_of = clave__cache_as_of(f->cache);
    f->o->copy = NULL;
    clave_async_cache_free(f->cache);
    f->cache = NULL;
    clave__observe_stale(f->o);
    if (w->closing)
        return;
    clave__log(&w->o.log, CLAVE_LOG_WARN, "cannot follow the locks of the tree: %s",
               clave_strerror(err));
    clave__observe_failed(f->o, err);
    feed_retry(f);
}

static void feed_tell_node(struct observe_feed *f, const clave_cache_node *n)
{
    f->told = true;
    clave__observe_node(f->o, &(struct observe_node){.path = n->path,
                                                     .stat = &n->stat,
                                                     .data = n->has_data ? n->data : NULL,
                                                     .len = n->has_data ? n->len : 0});
}

static bool feed_hides_locks(const char *path, const clave_cache_node *n)
{
    return n && n->unreadable && clave__lock_may_be_below(path);
}

/* NULL: all of it is known. */
const char *clave__observe_feed_unreadable(const struct observe_feed *f, char *path)
{
    clave_cache_node n;
    for (size_t len = strlen(path); f && f->cache && len > 1;
         len = clave__path_parent_len(path, len)) {
        path[len] = '\0';
        if (clave_async_cache_get(f->cache, path, &n) == CLAVE_OK)
            return n.unreadable ? path : NULL;
    }
    return NULL;
}

static void feed_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    struct observe_feed *f = arg;
    struct web *w = f->o->web;
    int64_t now = clave__client_now(w->own);
    (void)cache;
    w->now = now > w->now ? now : w->now;
    switch (ev->type) {
    case CLAVE_CACHE_CREATED:
    case CLAVE_CACHE_CHANGED:
        f->o->unreadable += feed_hides_locks(ev->path, ev->now);
        assert(!feed_hides_locks(ev->path, ev->was) || f->o->unreadable > 0);
        f->o->unreadable -= feed_hides_locks(ev->path, ev->was);
        feed_tell_node(f, ev->now);
        clave__lock_long_poll_node_changed(f->o, ev->path);
        break;
    case CLAVE_CACHE_DELETED:
        assert(!feed_hides_locks(ev->path, ev->was) || f->o->unreadable > 0);
        f->o->unreadable -= feed_hides_locks(ev->path, ev->was);
        clave__observe_gone(f->o, ev->path);
        clave__lock_long_poll_node_changed(f->o, ev->path);
        break;
    case CLAVE_CACHE_INITIALIZED:
    case CLAVE_CACHE_RESYNCED:
        f->o->partial = !clave_async_cache_status_of(f->cache).complete;
        clave__observe_loaded(f->o, clave__cache_answered_zxid(f->cache));
        break;
    case CLAVE_CACHE_STALE:
        clave__observe_stale(f->o);
        break;
    case CLAVE_CACHE_FULL:
        f->o->partial = true;
        break;
    case CLAVE_CACHE_ENDED:
        feed_on_ended(f, ev->err);
        break;
    }
}

/* Only the data of these nodes is needed in part when it is long; long data of others is left
 * out. */
static bool feed_cuts(const char *path)
{
    return clave__lock_is_place(path) || clave__election_value_of(path) > 0;
}

static void feed_open(struct observe_feed *f)
{
    struct web *w = f->o->web;
    assert(!f->cache);
    clave_cache_options o = CLAVE_CACHE_OPTIONS_INIT;
    o.max_data = LOCK_DATA_MAX + 1;
    o.max_bytes = MAX_BYTES;
    o.refresh_ms = REFRESH_MS;
    o.filter = feed_takes;
    o.mem = &w->mem;
    if (f->told)
        clave__observe_clear(f->o);
    f->told = false;
    clave_err err = clave_async_cache_new(&f->cache, w->own, "/", &o, feed_on_event, f);
    f->o->copy = f->cache;
    f->o->copies++;
    if (err == CLAVE_OK) {
        clave__cache_cut(f->cache, feed_cuts);
        clave__web_flush(w, w->own);
    } else
        feed_retry(f);
}

/* A server that has vanished is silent, and so is one whose tree does not change; only an answer
 * tells them apart. Since events come before the answer, it also shows up to when all of them are
 * known. The next probe is sent once this one, or a later request, was answered. */
static void feed_on_probe(struct timer *t, int64_t now)
{
    struct observe_feed *f = LIST_ENTRY(t, struct observe_feed, probe);
    struct web *w = f->o->web;
    clave_async_client_tick(w->own, now); /* the probe counts as sent now, not at the last tick */
    int64_t heard = clave__client_contact(w->own), next = heard + PROBE_MS;
    if (next <= now && f->probed <= heard && clave_async_client_is_connected(w->own) &&
        clave_async_exists(w->own, "/", NULL, NULL, NULL) == CLAVE_OK) {
        f->probed = now;
        clave__web_flush(w, w->own);
    }
    clave__web_timer_set(w, t, next > now ? next : now + PROBE_MS);
}

static void feed_on_retry(struct timer *t, int64_t now)
{
    (void)now;
    feed_open(LIST_ENTRY(t, struct observe_feed, retry));
}

void clave__observe_feed_start(struct observe *o)
{
    struct web *w = o->web;
    if (o->feed || !w->own || w->closing)
        return;
    o->feed = clave__mem_zalloc(&w->mem, sizeof *o->feed);
    if (!o->feed)
        return; /* the next request that needs it tries again */
    o->feed->o = o;
    o->feed->probed = INT64_MIN;
    clave__timer_init(&o->feed->retry, feed_on_retry);
    clave__timer_init(&o->feed->probe, feed_on_probe);
    clave__web_timer_set(w, &o->feed->probe, w->now + PROBE_MS);
    feed_open(o->feed);
}

void clave__observe_feed_stop(struct observe *o)
{
    struct observe_feed *f = o ? o->feed : NULL;
    if (!f)
        return;
    o->feed = NULL;
    o->copy = NULL;
    clave_async_cache_free(f->cache);
    clave__web_timer_clear(o->web, &f->retry);
    clave__web_timer_clear(o->web, &f->probe);
    clave__mem_free(&o->web->mem, f);
}
