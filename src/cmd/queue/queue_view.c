/* queue_view.c - reads the nodes of a lock and decides by their names which kind it is and who
 * holds it (queue_view.h). The order is the recipes' own (recipe/contender/queue_order.h), and so
 * is who waits for whom (queue_kind.h). Two round trips: what could be listed, behind a sync; then
 * the data of all nodes. (A cache of the path takes two more, and does not know a node whose Stat
 * may not be read.) */
#include "cmd/queue/queue_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "cmd/queue/participant_text.h"
#include "cmd/queue/request_window.h"
#include "cmd/run/held_since.h"
#include "observe/lock_model.h"
#include "recipe/contender/participant_list.h"
#include "recipe/contender/queue_kind.h"

enum kind { KIND_QUEUE, KIND_SHARED, KIND_COUNTED, KIND_ELECTION };

/* Decides the kind by the names of the nodes. Without any: a queue. */
static enum kind queue_view_kind_of(const clave_result *names)
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

/* The newest lease waits for room if its session is the first of those who acquire one, and the
 * leases tell a limit that they exceed (as observe/lock_grants.c has it). */
static bool queue_view_lacks_room(const struct queue_view *l)
{
    uint32_t limit = 0;
    for (size_t i = 0; i < l->nleases; i++)
        if (l->list[i].p->identity.limit > 0)
            limit = l->list[i].p->identity.limit;
    if (limit == 0 || l->nleases <= limit || l->nleases == l->n)
        return false;
    int64_t first = l->list[l->nleases].p->stat.ephemeral_owner;
    return first != 0 && first == l->list[l->nleases - 1].p->stat.ephemeral_owner;
}

