/* queue_view.c - reads the nodes of a lock and decides by their names which kind it is and who
 * holds it (queue_view.h). The order is the recipes' own (recipe/contender/queue_order.h), and so
 * is who waits for whom (queue_kind.h). */
#include "cmd/queue/queue_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "clave/async/leader.h"
#include "clave/async/rwlock.h"
#include "clave/async/semaphore.h"
#include "recipe/contender/queue_kind.h"

enum kind { KIND_QUEUE, KIND_SHARED, KIND_COUNTED, KIND_ELECTION };

/* Decides the kind by the names of the nodes. Without any: a queue. */
static enum kind queue_view_kind_of(const clave_reply *names)
{
    unsigned kinds = 0;
    bool counted = false;
    for (size_t i = 0; i < names->nnames; i++) {
        const char *name = names->names[i];
        kinds |= 1u << clave__queue_kind_of(name);
        counted = counted || strcmp(name, "leases") == 0 || strcmp(name, "locks") == 0;
    }
    const struct queue_order_rule *rule = clave__queue_kind_rule(kinds);
    if (rule == &clave__queue_order_write)
        return KIND_SHARED;
    if (rule == &clave__queue_order_latch)
        return KIND_ELECTION;
    return counted ? KIND_COUNTED : KIND_QUEUE;
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

static const char *queue_view_role(bool sides, enum queue_kind kind, bool holds)
{
    bool reads = kind == QUEUE_READ || kind == QUEUE_KAZOO_READ;
    if (!sides)
        return holds ? "holder" : "waiting";
    if (holds)
        return reads ? "reader" : "writer";
    return reads ? "to-read" : "to-write";
}

static void queue_view_place(struct queue_view *l, bool sides)
{
    unsigned before = 0;
    for (size_t i = 0; i < l->n; i++) {
        struct queue_view_place *at = &l->list[i];
        enum queue_kind kind = clave__queue_kind_of(at->p->node);
        bool outside = before & clave__queue_kind_unseen(kind, at->p->node);
        at->holds = !outside && !(before & clave__queue_kind_waits_for(kind));
        at->role = outside ? "outside" : queue_view_role(sides, kind, at->holds);
        before |= 1u << kind;
    }
}

static void place_sides(struct queue_view *l)
{
    queue_view_place(l, true);
}

static void place_queue(struct queue_view *l)
{
    queue_view_place(l, false);
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
    if (err == CLAVE_OK)
        place[kind](out);
    else
        queue_view_fini(out);
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
