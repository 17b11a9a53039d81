/* waitgraph.c - who waits for whom, and who can therefore never proceed. waitgraph.h explains the
 * problem and the rules by which an owner waits.
 *
 * How it works, in three steps. The claims of all queues become links of owners. The reduction then
 * takes out an owner that waits for nothing, then the owners that waited only for what that one
 * has, and so on. For this each queue keeps a front, the first of its claims that are still in the
 * way, and an owner that proceeds moves only the fronts at which it has a claim. Finally, each
 * owner that remains is assigned one wait, its oldest; following these waits leads into the cycles.
 * A second reduction, which assumes that all sessions without named owners proceed, shows which
 * cycles are certain.
 *
 * What must stay true. Owners only ever cease to be stuck, so fronts only move forward and each
 * claim is examined a bounded number of times, however deep the graph is. No owner is in two of the
 * cycles. The verdict depends neither on the order of the queues nor on the hash. */
#include "recipe/deadlock/waitgraph.h"

#include <assert.h>
#include <string.h>

#include "base/map.h"

struct owner {
    struct map_node node;
    const char *text;
    size_t len;
    bool known;
    bool moving;
    bool stuck; /* true until it is found to proceed; after reduce_to_certain, it is certainly stuck
                 */
    size_t claims;      /* the first of its links */
    size_t waits;       /* how many of its links wait to begin with */
    size_t blocked;     /* how many of them still wait */
    size_t parent;      /* the owner that it is a part of; WAIT_NONE: none */
    size_t stuck_parts; /* how many of its parts are stuck */
    size_t part; /* after the reduction: the first of its stuck parts, by text; WAIT_NONE: none */
    size_t next; /* after the reduction: the owner that it waits for */
    size_t walk; /* the number of the walk that visited it when looking for cycles; 0: none */
    struct wait_step step;
};

/* A claim in its queue. */
struct link {
    size_t queue, claim;
    size_t owner;
    size_t next; /* the owner's next link */
    bool waits;
    bool blocked; /* it still waits */
};

/* What is in the way of the claims of a queue: the first claim whose owner is stuck, and the first
 * one after it of another stuck owner, for those that do not wait for their own claims. */
struct front {
    size_t head, second;
};

/* FRONT_ALL is for claims that wait for everything before them; FRONT_ALONE for shared claims,
 * which wait only for those that are not shared. */
enum front_side { FRONT_ALL, FRONT_ALONE, FRONTS };

struct line {
    size_t first; /* index of the link of its first claim */
    struct front fronts[FRONTS];
    size_t lease; /* the only lease that waits for room; WAIT_NONE: none does */
    size_t going; /* how many of the other leases are not in its way */
};

struct solver {
    const struct clave_mem *mem;
    const struct wait_queue *queues;
    size_t n;
    struct line *lines; /* one per queue */
    struct link *links;
    size_t nlinks;
    struct owner *owners;
    size_t nowners;
    /* A stack of owners that proceed, with what waited for them still to be examined. */
    size_t *free;
    size_t nfree;
    size_t looked; /* how many claims were examined */
    struct map by_text;
};

static size_t index_of(const struct solver *s, const struct owner *o)
{
    assert(o >= s->owners);
    return (size_t)(o - s->owners);
}

static size_t owner_at(const struct solver *s, size_t q, size_t i)
{
    return s->links[s->lines[q].first + i].owner;
}

/* ---- the graph ------------------------------------------------------------------------------- */

struct text {
    const char *p;
    size_t len;
};

static bool text_eq(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct owner, node);
    const struct owner *o = (const struct owner *)(const void *)at;
    const struct text *t = key;
    return o->len == t->len && memcmp(o->text, t->p, t->len) == 0;
}

static struct owner *find_owner(const struct solver *s, const char *p, size_t len)
{
    struct text t = {p, len};
    uint32_t hash = clave__map_hash_bytes(&s->by_text, p, len);
    struct map_node *node = clave__map_find(&s->by_text, hash, text_eq, &t);
    return node ? MAP_ENTRY(node, struct owner, node) : NULL;
}

