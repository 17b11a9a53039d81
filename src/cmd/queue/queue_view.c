/* queue_view.c - reads the nodes of a lock and decides by their names which kind it is and who
 * holds it (queue_view.h). The order is the recipes' own (recipe/contender/queue_order.h). */
#include "cmd/queue/queue_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "clave/async/leader.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "recipe/contender/kazoo.h"
#include "recipe/contender/queue_order.h"

enum kind { KIND_QUEUE, KIND_SHARED, KIND_COUNTED, KIND_ELECTION };

static bool is_named(const char *name, const struct queue_order_rule *rule)
{
    return strstr(name, rule->base) && clave__queue_order_is_kind(rule, name);
}

/* Decides the kind by the names of the nodes. Without any: a queue. */
static enum kind queue_view_kind_of(const clave_reply *names)
{
    for (size_t i = 0; i < names->nnames; i++) {
        const char *name = names->names[i];
        if (is_named(name, &clave__queue_order_read) || is_named(name, &clave__queue_order_write))
            return KIND_SHARED;
        if (is_named(name, &clave__queue_order_latch))
            return KIND_ELECTION;
        if (strcmp(name, "leases") == 0 || strcmp(name, "locks") == 0)
            return KIND_COUNTED;
    }
    return KIND_QUEUE;
}

static clave_err find_kind(clave_client *s, const char *path, int64_t timeout_ms, enum kind *out)
{
    clave_reply *r = NULL;
    clave_err err = clave_sync(s, path, timeout_ms);
    if (err == CLAVE_OK)
        err = clave_children(s, path, timeout_ms, &r);
    *out = err == CLAVE_OK ? queue_view_kind_of(r) : KIND_QUEUE;
    clave_reply_free(r);
    return err == CLAVE_ENONODE ? CLAVE_OK : err;
}

static clave_err call_both_sides(clave_async_client *c, const char *path,
                                 clave_async_participants_cb *cb, void *arg)
{
    return clave_async_rwlock_participants(c, path, CLAVE_RWLOCK_BOTH, cb, arg);
}

/* Readers hold up to the first writer, a writer when nothing is before it. */
static void place_sides(struct queue_view *l)
{
    bool open = true;
    for (size_t i = 0; i < l->n; i++) {
        struct queue_view_place *at = &l->list[i];
        bool reads = clave__queue_order_is_kind(&clave__queue_order_read, at->p->node);
        at->holds = open && (reads || i == 0);
        at->role = at->holds ? (reads ? "reader" : "writer") : (reads ? "to-read" : "to-write");
        open = open && reads;
    }
}

static void place_queue(struct queue_view *l)
{
    for (size_t i = 0; i < l->n; i++) {
        l->list[i].holds = i == 0;
        l->list[i].role = i == 0 ? "holder" : "waiting";
    }
}

/* The newest lease may still wait for room: it is that of the first in the queue. */
static void place_leases(struct queue_view *l)
{
    for (size_t i = 0; i < l->n; i++) {
        bool lease = i < l->lists[0]->n;
        l->list[i].holds = lease;
        l->list[i].role = lease ? "lease" : "waiting";
        l->list[i].below = lease ? "leases" : "locks";
    }
}

/* A stock kazoo lock sees nodes of its own kind only: after a node of another kind, its place does
 * not tell whether it holds. */
static void mark_outsiders(struct queue_view *l)
{
    bool others = false;
    for (size_t i = 0; i < l->n; i++) {
        bool apart = clave__kazoo_is_default(l->list[i].p->node);
        if (apart && others) {
            l->list[i].holds = false;
            l->list[i].role = "outside";
        }
        others = others || !apart;
    }
}

static clave_err make_list(struct queue_view *l)
{
    size_t n = 0;
    for (size_t i = 0; i < 2; i++)
        n += l->lists[i] ? l->lists[i]->n : 0;
    l->list = n > 0 ? calloc(n, sizeof *l->list) : NULL;
    if (n > 0 && !l->list)
        return CLAVE_ENOMEM;
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; l->lists[i] && k < l->lists[i]->n; k++)
            l->list[l->n++].p = &l->lists[i]->list[k];
    return CLAVE_OK;
}

static clave_err read_queue_of_semaphore(clave_client *s, const char *path, int64_t timeout_ms,
                                         clave_participant_list **out)
{
    char *below = clave__path_child(NULL, path, "locks");
    if (!below)
        return CLAVE_ENOMEM;
    clave_err err = clave_participants(s, clave_async_participants, below, timeout_ms, out);
    free(below);
    return err;
}

clave_err queue_view_read(clave_client *s, const char *path, int64_t timeout_ms,
                          struct queue_view *out)
{
    static clave_participants_fn *const calls[] = {
        [KIND_QUEUE] = clave_async_participants,
        [KIND_SHARED] = call_both_sides,
        [KIND_COUNTED] = clave_async_semaphore_participants,
        [KIND_ELECTION] = clave_async_latch_participants,
    };
    static void (*const place[])(struct queue_view *) = {
        [KIND_QUEUE] = place_queue,
        [KIND_SHARED] = place_sides,
        [KIND_COUNTED] = place_leases,
        [KIND_ELECTION] = place_queue,
    };
    enum kind kind;
    *out = (struct queue_view){0};
    clave_err err = find_kind(s, path, timeout_ms, &kind);
    if (err == CLAVE_OK)
        err = clave_participants(s, calls[kind], path, timeout_ms, &out->lists[0]);
    if (err == CLAVE_OK && kind == KIND_COUNTED)
        err = read_queue_of_semaphore(s, path, timeout_ms, &out->lists[1]);
    if (err == CLAVE_OK)
        err = make_list(out);
    if (err == CLAVE_OK) {
        place[kind](out);
        mark_outsiders(out);
    } else {
        queue_view_fini(out);
    }
    return err;
}

void queue_view_fini(struct queue_view *l)
{
    clave_participant_list_free(l->lists[0]);
    clave_participant_list_free(l->lists[1]);
    free(l->list);
    *l = (struct queue_view){0};
}

char *queue_view_node_path(const char *path, const struct queue_view_place *at)
{
    if (!at->below)
        return clave__path_child(NULL, path, at->p->node);
    char *dir = clave__path_child(NULL, path, at->below);
    char *node = dir ? clave__path_child(NULL, dir, at->p->node) : NULL;
    free(dir);
    return node;
}
