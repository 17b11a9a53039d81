/* lock_holders.c - decides who holds; see lock_holders.h. Called by lock_model.c. What must stay
 * true: the holders of a kind are always the first places of that kind in the queue, left-over ones
 * aside, so whatever changes is at the end of the holders. A left-over place never holds, and
 * everybody behind it waits; the recipes do the same, since they see a node's name but not whose it
 * is. */
#include "observe/lock_holders.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"

/* Marks: one bit for each kind from QUEUE_LOCK on, first for those that wait, then for holders,
 * then for those left over. */
enum {
    HOLDING_SHIFT = QUEUE_KINDS - 1,
    LEFT_OVER_SHIFT = 2 * HOLDING_SHIFT,
    ALL_KINDS = (1 << QUEUE_KINDS) - 2
};

uint32_t clave__lock_mark_waiting(unsigned kinds)
{
    return (kinds & ALL_KINDS) >> 1;
}

uint32_t clave__lock_mark_holding(unsigned kinds)
{
    return clave__lock_mark_waiting(kinds) << HOLDING_SHIFT;
}

uint32_t clave__lock_mark_left_over(unsigned kinds)
{
    return clave__lock_mark_waiting(kinds) << LEFT_OVER_SHIFT;
}

static uint32_t holders_mark_live(unsigned kinds)
{
    return clave__lock_mark_waiting(kinds) | clave__lock_mark_holding(kinds);
}

uint32_t clave__lock_marks(const struct lock_node *p)
{
    uint32_t marks = clave__lock_mark_waiting(1u << p->kind);
    if (p->left_over)
        marks <<= LEFT_OVER_SHIFT;
    else if (p->holds)
        marks <<= HOLDING_SHIFT;
    if (p->limit)
        marks |= LOCK_MARK_LIMIT;
    if (p->owned || (p->session && p->session->linked))
        marks |= LOCK_MARK_LINKED;
    return marks;
}

void clave__lock_queue_mark(struct lock_model *m, struct lock_queue *q)
{
    struct lock_queue_key key = {q->path, q->len, q->leases};
    bool linked = clave__ordered_first(&q->places, LOCK_MARK_LINKED) != NULL;
    clave__ordered_mark(&m->queues, &q->node, &key, linked ? LOCK_QUEUE_LINKED : 0);
}

static void holders_mark(struct lock_model *m, struct lock_node *p)
{
    struct lock_key key = clave__lock_key(p);
    clave__ordered_mark(&p->queue->places, &p->node, &key, clave__lock_marks(p));
    clave__lock_queue_mark(m, p->queue);
}

void clave__lock_link(struct lock_model *m, struct lock_session *s)
{
    bool linked = s && s->nplaces > 1 && s->nwaits > 0;
    if (!s || s->linked == linked)
        return;
    s->linked = linked;
    for (struct list *at = s->places.next; at != &s->places; at = at->next)
        holders_mark(m, LIST_ENTRY(at, struct lock_node, in_session));
}

static struct lock_node *holders_place(struct ordered_node *node)
{
    return node ? ORDERED_ENTRY(node, struct lock_node, node) : NULL;
}

static const struct lock_node *holders_first(const struct lock_queue *q, unsigned kinds)
{
    uint32_t marks = holders_mark_live(kinds) | clave__lock_mark_left_over(kinds);
    return marks ? holders_place(clave__ordered_first(&q->places, marks)) : NULL;
}

/* True if there is a place of one of these kinds before p. Two nodes of different kinds with the
 * same number are a downgrade by one owner, who does not wait for itself. */
static bool holders_has_before(const struct lock_node *p, unsigned kinds)
{
    const struct lock_node *first = holders_first(p->queue, kinds);
    if (!first || first == p)
        return false;
    struct lock_key a = clave__lock_key(first), b = clave__lock_key(p);
    int cmp = strcmp(a.number, b.number);
    return cmp < 0 || (cmp == 0 && first->kind == p->kind && strcmp(a.name, b.name) < 0);
}

bool clave__lock_is_outside(const struct lock_node *p)
{
    return holders_has_before(p, clave__queue_kind_unseen(p->kind, p->name));
}

/* Looks at the last place of each kind: if any has one of the others before it, that one has. */
bool clave__lock_has_outside(const struct lock_queue *q)
{
    for (enum queue_kind kind = QUEUE_KAZOO_LOCK; kind <= QUEUE_KAZOO_READ; kind++) {
        const struct lock_node *last =
            q->of_kind[kind] > 0
                ? holders_place(clave__ordered_last(&q->places, holders_mark_live(1u << kind)))
                : NULL;
        if (last && clave__lock_is_outside(last))
            return true;
    }
    return false;
}

/* The read node of a downgrade repeats what the write node said about a delay, but the delay is
 * over. */
bool clave__lock_is_delayed(const struct lock_node *p)
{
    bool begins = p->delays && (p->kind == QUEUE_LOCK || p->kind == QUEUE_WRITE);
    return begins && p->queue->mark != 0 && p->queue->mark != p->token;
}

static bool holders_must_wait(const struct lock_node *p)
{
    unsigned kinds =
        clave__queue_kind_waits_for(p->kind) | clave__queue_kind_unseen(p->kind, p->name);
    return holders_has_before(p, kinds) || clave__lock_is_delayed(p);
}