static struct owner *add_owner(struct solver *s, const struct wait_claim *claim)
{
    size_t len = strlen(claim->owner);
    struct owner *o = find_owner(s, claim->owner, len);
    if (!o) {
        o = &s->owners[s->nowners++];
        *o = (struct owner){.text = claim->owner, .len = len, .known = claim->known};
        o->stuck = true;
        o->claims = o->parent = o->part = o->next = WAIT_NONE;
        clave__map_insert(&s->by_text, &o->node,
                          clave__map_hash_bytes(&s->by_text, claim->owner, len));
    }
    o->moving = o->moving || claim->moving;
    return o;
}

/* Finds the nearest owner that it is a part of. */
static void find_parent(struct solver *s, struct owner *o)
{
    for (size_t len = o->len; o->known && len-- > 0;) {
        struct owner *whole = o->text[len] == '/' ? find_owner(s, o->text, len) : NULL;
        if (!whole || !whole->known)
            continue;
        o->parent = index_of(s, whole);
        whole->stuck_parts++;
        return;
    }
}

static void add_owners(struct solver *s)
{
    for (size_t q = 0; q < s->n; q++) {
        s->lines[q].first = s->nlinks;
        for (size_t i = 0; i < s->queues[q].n; i++) {
            struct owner *o = add_owner(s, &s->queues[q].claims[i]);
            s->links[s->nlinks] =
                (struct link){.queue = q, .claim = i, .owner = index_of(s, o), .next = o->claims};
            o->claims = s->nlinks++;
        }
    }
    for (size_t i = 0; i < s->nowners; i++)
        find_parent(s, &s->owners[i]);
}

/* ---- who waits for whom ---------------------------------------------------------------------- */

/* True if `other` is in the way of `waiter`. A session that does not name its owners may have any
 * number of them, so what it holds itself counts as belonging to another owner. */
static bool is_in_way(const struct solver *s, size_t waiter, size_t other)
{
    return s->owners[other].stuck && (waiter != other || s->owners[waiter].known);
}

static bool front_counts(const struct solver *s, size_t q, enum front_side side, size_t k)
{
    bool shared = s->queues[q].claims[k].kind == WAIT_SHARED;
    return s->owners[owner_at(s, q, k)].stuck && (side == FRONT_ALL || !shared);
}

/* Moves the front past claims that are no longer in the way. Owners only ever cease to be stuck, so
 * both positions only move forward. Everything between them belongs to the head's owner, so the
 * next head is not before the present second. */
static void front_advance(struct solver *s, size_t q, enum front_side side)
{
    struct front *f = &s->lines[q].fronts[side];
    size_t n = s->queues[q].n, before = f->head;
    for (; f->head < n && !front_counts(s, q, side, f->head); f->head++)
        s->looked++;
    if (f->head != before || f->second == 0)
        f->second = f->head + 1;
    for (; f->second < n; f->second++, s->looked++)
        if (front_counts(s, q, side, f->second) &&
            owner_at(s, q, f->second) != owner_at(s, q, f->head))
            return;
}

/* The first claim that claim i waits for. Those of its own rank come last before it. */
static size_t find_before(const struct solver *s, size_t q, size_t i)
{
    const struct wait_claim *claims = s->queues[q].claims;
    bool shared = claims[i].kind == WAIT_SHARED;
    const struct front *f = &s->lines[q].fronts[shared ? FRONT_ALONE : FRONT_ALL];
    size_t k = f->head;
    if (k < i && !is_in_way(s, owner_at(s, q, i), owner_at(s, q, k)))
        k = f->second;
    return k < i && claims[k].rank != claims[i].rank ? k : WAIT_NONE;
}

/* Finds the lease that waits. Only the owner that holds the semaphore's mutex waits, with its
 * newest lease, until enough of the other leases are released, whichever those are. */
static void line_find_lease(struct solver *s, size_t q)
{
    const struct wait_queue *leases = &s->queues[q];
    struct line *line = &s->lines[q];
    line->lease = WAIT_NONE;
    if (leases->limit == 0 || leases->n <= leases->limit || leases->mutex_queue == WAIT_NONE ||
        s->queues[leases->mutex_queue].n == 0)
        return;
    size_t own = owner_at(s, leases->mutex_queue, 0);
    for (size_t k = 0; k < leases->n; k++)
        if (owner_at(s, q, k) == own)
            line->lease = k;
    for (size_t k = 0; k < leases->n; k++)
        line->going += k != line->lease && !is_in_way(s, own, owner_at(s, q, k));
}

