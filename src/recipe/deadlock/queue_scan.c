/* queue_scan.c - reads the lock queues below some paths once. Called by deadlock_schedule.c. What
 * must stay true: at most WINDOW requests are pending at a time. */
#include "recipe/deadlock/queue_scan.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/path.h"
#include "client/client_for_recipes.h"
#include "recipe/queue/queue_kind.h"

/* The bound on pending requests leaves room between them for heartbeats and the user's own
 * requests. */
enum { WINDOW = 64, FIRST_ROOM = 16 };

static void scan_proceed(struct queue_scan *s);

/* ---- creating and freeing -------------------------------------------------------------------- */

static void free_queue(struct queue_scan *s, struct queue_scan_queue *q)
{
    clave__queue_nodes_fini(&q->nodes);
    clave__mem_free(s->mem, q->path);
}

static void scan_destroy(struct queue_scan *s)
{
    for (size_t i = 0; i < s->nqueues; i++)
        free_queue(s, &s->queues[i]);
    for (size_t i = 0; i < s->npaths; i++)
        clave__mem_free(s->mem, s->paths[i]);
    clave__mem_free(s->mem, s->queues);
    clave__mem_free(s->mem, s->paths);
    clave__mem_free(s->mem, s);
}

void clave__queue_scan_free(struct queue_scan *s)
{
    if (s && s->pending > 0) {
        s->done = NULL;
        s->err = CLAVE_ECANCELED;
    } else if (s) {
        scan_destroy(s);
    }
}

static void scan_fault(struct queue_scan *s, clave_err err)
{
    if (s->err == CLAVE_OK)
        s->err = err;
}

/* ---- what has to be read --------------------------------------------------------------------- */

/* Makes room for one more element of `size` bytes. NULL: no memory, and the list is unchanged. */
static void *scan_grow(struct queue_scan *s, void *list, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return list;
    size_t more = *room ? 2 * *room : FIRST_ROOM;
    void *larger = clave__mem_realloc(s->mem, list, more * size);
    if (larger)
        *room = more;
    return larger;
}

/* Takes over `path`, which is NULL if there was no memory for it. */
static clave_err scan_add_path(struct queue_scan *s, char *path)
{
    char **paths = scan_grow(s, s->paths, s->npaths, &s->path_cap, sizeof *paths);
    if (paths)
        s->paths = paths;
    if (!paths || !path) {
        clave__mem_free(s->mem, path);
        return CLAVE_ENOMEM;
    }
    s->paths[s->npaths++] = path;
    return CLAVE_OK;
}

/* The kind of place that this name has; QUEUE_OTHER: it is not a place in a queue. */
static enum queue_kind scan_kind_of(const char *name)
{
    enum queue_kind kind = clave__queue_kind_of(name);
    const struct queue_order_rule *rule = clave__queue_kind_rule(1u << kind);
    return rule && clave__queue_order_key(rule, name).plain ? kind : QUEUE_OTHER;
}

/* The rule of the queue that was listed; NULL: it is not a queue, or it is an election, whose
 * candidates do not wait. */
static const struct queue_order_rule *scan_rule_of_all(const clave_result *res)
{
    unsigned kinds = 0;
    for (size_t i = 0; i < res->nnames; i++)
        kinds |= 1u << scan_kind_of(res->names[i]);
    const struct queue_order_rule *rule = clave__queue_kind_rule(kinds);
    return rule == &clave__queue_order_latch ? NULL : rule;
}

static bool scan_is_contender(const struct queue_order_rule *rule, const char *name,
                              const char *first)
{
    (void)first;
    return clave__queue_order_key(rule, name).contender;
}

/* True if somebody can be waiting here. Nobody waits in a queue of one, except that an acquire of a
 * lease may wait for the leases of others. */
static bool scan_is_relevant(const struct queue_order_rule *rule, const clave_result *res)
{
    return rule && (res->nnames > 1 || rule == &clave__queue_order_lease ||
                    strcmp(clave__path_name(res->path), "locks") == 0);
}

static clave_err scan_add_queue(struct queue_scan *s, const clave_result *res)
{
    const struct queue_order_rule *rule = scan_rule_of_all(res);
    if (!scan_is_relevant(rule, res))
        return CLAVE_OK;
    struct queue_scan_queue *queues = scan_grow(s, s->queues, s->nqueues, &s->cap, sizeof *queues);
    if (!queues)
        return CLAVE_ENOMEM;
    s->queues = queues;
    struct queue_scan_queue *q = &s->queues[s->nqueues++];
    *q = (struct queue_scan_queue){.rule = rule, .path = clave__mem_strdup(s->mem, res->path)};
    return q->path ? clave__queue_nodes_init(&q->nodes, s->mem, rule, scan_is_contender, res, s)
                   : CLAVE_ENOMEM;
}

