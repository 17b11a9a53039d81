/* lock_deadlocks.c - deadlocks among the locks of a model (lock_deadlocks.h). The places that can
 * be part of a deadlock are collected into a scan, the form in which recipe/deadlock reads them
 * from a server, and the wait-for graph is solved there. What must stay true: a scan has the places
 * of a single moment. */
#include "observe/lock_deadlocks.h"

#include <assert.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/memory.h"
#include "base/path.h"
#include "observe/lock_holders.h"
#include "observe/lock_json.h"
#include "observe/lock_who.h"
#include "recipe/deadlock/deadlock_list.h"
#include "recipe/queue/identity.h"

enum { MOST_PLACES = 10000, JSON_MAX = 1 << 20 };

void clave__lock_deadlocks_init(struct lock_deadlocks *w, const struct clave_mem *mem,
                                uint64_t seed)
{
    *w = (struct lock_deadlocks){.mem = mem, .seed = seed, .complete = true};
    list_init(&w->found);
}

static void deadlocks_clear(struct lock_deadlocks *w, struct list *found)
{
    for (struct list *at; (at = list_pop_front(found));)
        clave__mem_free(w->mem, LIST_ENTRY(at, struct lock_deadlock, link));
}

void clave__lock_deadlocks_fini(struct lock_deadlocks *w)
{
    deadlocks_clear(w, &w->found);
}

/* ---- which places count ---------------------------------------------------------------------- */

/* The next place to be considered. Every lease counts, whoever holds it. Of those acquiring a
 * lease, the linked ones count, and also the first, because it has the turn. */
static struct lock_node *deadlocks_place_after(const struct lock_queue *q,
                                               const struct lock_node *last)
{
    struct lock_key key = last ? clave__lock_key(last) : (struct lock_key){"", ""};
    bool all = q->leases || (q->partner && !last);
    struct ordered_node *n =
        clave__ordered_after(&q->places, &key, all ? ORDERED_ANY : LOCK_MARK_LINKED);
    return n ? ORDERED_ENTRY(n, struct lock_node, node) : NULL;
}

static const struct queue_order_rule *deadlocks_rule(const struct lock_queue *q)
{
    unsigned kinds = 0;
    for (int kind = 0; kind < QUEUE_KINDS; kind++)
        kinds |= q->of_kind[kind] > 0 ? 1u << kind : 0;
    const struct queue_order_rule *rule = clave__queue_kind_rule(kinds);
    return rule == &clave__queue_order_latch ? NULL : rule; /* a candidate does not wait */
}

/* ---- collecting the places ------------------------------------------------------------------- */

static clave_err deadlocks_add_node(struct queue_scan *s, struct queue_scan_queue *to,
                                    const struct lock_node *p)
{
    assert(p->data || p->ndata == 0);
    struct queue_node *node = &to->nodes.list[to->nodes.n++];
    *node = (struct queue_node){.reader = s, .there = p->session != NULL};
    node->stat = (clave_stat){.czxid = p->token,
                              .ctime = p->queued,
                              .version = p->version,
                              .ephemeral_owner = p->session ? p->session->id : 0};
    node->path = clave__path_child(s->mem, to->path, p->name);
    node->data = clave__mem_strndup(s->mem, p->data ? p->data : "", p->ndata);
    if (!node->path || !node->data)
        return CLAVE_ENOMEM;
    node->name = clave__path_name(node->path);
    clave__identity_parse(node->data, p->ndata, &node->identity);
    return CLAVE_OK;
}