static bool lease_is_blocked(const struct solver *s, size_t q, size_t i)
{
    const struct wait_queue *leases = &s->queues[q];
    return i == s->lines[q].lease && s->lines[q].going < leases->n - leases->limit;
}

static size_t find_lease_blocker(const struct solver *s, size_t q, size_t i)
{
    size_t own = owner_at(s, q, i), blocker = WAIT_NONE;
    for (size_t k = 0; lease_is_blocked(s, q, i) && k < s->queues[q].n; k++) {
        bool stays = k != i && is_in_way(s, own, owner_at(s, q, k));
        if (stays && (blocker == WAIT_NONE || owner_at(s, q, blocker) == own))
            blocker = k;
    }
    return blocker;
}

static bool is_lease(const struct solver *s, const struct link *l)
{
    return s->queues[l->queue].claims[l->claim].kind == WAIT_LEASE;
}

/* The claim that this one waits for; WAIT_NONE: none. */
static size_t find_blocker(const struct solver *s, const struct link *l)
{
    return (is_lease(s, l) ? find_lease_blocker : find_before)(s, l->queue, l->claim);
}

static bool link_is_blocked(const struct solver *s, const struct link *l)
{
    return is_lease(s, l) ? lease_is_blocked(s, l->queue, l->claim)
                          : find_before(s, l->queue, l->claim) != WAIT_NONE;
}

/* ---- reduction: who proceeds ----------------------------------------------------------------- */

static bool can_proceed(const struct owner *o)
{
    if (o->known)
        return o->blocked == 0 && o->stuck_parts == 0;
    return o->moving || o->waits == 0 || o->blocked < o->waits;
}

/* Marks the owner as proceeding, if it can now. */
static void owner_try(struct solver *s, struct owner *o)
{
    if (!o->stuck || !can_proceed(o))
        return;
    o->stuck = false;
    s->free[s->nfree++] = index_of(s, o);
}

/* Updates a link that may not have to wait any more. */
static void link_try(struct solver *s, struct link *l)
{
    assert(!l->blocked || s->owners[l->owner].blocked > 0);
    s->looked++;
    if (!l->blocked || link_is_blocked(s, l))
        return;
    l->blocked = false;
    s->owners[l->owner].blocked--;
    owner_try(s, &s->owners[l->owner]);
}

/* The owner of this claim is not stuck any more. Those that waited for it are between what was in
 * their way and what is now, or have the same rank as the latter. */
static void front_pass(struct solver *s, const struct link *l, enum front_side side)
{
    struct line *line = &s->lines[l->queue];
    const struct wait_queue *q = &s->queues[l->queue];
    struct front *f = &line->fronts[side], before = *f;
    if (l->claim != before.head && l->claim != before.second)
        return;
    front_advance(s, l->queue, side);
    size_t at = f->head != before.head ? before.head : before.second;
    for (size_t i = at + 1; i < q->n; i++) {
        if (i > f->second && q->claims[i].rank != q->claims[f->second].rank)
            return;
        link_try(s, &s->links[line->first + i]);
    }
}

static void lease_pass(struct solver *s, const struct link *l)
{
    struct line *line = &s->lines[l->queue];
    if (line->lease == WAIT_NONE || l->claim == line->lease)
        return;
    size_t own = owner_at(s, l->queue, line->lease);
    line->going += l->owner != own || s->owners[own].known;
    link_try(s, &s->links[line->first + line->lease]);
}

/* The owner proceeds, and in the end releases all that it has. */
static void owner_pass(struct solver *s, struct owner *o)
{
    for (size_t at = o->claims; at != WAIT_NONE; at = s->links[at].next) {
        const struct link *l = &s->links[at];
        if (is_lease(s, l)) {
            lease_pass(s, l);
            continue;
        }
        for (int side = 0; side < FRONTS; side++)
            front_pass(s, l, (enum front_side)side);
    }
    if (o->parent == WAIT_NONE)
        return;
    s->owners[o->parent].stuck_parts--;
    owner_try(s, &s->owners[o->parent]);
}

