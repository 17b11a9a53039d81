/* queue_two_scans.c - derives owners and waits from two scans. Called by deadlock_schedule.c. What
 * must stay true: only what is in both scans counts. */
#include "recipe/deadlock/queue_two_scans.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* ---- owners ---------------------------------------------------------------------------------- */

static bool queue_two_scans_is_known(const clave_identity *id)
{
    return id->owner || id->task;
}

static char *queue_two_scans_format_owner(const struct queue_snapshot *p,
                                          const struct queue_node *node)
{
    const clave_identity *id = &node->identity;
    char session[24];
    snprintf(session, sizeof session, "0x%llx", (unsigned long long)node->stat.ephemeral_owner);
    const char *base = id->owner ? id->owner : session;
    const char *task = id->task ? id->task : "";
    size_t cap = strlen(base) + strlen(task) + 2;
    char *text = clave__mem_alloc(p->mem, cap);
    if (text)
        snprintf(text, cap, "%s%s%s", base, id->task ? "#" : "", task);
    return text;
}

static struct wait_claim *queue_two_scans_add_claim(struct queue_snapshot *p,
                                                    const struct queue_node *node)
{
    struct wait_claim *claim = &p->claims[p->nclaims];
    *claim = (struct wait_claim){.owner = queue_two_scans_format_owner(p, node),
                                 .known = queue_two_scans_is_known(&node->identity),
                                 .token = node->stat.czxid,
                                 .yields = node->identity.yields};
    if (!claim->owner)
        return NULL;
    p->nodes[p->nclaims++] = node;
    return claim;
}

/* ---- queues ---------------------------------------------------------------------------------- */

/* True if the earlier scan has the node. Both are in queue order, so the search continues at *at,
 * just after the node found last. */
static bool queue_two_scans_was_there(const struct queue_scan_queue *before, size_t *at,
                                      const struct queue_node *node)
{
    for (size_t i = *at; before && i < before->nodes.n; i++) {
        const struct queue_node *old = &before->nodes.list[i];
        if (strcmp(old->name, node->name) != 0)
            continue;
        *at = i + 1;
        return old->there && old->stat.czxid == node->stat.czxid;
    }
    return false;
}

static void queue_two_scans_set_place(struct wait_claim *claim, const struct wait_queue *q,
                                      const struct queue_order_rule *rule,
                                      const struct queue_node *const *nodes)
{
    const char *name = nodes[q->n]->name;
    claim->rank = q->n;
    if (rule == &clave__queue_order_lease)
        claim->kind = WAIT_LEASE;
    else if (rule == &clave__queue_order_write &&
             clave__queue_order_is_kind(&clave__queue_order_read, name))
        claim->kind = WAIT_SHARED;
    if (q->n == 0)
        return;
    const char *key = clave__queue_order_key(rule, name).text;
    if (strcmp(key, clave__queue_order_key(rule, nodes[q->n - 1]->name).text) == 0)
        claim->rank = q->claims[q->n - 1].rank;
}

static clave_err queue_two_scans_add_queue(struct queue_snapshot *p,
                                           const struct queue_scan_queue *now,
                                           const struct queue_scan_queue *before, bool all)
{
    size_t at = 0, first = p->nclaims;
    struct wait_queue *q = &p->queues[p->n++];
    *q = (struct wait_queue){.claims = &p->claims[first], .mutex_queue = WAIT_NONE};
    for (size_t i = 0; i < now->nodes.n; i++) {
        const struct queue_node *node = &now->nodes.list[i];
        if (!node->there || (!all && !queue_two_scans_was_there(before, &at, node)))
            continue;
        struct wait_claim *claim = queue_two_scans_add_claim(p, node);
        if (!claim)
            return CLAVE_ENOMEM;
        queue_two_scans_set_place(claim, q, now->rule, &p->nodes[first]);
        q->n++;
    }
    return CLAVE_OK;
}

/* ---- leases ---------------------------------------------------------------------------------- */

static size_t queue_two_scans_limit_said(const struct queue_scan_queue *q)
{
    size_t limit = 0;
    for (size_t i = 0; i < q->nodes.n; i++)
        if (q->nodes.list[i].identity.limit > limit)
            limit = q->nodes.list[i].identity.limit;
    return limit;
}

static size_t queue_two_scans_count_there(const struct queue_scan_queue *q)
{
    size_t n = 0;
    for (size_t i = 0; q && i < q->nodes.n; i++)
        n += q->nodes.list[i].there;
    return n;
}

/* Finds the queue of acquires for a queue of leases, and the limit that the nodes of either name.
 * If leases came or went between the scans, nothing can be concluded, because any of them may be
 * the one that is waited for. */
