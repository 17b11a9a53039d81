/* wait_reduction.c - who waits for whom, and who proceeds: the reduction of waitgraph.h. Called by
 * waitgraph.c and wait_cycle.c. Invariant: each claim is looked at a bounded number of times,
 * however deep the graph is. */
#include "recipe/deadlock/waitgraph_internal.h"

/* ---- who waits for whom ---------------------------------------------------------------------- */

/* A session that does not name its owners may have any number of them: what it holds itself counts
 * as another owner's. */
static bool wait_is_in_way(const struct solver *s, size_t waiter, size_t other)
{
    return s->owners[other].stuck && (waiter != other || s->owners[waiter].known);
}

static bool wait_front_counts(const struct solver *s, size_t q, enum front_side side, size_t k)
{
    bool shared = s->queues[q].claims[k].kind == WAIT_SHARED;
    return s->owners[clave__wait_owner_at(s, q, k)].stuck && (side == FRONT_ALL || !shared);
}

/* Owners only ever cease to be stuck, so both go one way. All between them were of the head's
 * owner, so that the next head is not before the second. */
static void wait_front_advance(struct solver *s, size_t q, enum front_side side)
{
    struct front *f = &s->lines[q].fronts[side];
    size_t n = s->queues[q].n, before = f->head;
    for (; f->head < n && !wait_front_counts(s, q, side, f->head); f->head++)
        s->looked++;
    if (f->head != before || f->second == 0)
        f->second = f->head + 1;
    for (; f->second < n; f->second++, s->looked++)
        if (wait_front_counts(s, q, side, f->second) &&
            clave__wait_owner_at(s, q, f->second) != clave__wait_owner_at(s, q, f->head))
            return;
}

/* The first that it waits for. Those of its own rank are the last before it. */
static size_t wait_find_before(const struct solver *s, size_t q, size_t i)
{
    const struct wait_claim *claims = s->queues[q].claims;
    bool shared = claims[i].kind == WAIT_SHARED;
    const struct front *f = &s->lines[q].fronts[shared ? FRONT_ALONE : FRONT_ALL];
    size_t k = f->head;
    if (k < i && !wait_is_in_way(s, clave__wait_owner_at(s, q, i), clave__wait_owner_at(s, q, k)))
        k = f->second;
    return k < i && claims[k].rank != claims[i].rank ? k : WAIT_NONE;
}

/* Only the owner that holds the semaphore's mutex waits, with its newest lease, until enough of the
 * other leases are released, whichever they are. */
static void wait_line_find_lease(struct solver *s, size_t q)
{
    const struct wait_queue *leases = &s->queues[q];
    struct line *line = &s->lines[q];
    line->lease = WAIT_NONE;
    if (leases->limit == 0 || leases->n <= leases->limit || leases->mutex_queue == WAIT_NONE ||
        s->queues[leases->mutex_queue].n == 0)
        return;
    size_t own = clave__wait_owner_at(s, leases->mutex_queue, 0);
    for (size_t k = 0; k < leases->n; k++)
        if (clave__wait_owner_at(s, q, k) == own)
            line->lease = k;
    for (size_t k = 0; k < leases->n; k++)
        line->going += k != line->lease && !wait_is_in_way(s, own, clave__wait_owner_at(s, q, k));
}

static bool wait_lease_is_blocked(const struct solver *s, size_t q, size_t i)
{
    const struct wait_queue *leases = &s->queues[q];
    return i == s->lines[q].lease && s->lines[q].going < leases->n - leases->limit;
}

static size_t wait_find_lease_blocker(const struct solver *s, size_t q, size_t i)
{
    size_t own = clave__wait_owner_at(s, q, i), blocker = WAIT_NONE;
    for (size_t k = 0; wait_lease_is_blocked(s, q, i) && k < s->queues[q].n; k++) {
        bool stays = k != i && wait_is_in_way(s, own, clave__wait_owner_at(s, q, k));
        if (stays && (blocker == WAIT_NONE || clave__wait_owner_at(s, q, blocker) == own))
            blocker = k;
    }
    return blocker;
}

static bool wait_is_lease(const struct solver *s, const struct link *l)
{
    return s->queues[l->queue].claims[l->claim].kind == WAIT_LEASE;
}

size_t clave__wait_blocker(const struct solver *s, const struct link *l)
{
    return (wait_is_lease(s, l) ? wait_find_lease_blocker : wait_find_before)(s, l->queue,
                                                                              l->claim);
}

