/* top_feed.c - see top_feed.h. top.c and locks.c call it.
 *
 * What must stay true: the model, the cache and what they own are accessed on the loop's thread
 * only; what a read returns is a copy. */
#include "cmd/top/top_feed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/memory.h"
#include "clave/async/cache.h"
#include "clave/uv.h"
#include "cmd/cli/connect.h"
#include "cmd/cli/json.h"
#include "observe/lock_deadlocks.h"
#include "observe/lock_json.h"
#include "observe/lock_model.h"
#include "observe/lock_who.h"
#include "recipe/cache/cache_progress.h"
#include "runtime/clock.h"

enum {
    MODEL_BYTES = 256 << 20,
    CACHE_BYTES = 512 << 20,
    JSON_PLACES = 1000,
    REFRESH_MS = 30000,
};

struct top_feed {
    clave_client *client;
    const char *path;
    int wakeup;
    struct clave_mem mem;

    /* Used on the loop's thread only. */
    clave_async_cache *cache;
    struct lock_model model;
    struct lock_deadlocks waits;
    size_t unreadable; /* number of nodes that may not be read and may have locks below them */
    bool loaded, told; /* told: `wakeup` was written since the last read */
    int64_t stale_at;
    clave_err err;
};

/* ---- following ------------------------------------------------------------------------------ */

static clave_cache_take top_feed_takes(const char *path, void *arg)
{
    (void)arg;
    return strcmp(path, "/zookeeper") == 0 ? CLAVE_CACHE_TAKE_NOTHING : CLAVE_CACHE_TAKE_TREE;
}

static bool top_feed_hides_locks(const char *path, const clave_cache_node *n)
{
    return n && n->unreadable && clave__lock_may_be_below(path);
}

static void top_feed_on_event(clave_async_cache *cache, const clave_cache_event *ev, void *arg)
{
    struct top_feed *f = arg;
    const clave_cache_node *n = ev->now;
    (void)cache;
    f->unreadable += top_feed_hides_locks(ev->path, ev->now);
    assert(f->unreadable > 0 || !top_feed_hides_locks(ev->path, ev->was));
    f->unreadable -= top_feed_hides_locks(ev->path, ev->was);
    if (ev->type == CLAVE_CACHE_CREATED || ev->type == CLAVE_CACHE_CHANGED)
        clave__lock_model_node(&f->model, clave__clock_wall(), n->path, &n->stat, n->data, n->len);
    else if (ev->type == CLAVE_CACHE_DELETED)
        clave__lock_model_gone(&f->model, clave__clock_wall(), ev->path);
    else if (ev->type == CLAVE_CACHE_STALE)
        f->stale_at = clave__clock_wall();
    else if (ev->type == CLAVE_CACHE_RESYNCED)
        f->stale_at = 0;
    else if (ev->type == CLAVE_CACHE_ENDED)
        f->err = ev->err;
    if (ev->type == CLAVE_CACHE_INITIALIZED) {
        clave__lock_model_loaded(&f->model);
        f->loaded = true;
    }
    if (!f->told)
        eventfd_write(f->wakeup, 1);
    f->told = true;
}

static void top_feed_begin(clave_async_client *c, void *arg)
{
    struct top_feed *f = arg;
    clave_cache_options o = CLAVE_CACHE_OPTIONS_INIT;
    o.max_data = LOCK_DATA_MAX + 1;
    o.max_bytes = CACHE_BYTES;
    o.refresh_ms = REFRESH_MS;
    o.filter = top_feed_takes;
    f->err = clave_async_cache_new(&f->cache, c, f->path, &o, top_feed_on_event, f);
    if (f->err == CLAVE_OK)
        clave__cache_cut(f->cache, clave__lock_is_place);
}

static void top_feed_end(clave_async_client *c, void *arg)
{
    struct top_feed *f = arg;
    (void)c;
    clave_async_cache_free(f->cache);
}

clave_err top_feed_new(struct top_feed **out, clave_client *client, const char *path, int wakeup)
{
    struct top_feed *f = calloc(1, sizeof *f);
    *out = f;
    if (!f)
        return CLAVE_ENOMEM;
    *f = (struct top_feed){.client = client, .path = path, .wakeup = wakeup};
    f->mem = clave__mem_or_default(NULL);
    clave__lock_deadlocks_init(&f->waits, &f->mem, clave_random_seed());
    clave_err err = clave__lock_model_init(&f->model, &f->mem, clave_random_seed(), MODEL_BYTES);
    clave_err ran = err == CLAVE_OK ? clave_client_run(client, top_feed_begin, f) : err;
    err = ran == CLAVE_OK ? f->err : ran;
    if (err != CLAVE_OK) {
        top_feed_free(f);
        *out = NULL;
    }
    return err;
}

