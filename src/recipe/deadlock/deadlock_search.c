/* deadlock_search.c - runs two scans, and finds the cycles in what both have in common; the second
 * scan shows if a member of a cycle gives up by itself. Called by deadlock_schedule.c and by
 * clave_async_deadlocks_find. What must stay true: the callback runs exactly once, unless the
 * search was abandoned. */
#include "recipe/deadlock/deadlock_search.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "client/client_for_recipes.h"
#include "recipe/deadlock/deadlock_list.h"

enum { MAX_NODES = 50000 };

struct deadlock_search {
    clave_async_client *client;
    const struct clave_mem *mem;
    clave_async_deadlocks_cb *cb;
    void *arg;
    struct queue_scan *before;
    struct queue_scan *now; /* may be running, as may `before` while there is no `now` */
};

static void free_deadlock_search(struct deadlock_search *s)
{
    clave__queue_scan_free(s->before);
    clave__queue_scan_free(s->now);
    clave__mem_free(s->mem, s);
}

static void search_tell(struct deadlock_search *s, clave_err err, const struct deadlock_list *f)
{
    s->cb(s->client, err, f ? f->list : NULL, f ? f->n : 0, s->arg);
}

/* ---- the scans ------------------------------------------------------------------------------- */

/* Reports the result. The callback may free whatever started the search; it cannot abandon the
 * search, which has ended. */
static void search_conclude(struct deadlock_search *s)
{
    assert(s->before && s->now);
    struct queue_snapshot p;
    struct wait_verdict v = {0};
    struct deadlock_list f = {.mem = s->mem};
    clave_err err = s->now->err;
    if (err == CLAVE_OK) {
        err = clave__queue_snapshot_init(&p, s->before, s->now);
        if (err == CLAVE_OK) {
            err = clave__waitgraph_solve(s->mem, clave__client_hash_seed(s->client), p.queues, p.n,
                                         &v);
            if (err == CLAVE_OK)
                err = clave__deadlock_list_init(&f, s->now, &p, &v);
            clave__queue_snapshot_fini(&p);
        }
    }
    clave__waitgraph_fini(s->mem, &v);
    search_tell(s, err, &f);
    clave__deadlock_list_fini(&f);
    free_deadlock_search(s);
}

static void search_on_second(struct queue_scan *s, void *arg)
{
    (void)s;
    search_conclude(arg);
}

static clave_err search_is_anybody_stuck(const struct deadlock_search *s, bool *out)
{
    struct queue_snapshot p;
    struct wait_verdict v;
    *out = false;
    clave_err err = clave__queue_snapshot_init(&p, NULL, s->before);
    if (err != CLAVE_OK)
        return err;
    err = clave__waitgraph_solve(s->mem, clave__client_hash_seed(s->client), p.queues, p.n, &v);
    *out = err == CLAVE_OK && v.stuck > 0;
    clave__waitgraph_fini(s->mem, &v);
    clave__queue_snapshot_fini(&p);
    return err;
}

static clave_err search_look_again(struct deadlock_search *s)
{
    assert(!s->now);
    size_t n = s->before->nqueues;
    const char **paths = clave__mem_alloc(s->mem, n * sizeof *paths);
    if (!paths)
        return CLAVE_ENOMEM;
    for (size_t i = 0; i < n; i++)
        paths[i] = s->before->queues[i].path;
    struct queue_scan_options o = {.paths = paths, .n = n, .done = search_on_second, .arg = s};
    clave_err err = clave__queue_scan_new(&s->now, s->client, &o);
    clave__mem_free(s->mem, (void *)paths);
    return err;
}

static void search_on_first(struct queue_scan *s, void *arg)
{
    struct deadlock_search *search = arg;
    bool stuck = false;
    clave_err err = s->err;
    if (err == CLAVE_OK)
        err = search_is_anybody_stuck(search, &stuck);
    if (stuck)
        err = search_look_again(search);
    if (stuck && err == CLAVE_OK)
        return;
    search_tell(search, err, NULL);
    free_deadlock_search(search);
}

/* ---- creating and freeing -------------------------------------------------------------------- */

clave_err clave__deadlock_search_start(struct deadlock_search **out, clave_async_client *c,
                                       const struct deadlock_search_options *o,
                                       clave_async_deadlocks_cb *cb, void *arg)
{
    const struct clave_mem *mem = clave__client_mem(c);
    if (!cb)
        return CLAVE_EINVAL;
    struct deadlock_search *s = clave__mem_zalloc(mem, sizeof *s);
    if (!s)
        return CLAVE_ENOMEM;
    *s = (struct deadlock_search){.client = c, .mem = mem, .cb = cb, .arg = arg};
    struct queue_scan_options look = {.paths = o->roots,
                                      .n = o->nroots,
                                      .descends = true,
                                      .max = o->max_nodes,
                                      .done = search_on_first,
                                      .arg = s};
    clave_err err = clave__queue_scan_new(&s->before, c, &look);
    if (err != CLAVE_OK)
        clave__mem_free(mem, s);
    else if (out)
        *out = s;
    return err;
}

void clave__deadlock_search_abandon(struct deadlock_search *s)
{
    free_deadlock_search(s);
}

clave_err clave_async_deadlocks_find(clave_async_client *c, const char *const *roots, size_t nroots,
                                     clave_async_deadlocks_cb *cb, void *arg)
{
    struct deadlock_search_options o = {.roots = roots, .nroots = nroots, .max_nodes = MAX_NODES};
    return clave__deadlock_search_start(NULL, c, &o, cb, arg);
}
