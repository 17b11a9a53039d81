/* observe.c - see observe.h. Called by web.c, observe_feed.c and the parts of the engine that have
 * something to tell. Invariant: after a flush the ring has an event for every lock that changed,
 * and every stream was woken. */
#include "web/observe/observe.h"

#include <string.h>

#include "web/http/answer.h"
#include "web/http/routes.h"

enum { FLUSH_MS = 20 };
#define MODEL_BYTES ((size_t)256 << 20)

int64_t clave__observe_now(const struct observe *o)
{
    return o->web->now + o->wall;
}

void clave__observe_set_wall(struct observe *o, int64_t wall)
{
    o->wall = wall;
}

bool clave__observe_is_below(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    if (n == 1)
        return true; /* the root */
    return strncmp(path, prefix, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* ---- telling --------------------------------------------------------------------------------- */

static void observe_flush(struct timer *t, int64_t now)
{
    struct observe *o = LIST_ENTRY(t, struct observe, flush);
    (void)now;
    for (struct lock_queue *q; (q = clave__lock_model_take_dirty(&o->model));) {
        if (o->loaded && clave__lock_is_told(q))
            clave__event_ring_lock(&o->ring, q);
        clave__lock_model_settle(&o->model, q);
    }
    for (struct list *e = o->streams.next, *next; e != &o->streams; e = next) {
        next = e->next;
        clave__web_wake(LIST_ENTRY(e, struct observe_reader, link)->x);
    }
}

static void observe_changed(struct observe *o)
{
    if (!o->flush.armed)
        clave__web_timer_set(o->web, &o->flush, o->web->now + FLUSH_MS);
}

void clave__observe_event(struct observe *o, const struct event_text *e)
{
    clave__event_ring_put(&o->ring, e);
    observe_changed(o);
}

/* ---- the tree -------------------------------------------------------------------------------- */

void clave__observe_node(struct observe *o, const struct observe_node *n)
{
    if (n->stat->mzxid > o->zxid)
        o->zxid = n->stat->mzxid;
    clave__lock_model_node(&o->model, clave__observe_now(o), n->path, n->stat, n->data, n->len);
    observe_changed(o);
}

void clave__observe_gone(struct observe *o, const char *path)
{
    clave__lock_model_gone(&o->model, clave__observe_now(o), path);
    observe_changed(o);
}

void clave__observe_loaded(struct observe *o, int64_t zxid)
{
    bool first = !o->loaded;
    o->zxid = zxid > o->zxid ? zxid : o->zxid;
    o->current = o->loaded = true;
    if (!first)
        return;
    clave__lock_model_loaded(&o->model);
    for (struct list *e; (e = list_pop_front(&o->waiting));) {
        struct web_exchange *x = LIST_ENTRY(e, struct observe_reader, link)->x;
        x->cancel = NULL;
        x->route->handle(x);
    }
}

void clave__observe_stale(struct observe *o)
{
    o->current = false;
}

/* ---- life ------------------------------------------------------------------------------------ */

clave_err clave__observe_new(struct web *w)
{
    struct observe *o = clave__mem_zalloc(&w->mem, sizeof *o);
    w->observe = o;
    if (!o)
        return CLAVE_ENOMEM;
    o->web = w;
    list_init(&o->streams);
    list_init(&o->waiting);
    clave__timer_init(&o->flush, observe_flush);
    clave_err err =
        clave__lock_model_init(&o->model, &w->mem, clave__rand_u64(&w->rand), MODEL_BYTES);
    clave_err ring = clave__event_ring_init(&o->ring, &w->mem, clave__rand_u64(&w->rand));
    return err == CLAVE_OK ? ring : err;
}

void clave__observe_free(struct web *w)
{
    struct observe *o = w->observe;
    w->observe = NULL;
    if (!o)
        return;
    clave__web_timer_clear(w, &o->flush);
    clave__event_ring_fini(&o->ring);
    clave__lock_model_fini(&o->model);
    clave__mem_free(&w->mem, o);
}