void top_feed_free(struct top_feed *f)
{
    if (!f)
        return;
    if (f->cache)
        clave_client_run(f->client, top_feed_end, f);
    clave__lock_deadlocks_fini(&f->waits);
    clave__lock_model_fini(&f->model);
    free(f);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct top_read {
    struct top_feed *f;
    const char *path;
    bool leases;
    struct top_view *out;
    clave_err err;
};

/* Since when this place is held or queued; at most, if it was held already when the model began and
 * its node does not tell. */
static void top_read_since(const struct lock_node *p, struct top_place *out)
{
    enum lock_since how;
    int64_t since = p->holds ? clave__lock_held_since(p, &how) : -1;
    out->since = p->unreadable ? -1 : p->queued;
    out->at_most = p->holds && !p->unreadable && since < 0;
    if (since >= 0)
        out->since = since;
}

static void top_read_place(struct top_read *r, const struct lock_node *p, struct top_place *out)
{
    struct lock_label label;
    const char *client = clave__lock_client(p);
    clave__lock_label(p, &label);
    *out = (struct top_place){.role = clave__lock_role_of_side(p),
                              .client = client ? client : "-",
                              .node = strdup(p->name),
                              .whose = strdup(label.whose),
                              .task = strdup(label.task),
                              .host = label.host ? strdup(label.host) : NULL,
                              .pid = label.pid,
                              .token = p->token,
                              .waits = !p->holds && !p->left_over && p->kind != QUEUE_LATCH,
                              .outside = clave__lock_is_outside(p),
                              .left_over = p->left_over,
                              .unreadable = p->unreadable,
                              .asked = p->asked};
    if (!out->node || !out->whose || !out->task || (label.host && !out->host))
        r->err = CLAVE_ENOMEM;
    top_read_since(p, out);
}

static void top_read_lock(struct top_read *r, const struct lock_queue *q)
{
    assert(r->out->nlocks < r->f->model.queues.count);
    struct top_lock *l = &r->out->locks[r->out->nlocks];
    const struct lock_node *holder = clave__lock_holder_after(q, NULL);
    const struct lock_node *first = holder ? holder : clave__lock_left_over_after(q, NULL);
    const struct lock_node *waiter = clave__lock_waiter_after(q, NULL);
    const struct lock_stranger *stranger = clave__lock_stranger_after(q, "");
    enum lock_queue_kind kind = clave__lock_kind(q);
    bool waits = waiter && !waiter->unreadable && kind != LOCK_KIND_ELECTION;
    *l = (struct top_lock){.path = strdup(q->path),
                           .leases = q->leases,
                           .kind = kind,
                           .deadlocked = clave__lock_deadlocks_has(&r->f->waits, q),
                           .outside = clave__lock_has_outside(q),
                           .holder.since = -1,
                           .nholders = q->nholders,
                           .nwaiters = clave__lock_nwaiters(q),
                           .nleft_over = clave__lock_nleft_over(q),
                           .nstrangers = clave__lock_nstrangers(q),
                           .stranger = stranger ? strdup(stranger->path) : NULL,
                           .stranger_what = stranger ? clave__lock_stranger_what(stranger) : NULL,
                           .bad_limit = clave__lock_has_bad_limit(q),
                           .waiting_since = waits ? waiter->queued : -1};
    if (!l->path || (stranger && !l->stranger)) {
        free(l->path);
        free(l->stranger);
        r->err = CLAVE_ENOMEM;
        return;
    }
    r->out->nlocks++;
    if (first)
        top_read_place(r, first, &l->holder);
}

static void top_read_places(struct top_read *r, const struct lock_queue *q)
{
    struct top_view *out = r->out;
    size_t n = q->nholders + clave__lock_nleft_over(q) + clave__lock_nwaiters(q);
    out->places = calloc(n + 1, sizeof *out->places);
    if (!out->places) {
        r->err = CLAVE_ENOMEM;
        return;
    }
    for (struct lock_node *p = NULL; (p = clave__lock_holder_after(q, p));)
        top_read_place(r, p, &out->places[out->nplaces++]);
    for (struct lock_node *p = NULL; (p = clave__lock_left_over_after(q, p));)
        top_read_place(r, p, &out->places[out->nplaces++]);
    for (struct lock_node *p = NULL; (p = clave__lock_waiter_after(q, p));)
        top_read_place(r, p, &out->places[out->nplaces++]);
    assert(out->nplaces == n);
}

/* Several owners may wait for the same lock, and each has its path in the list: whether this is the
 * first with that path. */
static bool top_is_first(const struct lock_deadlock *d, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(d->paths[k], d->paths[i]) == 0)
            return false;
    return true;
}