static clave_err deadlocks_add_queue(struct queue_scan *s, const struct lock_queue *q)
{
    const struct queue_order_rule *rule = deadlocks_rule(q);
    struct lock_node *p = NULL;
    size_t n = 0;
    if (!rule)
        return CLAVE_OK;
    while ((p = deadlocks_place_after(q, p)))
        n++;
    if (n == 0)
        return CLAVE_OK;
    s->counted += n;
    if (s->counted > MOST_PLACES)
        return CLAVE_ETOOBIG;
    struct queue_scan_queue *to = &s->queues[s->nqueues++];
    to->rule = rule;
    to->path = q->leases && q->nbare == 0 ? clave__path_child(s->mem, q->path, "leases")
                                          : clave__mem_strdup(s->mem, q->path);
    to->nodes = (struct queue_nodes){.mem = s->mem,
                                     .list = clave__mem_zalloc(s->mem, n * sizeof *to->nodes.list)};
    clave_err err = to->path && to->nodes.list ? CLAVE_OK : CLAVE_ENOMEM;
    while (err == CLAVE_OK && (p = deadlocks_place_after(q, p)))
        if (clave__queue_order_key(rule, p->name).contender)
            err = deadlocks_add_node(s, to, p);
    return err;
}

static clave_err deadlocks_scan(struct queue_scan *s, const struct lock_model *m)
{
    const struct lock_queue *q = NULL;
    size_t n = 0;
    while ((q = clave__lock_model_linked_after(m, q)))
        n++;
    s->queues = n > 0 ? clave__mem_zalloc(s->mem, 2 * n * sizeof *s->queues) : NULL;
    clave_err err = n == 0 || s->queues ? CLAVE_OK : CLAVE_ENOMEM;
    while (err == CLAVE_OK && n > 0 && (q = clave__lock_model_linked_after(m, q))) {
        bool with_leases = !q->leases && q->partner && q->partner->node.marks;
        if (with_leases)
            continue; /* a semaphore's leases are linked as well, and include this queue */
        err = deadlocks_add_queue(s, q);
        if (err == CLAVE_OK && q->partner)
            err = deadlocks_add_queue(s, q->partner);
    }
    return err;
}

static void deadlocks_scan_fini(struct queue_scan *s)
{
    for (size_t i = 0; i < s->nqueues; i++) {
        clave__queue_nodes_fini(&s->queues[i].nodes);
        clave__mem_free(s->mem, s->queues[i].path);
    }
    clave__mem_free(s->mem, s->queues);
}

/* ---- what was found -------------------------------------------------------------------------- */

/* The path that a member waits at. If it waits for a part of itself, that is not a lock, and the
 * path is that of the lock it holds. */
static size_t deadlocks_path_len(const clave_deadlock_member *member)
{
    return member->path ? strlen(member->path)
                        : clave__path_parent_len(member->node, strlen(member->node));
}

static void deadlocks_member_json(struct json *j, const clave_deadlock_member *member)
{
    char who[LOCK_WHO_CAP];
    clave__json_open(j, NULL, '{');
    clave__json_bytes(j, "path", member->path ? member->path : member->node,
                      deadlocks_path_len(member));
    clave__json_string(j, "node", member->node);
    clave__json_string(j, "blocker", member->blocker);
    clave__json_int64(j, "token", member->stat.czxid);
    clave__json_string(j, "identity",
                       clave__lock_who_says(&member->identity, member->stat.ephemeral_owner, who));
    clave__json_close(j, '}');
}

static void deadlocks_json(struct json *j, const clave_deadlock *d)
{
    clave__json_open(j, NULL, '{');
    clave__json_string(j, "text", d->text);
    clave__json_bool(j, "certain", d->certain);
    clave__json_open(j, "members", '[');
    for (size_t i = 0; i < d->n; i++)
        deadlocks_member_json(j, &d->members[i]);
    clave__json_close(j, ']');
    clave__json_string(j, "victim", d->victim < d->n ? d->members[d->victim].node : NULL);
    clave__json_close(j, '}');
}

/* Copies a deadlock into one allocation: the struct, the pointers to its paths, their texts, the
 * JSON. NULL: no memory. */
