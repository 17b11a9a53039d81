/* deadlock_schedule.c - a search for deadlocks, and when a waiting contender makes one. A search
 * makes two scans and looks for cycles in what both have in common, because the second scan shows
 * whether a member of a cycle has given up by itself. A contender searches at growing intervals,
 * and gives up if it is the victim of a deadlock.
 *
 * What must stay true: the callback of a search runs exactly once, unless the search was abandoned.
 * A contender gives up only if both readings of the queues make it the victim. */
#include "recipe/deadlock/deadlock_schedule.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/deadline.h"
#include "base/path.h"
#include "clave/async/deadlock.h"
#include "client/client_for_recipes.h"
#include "recipe/deadlock/deadlock_list.h"
#include "recipe/queue/identity.h"

struct deadlock_search_options {
    const char *const *roots;
    size_t nroots;
    size_t max_nodes;
};

enum { MOST_NODES = 50000 };

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

/* Implements clave_async_deadlocks_find. The search frees itself after its callback. *out (`out`
 * may be NULL) can be passed to _abandon. */
static clave_err deadlock_search_start(struct deadlock_search **out, clave_async_client *c,
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

clave_err clave_async_deadlocks_find(clave_async_client *c, const char *const *roots, size_t nroots,
                                     clave_async_deadlocks_cb *cb, void *arg)
{
    struct deadlock_search_options o = {.roots = roots, .nroots = nroots, .max_nodes = MOST_NODES};
    return deadlock_search_start(NULL, c, &o, cb, arg);
}

enum { MOST_DOUBLINGS = 6, LONGEST_MS = 60000, MOST_NODES_WAITING = 10000 };

/* ---- terms ----------------------------------------------------------------------------------- */

static clave_err deadlock_terms_add_root(struct deadlock_terms *t, clave_async_client *c,
                                         const char *root, size_t len)
{
    const char *fault = clave__path_fault(root, len, false);
    if (fault) {
        clave__client_fault(c, "the path \"%.*s\" to look for deadlocks at %s", (int)len, root,
                            fault);
        return CLAVE_EPATH;
    }
    t->roots[t->nroots] = clave__mem_strndup(t->mem, root, len);
    return t->roots[t->nroots++] ? CLAVE_OK : CLAVE_ENOMEM;
}

static clave_err deadlock_terms_check_options(const struct deadlock_terms_options *o)
{
    bool fine = o->delay_ms > 0 && (o->roots || o->nroots == 0) &&
                (o->len == 0 || clave__identity_is_form(o->data, o->len));
    return fine ? CLAVE_OK : CLAVE_EINVAL;
}

clave_err clave__deadlock_terms_init(struct deadlock_terms *t, clave_async_client *c,
                                     const char *path, const struct deadlock_terms_options *o)
{
    *t = (struct deadlock_terms){.mem = clave__client_mem(c)};
    if (o->delay_ms == 0)
        return o->nroots == 0 ? CLAVE_OK : CLAVE_EINVAL;
    clave_err err = deadlock_terms_check_options(o);
    if (err != CLAVE_OK)
        return err;
    size_t n = o->nroots > 0 ? o->nroots : 1;
    size_t parent = clave__path_parent_len(path, strlen(path));
    t->roots = clave__mem_zalloc(t->mem, n * sizeof *t->roots);
    if (!t->roots)
        return CLAVE_ENOMEM;
    t->delay_ms = o->delay_ms;
    if (o->nroots == 0)
        return deadlock_terms_add_root(t, c, path, strcmp(path, "/") == 0 ? 1 : parent);
    for (size_t i = 0; err == CLAVE_OK && i < n; i++)
        err = deadlock_terms_add_root(t, c, o->roots[i], strlen(o->roots[i]));
    return err;
}

void clave__deadlock_terms_fini(struct deadlock_terms *t)
{
    for (size_t i = 0; i < t->nroots; i++)
        clave__mem_free(t->mem, t->roots[i]);
    clave__mem_free(t->mem, t->roots);
    *t = (struct deadlock_terms){0};
}

void clave__deadlock_keep_text(const struct clave_mem *mem, char **kept, const char *text)
{
    clave__mem_free(mem, *kept);
    *kept = text ? clave__mem_strdup(mem, text) : NULL;
}

/* ---- looking --------------------------------------------------------------------------------- */

static void deadlock_schedule_look_later(struct deadlock_schedule *s)
{
    assert(s->terms);
    int64_t now = clave__client_now(s->client), delay = s->terms->delay_ms;
    for (unsigned i = 0; i < s->looks && i < MOST_DOUBLINGS && delay < LONGEST_MS; i++)
        delay *= 2;
    s->looks++;
    clave__client_timer_set(s->client, &s->timer, deadline_after(now, delay));
}

static const char *deadlock_schedule_victim_text(const struct deadlock_schedule *s,
                                                 const clave_deadlock *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].victim < list[i].n &&
            strcmp(list[i].members[list[i].victim].node, s->node) == 0)
            return list[i].text;
    return NULL;
}

/* An error of the search may pass, and is no reason to give up an acquire. */
static void deadlock_schedule_on_found(clave_async_client *c, clave_err err,
                                       const clave_deadlock *list, size_t n, void *arg)
{
    struct deadlock_schedule *s = arg;
    s->deadlock_search = NULL;
    const char *text = err == CLAVE_OK ? deadlock_schedule_victim_text(s, list, n) : NULL;
    if (err != CLAVE_OK)
        clave__log(clave__client_log(c), CLAVE_LOG_WARN, "looking for deadlocks of %s: %s", s->node,
                   err == CLAVE_ETOOBIG ? clave_async_client_errmsg(c) : clave_strerror(err));
    deadlock_schedule_look_later(s);
    if (text)
        s->on_deadlock(s, text);
}

static void deadlock_schedule_on_timer(struct timer *timer, int64_t now)
{
    struct deadlock_schedule *s = LIST_ENTRY(timer, struct deadlock_schedule, timer);
    assert(!s->deadlock_search);
    (void)now;
    struct deadlock_search_options o = {.roots = (const char *const *)s->terms->roots,
                                        .nroots = s->terms->nroots,
                                        .max_nodes = MOST_NODES_WAITING};
    clave_err err =
        deadlock_search_start(&s->deadlock_search, s->client, &o, deadlock_schedule_on_found, s);
    if (err != CLAVE_OK)
        deadlock_schedule_look_later(s);
}

void clave__deadlock_schedule_init(struct deadlock_schedule *s, clave_async_client *c,
                                   void (*on_deadlock)(struct deadlock_schedule *s,
                                                       const char *text))
{
    *s = (struct deadlock_schedule){.client = c, .on_deadlock = on_deadlock};
    clave__timer_init(&s->timer, deadlock_schedule_on_timer);
}

void clave__deadlock_schedule_begin(struct deadlock_schedule *s, const struct deadlock_terms *terms,
                                    const char *node)
{
    assert(node);
    if (!terms || terms->delay_ms == 0 || s->terms)
        return;
    s->terms = terms;
    s->node = node;
    s->looks = 0;
    deadlock_schedule_look_later(s);
}

void clave__deadlock_schedule_end(struct deadlock_schedule *s)
{
    clave__client_timer_clear(s->client, &s->timer);
    if (s->deadlock_search)
        free_deadlock_search(s->deadlock_search); /* its callback will not run */
    s->deadlock_search = NULL;
    s->terms = NULL;
}