static bool wait_link_is_blocked(const struct solver *s, const struct link *l)
{
    return wait_is_lease(s, l) ? wait_lease_is_blocked(s, l->queue, l->claim)
                               : wait_find_before(s, l->queue, l->claim) != WAIT_NONE;
}

/* ---- reduction ------------------------------------------------------------------------------- */

static bool wait_can_proceed(const struct owner *o)
{
    if (o->known)
        return o->blocked == 0 && o->stuck_parts == 0;
    return o->moving || o->waits == 0 || o->blocked < o->waits;
}

/* Perhaps it proceeds now. */
static void wait_owner_try(struct solver *s, struct owner *o)
{
    if (!o->stuck || !wait_can_proceed(o))
        return;
    o->stuck = false;
    s->free[s->nfree++] = clave__wait_index_of(s, o);
}

/* Perhaps it does not wait any more. */
static void wait_link_try(struct solver *s, struct link *l)
{
    assert(!l->blocked || s->owners[l->owner].blocked > 0);
    s->looked++;
    if (!l->blocked || wait_link_is_blocked(s, l))
        return;
    l->blocked = false;
    s->owners[l->owner].blocked--;
    wait_owner_try(s, &s->owners[l->owner]);
}

/* The claim's owner is not stuck any more: those who waited for it are between what was in their
 * way and what is now, or of the rank of that. */
static void wait_front_pass(struct solver *s, const struct link *l, enum front_side side)
{
    struct line *line = &s->lines[l->queue];
    const struct wait_queue *q = &s->queues[l->queue];
    struct front *f = &line->fronts[side], before = *f;
    if (l->claim != before.head && l->claim != before.second)
        return;
    wait_front_advance(s, l->queue, side);
    size_t at = f->head != before.head ? before.head : before.second;
    for (size_t i = at + 1; i < q->n; i++) {
        if (i > f->second && q->claims[i].rank != q->claims[f->second].rank)
            return;
        wait_link_try(s, &s->links[line->first + i]);
    }
}

static void wait_lease_pass(struct solver *s, const struct link *l)
{
    struct line *line = &s->lines[l->queue];
    if (line->lease == WAIT_NONE || l->claim == line->lease)
        return;
    size_t own = clave__wait_owner_at(s, l->queue, line->lease);
    line->going += l->owner != own || s->owners[own].known;
    wait_link_try(s, &s->links[line->first + line->lease]);
}

/* It proceeds, and in the end releases all it has. */
static void wait_owner_pass(struct solver *s, struct owner *o)
{
    for (size_t at = o->claims; at != WAIT_NONE; at = s->links[at].next) {
        const struct link *l = &s->links[at];
        if (wait_is_lease(s, l)) {
            wait_lease_pass(s, l);
            continue;
        }
        for (int side = 0; side < FRONTS; side++)
            wait_front_pass(s, l, (enum front_side)side);
    }
    if (o->parent == WAIT_NONE)
        return;
    s->owners[o->parent].stuck_parts--;
    wait_owner_try(s, &s->owners[o->parent]);
}

static void wait_reduce_on(struct solver *s)
{
    while (s->nfree > 0)
        wait_owner_pass(s, &s->owners[s->free[--s->nfree]]);
}

void clave__wait_reduce(struct solver *s)
{
    for (size_t q = 0; q < s->n; q++) {
        for (int side = 0; side < FRONTS; side++)
            wait_front_advance(s, q, (enum front_side)side);
        wait_line_find_lease(s, q);
    }
    /* Everybody still counts as stuck here: this finds what is a wait at all. */
    for (size_t i = 0; i < s->nlinks; i++) {
        struct link *l = &s->links[i];
        l->waits = l->blocked = wait_link_is_blocked(s, l);
        s->owners[l->owner].waits += l->waits;
        s->owners[l->owner].blocked += l->waits;
    }
    for (size_t i = 0; i < s->nowners; i++)
        wait_owner_try(s, &s->owners[i]);
    wait_reduce_on(s);
}

/* A session that does not name its owners may have one that does not wait, which releases what
 * others wait for: those that are stuck even so are certainly stuck. */
void clave__wait_reduce_to_certain(struct solver *s)
{
    for (size_t i = 0; i < s->nowners; i++) {
        struct owner *o = &s->owners[i];
        if (!o->stuck || o->known)
            continue;
        o->stuck = false;
        s->free[s->nfree++] = i;
    }
    wait_reduce_on(s);
}