static void top_read_deadlocks(struct top_read *r)
{
    struct top_feed *f = r->f;
    r->out->deadlocks = calloc(f->waits.nfound + 1, sizeof *r->out->deadlocks);
    for (struct list *at = f->waits.found.next; at != &f->waits.found; at = at->next) {
        const struct lock_deadlock *d = LIST_ENTRY(at, struct lock_deadlock, link);
        if (!d->certain)
            continue;
        char *paths = NULL;
        size_t n;
        FILE *text = open_memstream(&paths, &n);
        for (size_t i = 0; text && i < d->npaths; i++)
            if (top_is_first(d, i))
                fprintf(text, "%s%s", i > 0 ? ", " : "", d->paths[i]);
        if (!r->out->deadlocks || !text || fclose(text) != 0)
            r->err = CLAVE_ENOMEM;
        else
            r->out->deadlocks[r->out->ndeadlocks++] = paths;
    }
}

static void top_read_server(struct top_read *r, const clave_async_client *c)
{
    struct top_feed *f = r->f;
    struct top_view *out = r->out;
    clave_target t = clave_async_client_target(c);
    char server[ADDRESS_CAP];
    out->server = strdup(connect_address(&t, server));
    out->read_only = clave_async_client_state(c) == CLAVE_STATE_READ_ONLY;
    out->loaded = f->loaded;
    out->stale_at = f->stale_at;
    out->hidden = f->unreadable > 0;
    out->partial = !clave_async_cache_status_of(f->cache).complete || f->model.left_out > 0;
    if (!out->server)
        r->err = CLAVE_ENOMEM;
}

static void top_read_all(clave_async_client *c, void *arg)
{
    struct top_read *r = arg;
    struct top_feed *f = r->f;
    struct lock_queue *q;
    bool leases = false;
    f->told = false;
    while ((q = clave__lock_model_take_dirty(&f->model)))
        clave__lock_model_settle(&f->model, q);
    clave__lock_deadlocks_look(&f->waits, &f->model);
    top_read_server(r, c);
    r->out->err = f->err;
    r->out->locks = calloc(f->model.queues.count + 1, sizeof *r->out->locks);
    if (!r->out->locks)
        r->err = CLAVE_ENOMEM;
    for (const char *at = "";
         r->err == CLAVE_OK && (q = clave__lock_model_after(&f->model, at, leases)); at = q->path) {
        leases = q->leases;
        top_read_lock(r, q);
    }
    q = r->path ? clave__lock_model_get(&f->model, r->path, r->leases) : NULL;
    if (q && r->err == CLAVE_OK)
        top_read_places(r, q);
    top_read_deadlocks(r);
}

clave_err top_feed_read(struct top_feed *f, const char *path, bool leases, struct top_view *out)
{
    struct top_read r = {f, path, leases, out, CLAVE_OK};
    *out = (struct top_view){.loaded = false};
    clave_err err = clave_client_run(f->client, top_read_all, &r);
    if (err == CLAVE_OK)
        err = r.err;
    if (err != CLAVE_OK)
        top_view_fini(out);
    return err;
}

static void top_place_fini(struct top_place *p)
{
    free(p->node);
    free(p->whose);
    free(p->task);
    free(p->host);
}

void top_view_fini(struct top_view *v)
{
    for (size_t i = 0; i < v->nlocks; i++) {
        free(v->locks[i].path);
        free(v->locks[i].stranger);
        top_place_fini(&v->locks[i].holder);
    }
    for (size_t i = 0; i < v->nplaces; i++)
        top_place_fini(&v->places[i]);
    for (size_t i = 0; i < v->ndeadlocks; i++)
        free(v->deadlocks[i]);
    free(v->locks);
    free(v->places);
    free(v->deadlocks);
    free(v->server);
    *v = (struct top_view){.loaded = false};
}

static void top_read_json(clave_async_client *c, void *arg)
{
    struct top_feed *f = arg;
    struct lock_queue *q;
    bool leases = false;
    (void)c;
    for (const char *at = ""; (q = clave__lock_model_after(&f->model, at, leases)); at = q->path) {
        struct json j = json_to(stdout);
        leases = q->leases;
        clave__lock_json(&j, NULL, q, clave__clock_wall(), JSON_PLACES);
        putchar('\n');
    }
}

clave_err top_feed_json(struct top_feed *f)
{
    return clave_client_run(f->client, top_read_json, f);
}