static struct lock_deadlock *deadlocks_keep(const struct lock_deadlocks *w, const clave_deadlock *d)
{
    struct buf text;
    clave__buf_init(&text, w->mem, JSON_MAX);
    struct json j = clave__json_to(&text);
    deadlocks_json(&j, d);
    size_t n = clave__buf_len(&text), size = sizeof(struct lock_deadlock) + d->n * sizeof(char *);
    for (size_t i = 0; i < d->n; i++)
        n += deadlocks_path_len(&d->members[i]) + 1;
    struct lock_deadlock *k = j.err == CLAVE_OK ? clave__mem_zalloc(w->mem, size + n + 1) : NULL;
    if (k) {
        const char **paths = (const char **)(void *)(k + 1);
        char *at = (char *)k + size;
        for (size_t i = 0; i < d->n; i++) {
            const clave_deadlock_member *member = &d->members[i];
            k->id += clave__map_hash_u64((uint64_t)member->stat.czxid);
            paths[i] = at;
            memcpy(at, member->path ? member->path : member->node, deadlocks_path_len(member));
            at += deadlocks_path_len(member) + 1;
        }
        k->id += d->certain;
        k->certain = d->certain;
        k->paths = paths;
        k->npaths = d->n;
        k->data = memcpy(at, clave__buf_bytes(&text), clave__buf_len(&text));
    }
    clave__buf_fini(&text);
    return k;
}

static bool deadlocks_is_known(struct list *before, uint64_t id)
{
    for (struct list *at = before->next; at != before; at = at->next)
        if (LIST_ENTRY(at, struct lock_deadlock, link)->id == id)
            return true;
    return false;
}

static void deadlocks_take(struct lock_deadlocks *w, const struct deadlock_list *f)
{
    struct list before;
    list_init(&before);
    list_splice(&before, &w->found);
    w->nfound = w->ncertain = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct lock_deadlock *k = deadlocks_keep(w, &f->list[i]);
        if (!k) {
            w->complete = false;
            continue;
        }
        k->fresh = !deadlocks_is_known(&before, k->id);
        w->ncertain += k->certain;
        w->total += k->fresh && k->certain;
        list_push_back(&w->found, &k->link);
        w->nfound++;
    }
    deadlocks_clear(w, &before);
}

void clave__lock_deadlocks_look(struct lock_deadlocks *w, const struct lock_model *m)
{
    struct queue_scan s = {.mem = w->mem};
    struct queue_snapshot p = {0};
    struct wait_verdict v = {0};
    struct deadlock_list f = {.mem = w->mem};
    clave_err err = deadlocks_scan(&s, m);
    w->nplaces = s.counted;
    if (err == CLAVE_OK && s.nqueues > 0)
        err = clave__queue_snapshot_init(&p, NULL, &s);
    if (err == CLAVE_OK && p.n > 0)
        err = clave__waitgraph_solve(w->mem, w->seed, p.queues, p.n, &v);
    if (err == CLAVE_OK)
        err = clave__deadlock_list_init(&f, &s, &p, &v);
    w->complete = err == CLAVE_OK;
    deadlocks_take(w, &f);
    clave__deadlock_list_fini(&f);
    clave__waitgraph_fini(w->mem, &v);
    if (p.mem)
        clave__queue_snapshot_fini(&p);
    deadlocks_scan_fini(&s);
}

/* True if the path that is waited for is the lock's own or, for the sides of a semaphore, below
 * it. */
static bool deadlocks_is_at(const struct lock_queue *q, const char *path)
{
    size_t n = strlen(q->path);
    if (strncmp(path, q->path, n) != 0)
        return false;
    return path[n] == '\0' ||
           (q->leases && (strcmp(path + n, "/leases") == 0 || strcmp(path + n, "/locks") == 0));
}

bool clave__lock_deadlocks_has(const struct lock_deadlocks *w, const struct lock_queue *q)
{
    for (struct list *at = w->found.next; at != &w->found; at = at->next) {
        const struct lock_deadlock *d = LIST_ENTRY(at, struct lock_deadlock, link);
        for (size_t i = 0; d->certain && i < d->npaths; i++)
            if (deadlocks_is_at(q, d->paths[i]))
                return true;
    }
    return false;
}