/* Who still waits for room is listed once, at the place in the queue. */
static void place_leases(struct queue_view *l)
{
    if (queue_view_lacks_room(l)) {
        l->nleases--;
        l->n--;
        memmove(&l->list[l->nleases], &l->list[l->nleases + 1],
                (l->n - l->nleases) * sizeof *l->list);
    }
    for (size_t i = 0; i < l->n; i++) {
        bool lease = i < l->nleases;
        l->list[i].holds = lease;
        l->list[i].role = lease ? "lease" : "waiting";
        l->list[i].below = lease ? "leases" : "locks";
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The first flight: a sync, and what is listed behind it. */
enum { FLIGHT_SYNC, FLIGHT_TOP, FLIGHT_LEASES, FLIGHT_LOCKS, FLIGHT };

struct queue_view_read {
    struct queue_view *out;
    const char *path;
    char *sides[2]; /* the paths of leases and locks */
    enum kind kind;
    clave_err err;
};

static void queue_view_fail(struct queue_view_read *r, clave_err err)
{
    if (r->err == CLAVE_OK && err != CLAVE_ENONODE)
        r->err = err;
}

static clave_err queue_view_submit_names(clave_async_client *c, size_t i, clave_result_cb *cb,
                                         void *cb_arg, void *arg)
{
    const struct queue_view_read *r = arg;
    if (i == FLIGHT_SYNC)
        return clave_async_sync(c, r->path, cb, cb_arg);
    const char *path = i == FLIGHT_TOP ? r->path : r->sides[i - FLIGHT_LEASES];
    return clave_async_children(c, path, NULL, cb, cb_arg);
}

/* Other nodes may be below the path of a lock, or be all there is. */
static void queue_view_keep_places(struct queue_nodes *nodes)
{
    size_t kept = 0;
    for (size_t i = 0; i < nodes->n; i++)
        if (clave__lock_is_place(nodes->list[i].path))
            nodes->list[kept++] = nodes->list[i];
        else
            clave__mem_free(nodes->mem, nodes->list[i].path);
    nodes->n = kept;
}

static void queue_view_order(struct queue_view_read *r, size_t side,
                             const struct queue_order_rule *rule, const clave_result *names)
{
    bool own = rule == &clave__queue_order_latch;
    if (names->nnames > 0)
        queue_view_fail(r, clave__queue_nodes_init(&r->out->nodes[side], &r->out->mem, rule,
                                                   own ? clave__participant_is_own_kind
                                                       : clave__participant_takes_part,
                                                   names, NULL));
    queue_view_keep_places(&r->out->nodes[side]);
}

/* They come in the order in which they were asked for. */
static void queue_view_got_names(size_t i, const clave_result *res, void *arg)
{
    static const struct queue_order_rule *const rules[] = {
        [KIND_QUEUE] = &clave__queue_order_mutex,
        [KIND_SHARED] = &clave__queue_order_write,
        [KIND_ELECTION] = &clave__queue_order_latch,
    };
    struct queue_view_read *r = arg;
    bool counted = r->kind == KIND_COUNTED;
    if (res->err != CLAVE_OK) {
        queue_view_fail(r, i <= FLIGHT_TOP || counted ? res->err : CLAVE_OK);
        return;
    }
    if (i == FLIGHT_TOP) {
        r->kind = queue_view_kind_of(res);
        if (r->kind != KIND_COUNTED)
            queue_view_order(r, 0, rules[r->kind], res);
    } else if (i == FLIGHT_LEASES && counted) {
        queue_view_order(r, 0, &clave__queue_order_lease, res);
    } else if (i == FLIGHT_LOCKS && counted) {
        queue_view_order(r, 1, &clave__queue_order_mutex, res);
    }
}

static struct queue_node *queue_view_node(const struct queue_view *l, size_t i)
{
    size_t n = l->nodes[0].n;
    return i < n ? &l->nodes[0].list[i] : &l->nodes[1].list[i - n];
}

static clave_err queue_view_submit_data(clave_async_client *c, size_t i, clave_result_cb *cb,
                                        void *cb_arg, void *arg)
{
    const struct queue_view_read *r = arg;
    return clave_async_get(c, queue_view_node(r->out, i)->path, NULL, cb, cb_arg);
}

/* Of a node that may not be read, only its place in the queue is known. One that is gone has none.
 */
static void queue_view_got_data(size_t i, const clave_result *res, void *arg)
{
    struct queue_view_read *r = arg;
    struct queue_view *l = r->out;
    struct queue_node *node = queue_view_node(l, i);
    if (res->err != CLAVE_OK && res->err != CLAVE_ENOAUTH) {
        queue_view_fail(r, res->err);
        return;
    }
    l->list[l->n].held_since = -1;
    if (res->err == CLAVE_OK) {
        l->list[l->n].held_since = held_since(res->data, res->len, res->stat);
        queue_view_fail(r, clave__queue_node_take(node, &l->mem, res));
    }
    l->participants[l->n] =
        (clave_participant){.node = node->name, .identity = node->identity, .stat = node->stat};
    l->list[l->n].p = &l->participants[l->n];
    l->list[l->n].asked = participant_text_is_asked(&l->participants[l->n]);
    l->n++;
    l->nleases += i < l->nodes[0].n;
}

static clave_err queue_view_run(clave_client *s, struct queue_view_read *r, int64_t timeout_ms)
{
    struct queue_view *l = r->out;
    struct request_window_plan names = {FLIGHT, queue_view_submit_names, queue_view_got_names, r};
    clave_err err = request_window_run(s, &names, timeout_ms);
    if (err == CLAVE_OK)
        err = r->err;
    size_t n = l->nodes[0].n + l->nodes[1].n;
    if (err != CLAVE_OK || n == 0)
        return err;
    struct request_window_plan data = {n, queue_view_submit_data, queue_view_got_data, r};
    l->list = calloc(n, sizeof *l->list);
    l->participants = calloc(n, sizeof *l->participants);
    if (!l->list || !l->participants)
        return CLAVE_ENOMEM;
    err = request_window_run(s, &data, timeout_ms);
    return err == CLAVE_OK ? r->err : err;
}

clave_err queue_view_read(clave_client *s, const char *path, int64_t timeout_ms,
                          struct queue_view *out)
{
    static void (*const place[])(struct queue_view *) = {
        [KIND_QUEUE] = place_queue,
        [KIND_SHARED] = place_sides,
        [KIND_COUNTED] = place_leases,
        [KIND_ELECTION] = place_queue,
    };
    *out = (struct queue_view){.mem = clave__mem_or_default(NULL)};
    struct queue_view_read r = {.out = out, .path = path};
    r.sides[0] = clave__path_child(&out->mem, path, "leases");
    r.sides[1] = clave__path_child(&out->mem, path, "locks");
    clave_err err = r.sides[0] && r.sides[1] ? queue_view_run(s, &r, timeout_ms) : CLAVE_ENOMEM;
    clave__mem_free(&out->mem, r.sides[0]);
    clave__mem_free(&out->mem, r.sides[1]);
    if (err == CLAVE_OK)
        place[r.kind](out);
    else
        queue_view_fini(out);
    return err;
}

void queue_view_fini(struct queue_view *l)
{
    clave__queue_nodes_fini(&l->nodes[0]);
    clave__queue_nodes_fini(&l->nodes[1]);
    free(l->participants);
    free(l->list);
    *l = (struct queue_view){.n = 0};
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