static void holders_set(struct lock_model *m, struct lock_node *p, bool holds, int64_t at)
{
    struct lock_queue *q = p->queue;
    assert(p->holds != holds && (holds || q->nholders > 0));
    assert(!holds || !p->left_over);
    assert(!holds || !p->session || p->session->nwaits > 0);
    p->holds = holds;
    q->nholders += holds ? 1 : (size_t)-1;
    if (holds)
        p->held = at;
    holders_mark(m, p);
    if (p->session)
        p->session->nwaits += holds ? (size_t)-1 : 1;
    clave__lock_link(m, p->session);
    p->held_before = holds && (m->loading || m->blind);
    if (!holds || p->told)
        return;
    p->told = true;
    if (!m->loading && m->changed)
        m->changed(m->arg, LOCK_GRANTED, p, at);
}

static void holders_update_kind(struct lock_model *m, struct lock_queue *q, enum queue_kind kind,
                                int64_t at, const struct lock_node *fresh)
{
    uint32_t waiting = clave__lock_mark_waiting(1u << kind);
    uint32_t holding = clave__lock_mark_holding(1u << kind);
    struct lock_node *p;
    while ((p = holders_place(clave__ordered_last(&q->places, holding))) && holders_must_wait(p))
        holders_set(m, p, false, at);
    while ((p = holders_place(clave__ordered_first(&q->places, waiting))) && !holders_must_wait(p))
        holders_set(m, p, true, p == fresh || m->loading ? p->queued : at);
}

/* ---- semaphores ------------------------------------------------------------------------------ */

/* Only slots have their queue at P/queue. While nobody owns one they are known by their limit, and
 * by those who wait or what takes their room. */
bool clave__lock_is_slots(const struct lock_queue *q)
{
    const struct lock_queue *waits = q->partner;
    if (!q->leases || q->nkept > 0 || q->places.count > 0)
        return q->leases && q->nkept > 0;
    bool queue = waits && strcmp(clave__path_name(waits->path), "queue") == 0;
    return queue || (q->limited && q->nstrange[LOCK_STRANGE_OWNERS] > 0);
}

uint32_t clave__lock_limit(const struct lock_queue *q)
{
    if (!q->leases)
        return 0;
    if (clave__lock_is_slots(q))
        return q->slots_limit;
    const struct lock_node *p = holders_place(clave__ordered_last(&q->places, LOCK_MARK_LIMIT));
    if (!p && q->partner)
        p = holders_place(clave__ordered_last(&q->partner->places, LOCK_MARK_LIMIT));
    return p ? p->limit : 0;
}

/* Every child of a semaphore's leases takes room. */
static size_t holders_nleases(const struct lock_queue *q)
{
    return q->places.count + (q->nkept > 0 ? 0 : q->nstrange[LOCK_STRANGE_LEASES]);
}

/* The newest lease, if it is still waiting for room; else NULL. It may be waiting if its session is
 * also the first of those acquiring a lease, because Curator and clave leave that queue as soon as
 * they find room. It is not waiting if there are no more leases than the limit, nor if it is
 * kazoo's, which makes a lease only once there is room. */
static const struct lock_node *holders_lease_without_room(const struct lock_queue *q)
{
    uint32_t limit = clave__lock_limit(q);
    if ((limit != 0 && holders_nleases(q) <= limit) || !q->partner)
        return NULL;
    const struct lock_node *newest = holders_place(clave__ordered_last(&q->places, ORDERED_ANY));
    if (!newest || (limit == 0 && clave__queue_kind_of(newest->name) != QUEUE_LEASE))
        return NULL;
    const struct lock_node *first =
        holders_place(clave__ordered_first(&q->partner->places, holders_mark_live(~0u)));
    return !newest->kept && first && first->session && first->session == newest->session ? newest
                                                                                         : NULL;
}

/* If there are more leases than the limit, each lease is decided by its own position and the limit
 * in its node, as the recipes do for a lease found again after a lost answer (contender.c). So
 * a lease may be waiting although nobody is acquiring, after its session's place in that queue was
 * taken away. */
static void holders_update_leases(struct lock_model *m, struct lock_queue *q, int64_t at,
                                  const struct lock_node *fresh)
{
    const struct lock_node *none = holders_lease_without_room(q);
    uint32_t limit = clave__lock_limit(q);
    bool full = limit != 0 && holders_nleases(q) > limit;
    uint32_t marks = full ? ORDERED_ANY : clave__lock_mark_waiting(1 << QUEUE_LEASE);
    struct lock_key last = {"", ""};
    struct lock_node *p;
    size_t before = holders_nleases(q) - q->places.count;
    for (; (p = holders_place(clave__ordered_after(&q->places, &last, marks))); before++) {
        last = clave__lock_key(p);
        bool room = p != none && (!full || p->limit == 0 || before < p->limit);
        bool holds = p->kept || (room && !p->left_over);
        if (holds != p->holds)
            holders_set(m, p, holds, p == fresh || m->loading ? p->queued : at);
    }
    p = holders_place(clave__ordered_last(&q->places, ORDERED_ANY));
    if (p && p == none && p->holds)
        holders_set(m, p, false, at);
}

void clave__lock_grants_update(struct lock_model *m, struct lock_queue *q, int64_t at,
                               const struct lock_node *fresh)
{
    if (q->leases) {
        holders_update_leases(m, q, at, fresh);
        return;
    }
    for (enum queue_kind kind = QUEUE_LOCK; kind < QUEUE_LEASE; kind++)
        if (q->of_kind[kind] > 0)
            holders_update_kind(m, q, kind, at, fresh);
    if (q->partner)
        holders_update_leases(m, q->partner, at, NULL);
}