static void set_mutex_queue(struct queue_snapshot *p, size_t at, const struct queue_scan *now,
                            const struct queue_scan_queue *before, bool all)
{
    static const char leases[] = "/leases", locks[] = "/locks";
    const struct queue_scan_queue *q = &now->queues[at];
    struct wait_queue *w = &p->queues[at];
    size_t n = strlen(q->path), nbase = n - (sizeof leases - 1);
    bool steady = queue_two_scans_count_there(q) == w->n &&
                  (all || queue_two_scans_count_there(before) == w->n);
    if (n < sizeof leases - 1 || strcmp(q->path + nbase, leases) != 0 || !steady)
        return;
    for (size_t i = 0; i < now->nqueues; i++) {
        const struct queue_scan_queue *gate = &now->queues[i];
        if (strlen(gate->path) != nbase + sizeof locks - 1 ||
            memcmp(gate->path, q->path, nbase) != 0 || strcmp(gate->path + nbase, locks) != 0)
            continue;
        if (gate->nodes.n == 0 || !gate->nodes.list[0].there)
            return; /* it is not known who is first in the queue */
        size_t said = queue_two_scans_limit_said(gate);
        w->limit = queue_two_scans_limit_said(q) > said ? queue_two_scans_limit_said(q) : said;
        w->mutex_queue = i;
    }
}

/* ---- sessions that proceed ------------------------------------------------------------------- */

static clave_err queue_two_scans_note_moving(struct queue_snapshot *p, struct wait_queue *moving,
                                             const struct queue_scan_queue *of,
                                             const struct queue_scan_queue *other)
{
    size_t at = 0;
    for (size_t i = 0; of && i < of->nodes.n; i++) {
        const struct queue_node *node = &of->nodes.list[i];
        if (!node->there || queue_two_scans_is_known(&node->identity) ||
            queue_two_scans_was_there(other, &at, node))
            continue;
        struct wait_claim *claim = queue_two_scans_add_claim(p, node);
        if (!claim)
            return CLAVE_ENOMEM;
        claim->moving = true;
        claim->kind = WAIT_SHARED; /* so that nobody waits for it */
        moving->n++;
    }
    return CLAVE_OK;
}

/* Adds sessions that came to a lock or left one between the scans: at least one owner in such a
 * session is not stuck, and that may be the one that others wait for. */
static clave_err queue_two_scans_add_moving_sessions(struct queue_snapshot *p,
                                                     const struct queue_scan *before,
                                                     const struct queue_scan *now)
{
    clave_err err = CLAVE_OK;
    struct wait_queue *moving = &p->queues[p->n++];
    *moving = (struct wait_queue){.claims = &p->claims[p->nclaims], .mutex_queue = WAIT_NONE};
    for (size_t i = 0; err == CLAVE_OK && i < before->nqueues; i++) {
        const struct queue_scan_queue *q = &before->queues[i];
        const struct queue_scan_queue *after =
            clave__queue_scan_find(now, q->path, strlen(q->path));
        err = queue_two_scans_note_moving(p, moving, q, after);
        if (err == CLAVE_OK)
            err = queue_two_scans_note_moving(p, moving, after, q);
    }
    return err;
}

/* ---- building the snapshot ------------------------------------------------------------------- */

static size_t queue_two_scans_count_nodes(const struct queue_scan *s)
{
    size_t n = 0;
    for (size_t i = 0; s && i < s->nqueues; i++)
        n += s->queues[i].nodes.n;
    return n;
}

static clave_err queue_two_scans_fill(struct queue_snapshot *p, const struct queue_scan *before,
                                      const struct queue_scan *now)
{
    clave_err err = CLAVE_OK;
    for (size_t i = 0; err == CLAVE_OK && i < now->nqueues; i++) {
        const struct queue_scan_queue *q = &now->queues[i];
        const struct queue_scan_queue *old =
            before ? clave__queue_scan_find(before, q->path, strlen(q->path)) : NULL;
        err = queue_two_scans_add_queue(p, q, old, !before);
        if (err == CLAVE_OK && q->rule == &clave__queue_order_lease)
            set_mutex_queue(p, i, now, old, !before);
    }
    return err == CLAVE_OK && before ? queue_two_scans_add_moving_sessions(p, before, now) : err;
}

clave_err clave__queue_snapshot_init(struct queue_snapshot *p, const struct queue_scan *before,
                                     const struct queue_scan *now)
{
    const struct clave_mem *mem = now->mem;
    size_t n = 1 + 2 * queue_two_scans_count_nodes(now) + queue_two_scans_count_nodes(before);
    *p = (struct queue_snapshot){.mem = mem};
    p->queues = clave__mem_zalloc(mem, (now->nqueues + 1) * sizeof *p->queues);
    p->claims = clave__mem_zalloc(mem, n * sizeof *p->claims);
    p->nodes = clave__mem_zalloc(mem, n * sizeof *p->nodes);
    clave_err err =
        p->queues && p->claims && p->nodes ? queue_two_scans_fill(p, before, now) : CLAVE_ENOMEM;
    if (err != CLAVE_OK)
        clave__queue_snapshot_fini(p);
    return err;
}

void clave__queue_snapshot_fini(struct queue_snapshot *p)
{
    for (size_t i = 0; i < p->nclaims; i++)
        clave__mem_free(p->mem, (void *)(uintptr_t)p->claims[i].owner);
    clave__mem_free(p->mem, p->queues);
    clave__mem_free(p->mem, p->claims);
    clave__mem_free(p->mem, (void *)p->nodes);
    *p = (struct queue_snapshot){0};
}

const struct queue_node *clave__queue_snapshot_node(const struct queue_snapshot *p, size_t queue,
                                                    size_t claim)
{
    return p->nodes[p->queues[queue].claims - p->claims + (ptrdiff_t)claim];
}