static void reduce_on(struct solver *s)
{
    while (s->nfree > 0)
        owner_pass(s, &s->owners[s->free[--s->nfree]]);
}

static void reduce(struct solver *s)
{
    for (size_t q = 0; q < s->n; q++) {
        for (int side = 0; side < FRONTS; side++)
            front_advance(s, q, (enum front_side)side);
        line_find_lease(s, q);
    }
    /* At this point everybody counts as stuck, so this finds out which claims wait at all. */
    for (size_t i = 0; i < s->nlinks; i++) {
        struct link *l = &s->links[i];
        l->waits = l->blocked = link_is_blocked(s, l);
        s->owners[l->owner].waits += l->waits;
        s->owners[l->owner].blocked += l->waits;
    }
    for (size_t i = 0; i < s->nowners; i++)
        owner_try(s, &s->owners[i]);
    reduce_on(s);
}

/* Assumes that every session that does not name its owners has one that does not wait, and that
 * releases what others wait for. Whoever is stuck even so is certainly stuck. */
static void reduce_to_certain(struct solver *s)
{
    for (size_t i = 0; i < s->nowners; i++) {
        struct owner *o = &s->owners[i];
        if (!o->stuck || o->known)
            continue;
        o->stuck = false;
        s->free[s->nfree++] = i;
    }
    reduce_on(s);
}

/* ---- cycles among those that are stuck ------------------------------------------------------- */

static const struct wait_claim *claim_of(const struct solver *s, const struct wait_step *step)
{
    return &s->queues[step->queue].claims[step->claim];
}

/* Assigns the owner its oldest wait, so that the choice does not depend on the order of the
 * queues. */
static void choose_wait(struct solver *s, struct owner *o)
{
    for (size_t at = o->claims; at != WAIT_NONE; at = s->links[at].next) {
        const struct link *l = &s->links[at];
        struct wait_step step = {l->queue, l->claim, WAIT_NONE};
        if (l->waits)
            step.blocker = find_blocker(s, l);
        if (step.blocker == WAIT_NONE)
            continue;
        if (o->next != WAIT_NONE && claim_of(s, &o->step)->token < claim_of(s, &step)->token)
            continue;
        o->step = step;
        o->next = owner_at(s, step.queue, step.blocker);
    }
}

/* An owner that has parts waits for them to end; of the parts that are stuck, the first by text is
 * chosen. */
static void choose_part(struct solver *s, size_t i)
{
    const struct owner *o = &s->owners[i];
    struct owner *whole = o->parent == WAIT_NONE ? NULL : &s->owners[o->parent];
    if (whole && o->stuck &&
        (whole->part == WAIT_NONE || strcmp(o->text, s->owners[whole->part].text) < 0))
        whole->part = i;
}

static void choose_child(const struct solver *s, struct owner *o)
{
    const struct link *has = &s->links[o->claims];
    o->step = (struct wait_step){has->queue, has->claim, WAIT_NONE};
    o->next = o->part;
}

static size_t cycle_victim(const struct solver *s, const struct wait_cycle *c)
{
    size_t victim = WAIT_NONE;
    for (size_t i = 0; i < c->n; i++) {
        const struct wait_claim *claim = claim_of(s, &c->steps[i]);
        bool may = c->steps[i].blocker != WAIT_NONE && claim->yields;
        if (may && (victim == WAIT_NONE || claim->token > claim_of(s, &c->steps[victim])->token))
            victim = i;
    }
    return victim;
}

/* Finds, for each owner that is stuck, the next owner, which is stuck too. */
static void choose_next(struct solver *s)
{
    for (size_t i = 0; i < s->nowners; i++)
        if (s->owners[i].stuck)
            s->owners[i].next = s->owners[i].part = WAIT_NONE;
    for (size_t i = 0; i < s->nowners; i++)
        choose_part(s, i);
    for (size_t i = 0; i < s->nowners; i++) {
        struct owner *o = &s->owners[i];
        if (o->stuck)
            choose_wait(s, o);
        if (o->stuck && o->next == WAIT_NONE)
            choose_child(s, o);
    }
}