static clave_err scan_take_names(struct queue_scan *s, const clave_result *res)
{
    s->counted += res->nnames;
    if (s->max > 0 && s->counted > s->max) {
        clave__client_fault_of(s->client, CLAVE_ETOOBIG, "",
                               "more than %zu nodes below %s: look for deadlocks in a smaller tree",
                               s->max, s->paths[0]);
        return CLAVE_ETOOBIG;
    }
    clave_err err = scan_add_queue(s, res);
    for (size_t i = 0; s->descends && err == CLAVE_OK && i < res->nnames; i++)
        if (scan_kind_of(res->names[i]) == QUEUE_OTHER)
            err = scan_add_path(s, clave__path_child(s->mem, res->path, res->names[i]));
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void scan_on_answer(struct queue_scan *s)
{
    assert(s->pending > 0);
    s->pending--;
    scan_proceed(s);
}

static void scan_on_names(clave_async_client *c, const clave_result *res, void *arg)
{
    struct queue_scan *s = arg;
    (void)c;
    if (res->err == CLAVE_OK && s->err == CLAVE_OK)
        scan_fault(s, scan_take_names(s, res));
    else if (res->err != CLAVE_ENONODE && res->err != CLAVE_ENOAUTH)
        scan_fault(s, res->err);
    scan_on_answer(s);
}

static void scan_on_data(clave_async_client *c, const clave_result *res, void *arg)
{
    struct queue_node *node = arg;
    struct queue_scan *s = node->reader;
    (void)c;
    if (res->err == CLAVE_OK && s->err == CLAVE_OK) {
        scan_fault(s, clave__queue_node_take(node, s->mem, res));
        node->there = node->stat.ephemeral_owner != 0;
    } else if (res->err != CLAVE_ENONODE && res->err != CLAVE_ENOAUTH) {
        scan_fault(s, res->err);
    }
    scan_on_answer(s);
}

static void scan_on_synced(clave_async_client *c, const clave_result *res, void *arg)
{
    (void)c;
    scan_fault(arg, res->err);
    scan_on_answer(arg);
}

/* The next node to be read; NULL: all have been read. */
static struct queue_node *scan_next_node(struct queue_scan *s)
{
    for (; s->in_queue < s->nqueues; s->in_queue++, s->at_node = 0)
        if (s->at_node < s->queues[s->in_queue].nodes.n)
            return &s->queues[s->in_queue].nodes.list[s->at_node++];
    return NULL;
}

/* Sends the next request. Returns false if there is nothing to request at the moment. */
static bool scan_ask_next(struct queue_scan *s)
{
    clave_err err = CLAVE_OK;
    if (s->listed < s->npaths) {
        err = clave_async_children(s->client, s->paths[s->listed++], NULL, scan_on_names, s);
    } else {
        s->reading = s->reading || s->pending == 0;
        struct queue_node *node = s->reading ? scan_next_node(s) : NULL;
        if (!node)
            return false;
        err = clave_async_get(s->client, node->path, NULL, scan_on_data, node);
    }
    if (err == CLAVE_OK)
        s->pending++;
    scan_fault(s, err);
    return true;
}

static void scan_proceed(struct queue_scan *s)
{
    while (s->err == CLAVE_OK && s->pending < WINDOW && scan_ask_next(s))
        continue;
    if (s->pending > 0)
        return;
    if (s->done)
        s->done(s, s->arg);
    else
        scan_destroy(s);
}

/* True if this path will be read because of another one. */
static bool scan_is_covered(const struct queue_scan_options *o, size_t at)
{
    const char *path = o->paths[at];
    for (size_t i = 0; i < o->n; i++) {
        const char *other = o->paths[i];
        size_t len = strcmp(other, "/") == 0 ? 0 : strlen(other);
        bool same = strcmp(other, path) == 0;
        bool below = o->descends && strncmp(path, other, len) == 0 && path[len] == '/';
        if (i != at && (same ? i < at : below))
            return true;
    }
    return false;
}

clave_err clave__queue_scan_new(struct queue_scan **out, clave_async_client *c,
                                const struct queue_scan_options *o)
{
    const struct clave_mem *mem = clave__client_mem(c);
    struct queue_scan *s = clave__mem_zalloc(mem, sizeof *s);
    *out = NULL;
    if (!s)
        return CLAVE_ENOMEM;
    *s = (struct queue_scan){.client = c, .mem = mem, .done = o->done, .arg = o->arg};
    s->descends = o->descends;
    s->max = o->max;
    clave_err err = o->n > 0 ? CLAVE_OK : CLAVE_EINVAL;
    for (size_t i = 0; err == CLAVE_OK && i < o->n; i++)
        if (!scan_is_covered(o, i))
            err = scan_add_path(s, clave__mem_strdup(mem, o->paths[i]));
    /* a follower may lag behind, but everything committed by now must be seen */
    if (err == CLAVE_OK)
        err = clave_async_sync(c, s->paths[0], scan_on_synced, s);
    if (err != CLAVE_OK) {
        scan_destroy(s);
        return err;
    }
    s->pending = 1;
    *out = s;
    return CLAVE_OK;
}

const struct queue_scan_queue *clave__queue_scan_find(const struct queue_scan *s, const char *path,
                                                      size_t n)
{
    for (size_t i = 0; i < s->nqueues; i++)
        if (strlen(s->queues[i].path) == n && memcmp(s->queues[i].path, path, n) == 0)
            return &s->queues[i];
    return NULL;
}