/* Finds the cycles. Every owner that has a next one waits for an owner that has one as well, so
 * following the waits leads to a cycle. An owner that is certainly stuck waits for one that is too,
 * so either all members of a cycle are certainly stuck or none. */
static void collect(struct solver *s, struct wait_verdict *v)
{
    size_t nsteps = 0;
    for (size_t i = 0; i < s->nowners; i++) {
        size_t at = i;
        while (s->owners[at].next != WAIT_NONE && s->owners[at].walk == 0) {
            s->owners[at].walk = i + 1;
            at = s->owners[at].next;
        }
        if (s->owners[at].next == WAIT_NONE || s->owners[at].walk != i + 1)
            continue; /* nobody is stuck here, or the cycle is already known */
        struct wait_cycle *c = &v->cycles[v->n++];
        *c = (struct wait_cycle){.steps = &v->steps[nsteps], .certain = s->owners[at].stuck};
        while (s->owners[at].walk == i + 1) {
            s->owners[at].walk = SIZE_MAX;
            v->steps[nsteps++] = s->owners[at].step;
            at = s->owners[at].next;
            c->n++;
        }
        c->victim = cycle_victim(s, c);
    }
}

static clave_err find_cycles(struct solver *s, struct wait_verdict *v)
{
    for (size_t i = 0; i < s->nowners; i++)
        v->stuck += s->owners[i].stuck;
    if (v->stuck == 0)
        return CLAVE_OK;
    v->cycles = clave__mem_zalloc(s->mem, v->stuck * sizeof *v->cycles);
    v->steps = clave__mem_zalloc(s->mem, v->stuck * sizeof *v->steps);
    if (!v->cycles || !v->steps)
        return CLAVE_ENOMEM;
    choose_next(s);
    reduce_to_certain(s);
    choose_next(s);
    collect(s, v);
    return CLAVE_OK;
}

/* ---- solving --------------------------------------------------------------------------------- */

static clave_err solver_init(struct solver *s, const struct clave_mem *mem, uint64_t seed,
                             const struct wait_queue *queues, size_t n)
{
    size_t total = 1; /* never allocate 0 bytes */
    *s = (struct solver){.mem = mem, .queues = queues, .n = n};
    for (size_t q = 0; q < n; q++)
        total += queues[q].n;
    clave_err err = clave__map_init(&s->by_text, mem, seed);
    s->lines = clave__mem_zalloc(mem, (n + 1) * sizeof *s->lines);
    s->free = clave__mem_zalloc(mem, total * sizeof *s->free);
    s->links = clave__mem_zalloc(mem, total * sizeof *s->links);
    s->owners = clave__mem_zalloc(mem, total * sizeof *s->owners);
    return s->lines && s->free && s->links && s->owners ? err : CLAVE_ENOMEM;
}

static void solver_fini(struct solver *s)
{
    clave__map_fini(&s->by_text);
    clave__mem_free(s->mem, s->lines);
    clave__mem_free(s->mem, s->free);
    clave__mem_free(s->mem, s->links);
    clave__mem_free(s->mem, s->owners);
}

clave_err clave__waitgraph_solve(const struct clave_mem *mem, uint64_t seed,
                                 const struct wait_queue *queues, size_t n,
                                 struct wait_verdict *out)
{
    struct solver s;
    *out = (struct wait_verdict){0};
    clave_err err = solver_init(&s, mem, seed, queues, n);
    if (err == CLAVE_OK) {
        add_owners(&s);
        reduce(&s);
        err = find_cycles(&s, out);
        out->looked = s.looked;
    }
    solver_fini(&s);
    if (err != CLAVE_OK)
        clave__waitgraph_fini(mem, out);
    return err;
}

void clave__waitgraph_fini(const struct clave_mem *mem, struct wait_verdict *v)
{
    clave__mem_free(mem, v->cycles);
    clave__mem_free(mem, v->steps);
    *v = (struct wait_verdict){0};
}
