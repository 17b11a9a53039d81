/* waitgraph.c - the graph of owners that wait for owners, and its cycles. Called by
 * queue_snapshot.c and search.c. Invariant: no owner is in two of the cycles found. */
#include "recipe/deadlock/waitgraph.h"

#include <string.h>

#include "base/map.h"

struct owner {
    struct map_node node;
    const char *text;
    size_t len;
    bool known;
    bool moving;
    bool stuck;         /* true until it is seen to proceed */
    size_t claims;      /* its first link */
    size_t parent;      /* WAIT_NONE: of no owner */
    size_t stuck_parts; /* that are stuck */
    size_t next;        /* after the reduction: the owner that it waits for */
    size_t walk;        /* number of the walk that visited it, looking for cycles; 0: none */
    struct wait_step step;
};

/* A claim, and its queue. */
struct link {
    size_t queue, claim;
    size_t owner;
    size_t next; /* of the same owner */
    bool waits;
};

struct solver {
    const struct clave_mem *mem;
    const struct wait_queue *queues;
    size_t n;
    size_t *first; /* link of each queue's first claim */
    size_t *head;  /* of each queue: no owner before this claim is stuck */
    struct link *links;
    size_t nlinks;
    struct owner *owners;
    size_t nowners;
    struct map by_text;
};

/* ---- owners ---------------------------------------------------------------------------- */

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

static struct owner *waitgraph_find_owner(const struct solver *s, const char *p, size_t len)
{
    struct text t = {p, len};
    uint32_t hash = clave__map_hash_bytes(&s->by_text, p, len);
    struct map_node *node = clave__map_find(&s->by_text, hash, text_eq, &t);
    return node ? MAP_ENTRY(node, struct owner, node) : NULL;
}

static struct owner *add_owner(struct solver *s, const struct wait_claim *claim)
{
    size_t len = strlen(claim->owner);
    struct owner *o = waitgraph_find_owner(s, claim->owner, len);
    if (!o) {
        o = &s->owners[s->nowners++];
        *o = (struct owner){.text = claim->owner, .len = len, .known = claim->known};
        o->stuck = true;
        o->claims = o->parent = o->next = WAIT_NONE;
        clave__map_insert(&s->by_text, &o->node,
                          clave__map_hash_bytes(&s->by_text, claim->owner, len));
    }
    o->moving = o->moving || claim->moving;
    return o;
}

static size_t index_of(const struct solver *s, const struct owner *o)
{
    return (size_t)(o - s->owners);
}

/* The nearest owner that it is a part of. */
static void find_parent(struct solver *s, struct owner *o)
{
    for (size_t len = o->len; o->known && len-- > 0;) {
        struct owner *whole = o->text[len] == '/' ? waitgraph_find_owner(s, o->text, len) : NULL;
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
        s->first[q] = s->nlinks;
        for (size_t i = 0; i < s->queues[q].n; i++) {
            struct owner *o = add_owner(s, &s->queues[q].claims[i]);
            s->links[s->nlinks] = (struct link){q, i, index_of(s, o), o->claims, false};
            o->claims = s->nlinks++;
        }
    }
    for (size_t i = 0; i < s->nowners; i++)
        find_parent(s, &s->owners[i]);
}

/* ---- who waits for whom ---------------------------------------------------------------- */

static size_t owner_at(const struct solver *s, size_t q, size_t i)
{
    return s->links[s->first[q] + i].owner;
}

/* A session that does not name its owners may have any number of them: what it holds itself counts
 * as another owner's. */
static bool is_in_way(const struct solver *s, size_t waiter, size_t other)
{
    return s->owners[other].stuck && (waiter != other || s->owners[waiter].known);
}

static size_t waitgraph_find_before(const struct solver *s, size_t q, size_t i)
{
    const struct wait_claim *claims = s->queues[q].claims;
    size_t own = owner_at(s, q, i);
    bool shares = claims[i].kind == WAIT_SHARED;
    while (s->head[q] < i && !s->owners[owner_at(s, q, s->head[q])].stuck)
        s->head[q]++;
    for (size_t k = s->head[q]; k < i; k++) {
        bool together =
            claims[k].rank == claims[i].rank || (shares && claims[k].kind == WAIT_SHARED);
        if (!together && is_in_way(s, own, owner_at(s, q, k)))
            return k;
    }
    return WAIT_NONE;
}

/* Only the owner that holds the semaphore's mutex waits, with its newest lease, until enough of the
 * other leases are released, whichever they are. */
static size_t find_lease_blocker(const struct solver *s, size_t q, size_t i)
{
    const struct wait_queue *leases = &s->queues[q];
    size_t own = owner_at(s, q, i);
    if (leases->limit == 0 || leases->n <= leases->limit || leases->mutex_queue == WAIT_NONE ||
        s->queues[leases->mutex_queue].n == 0 || owner_at(s, leases->mutex_queue, 0) != own)
        return WAIT_NONE;
    for (size_t k = i + 1; k < leases->n; k++)
        if (owner_at(s, q, k) == own)
            return WAIT_NONE;
    size_t too_many = leases->n - leases->limit, going = 0, blocker = WAIT_NONE;
    for (size_t k = 0; k < leases->n; k++) {
        if (k == i)
            continue;
        bool stays = is_in_way(s, own, owner_at(s, q, k));
        going += !stays;
        if (stays && (blocker == WAIT_NONE || owner_at(s, q, blocker) == own))
            blocker = k;
    }
    return going >= too_many ? WAIT_NONE : blocker;
}

static size_t find_blocker(const struct solver *s, const struct link *l)
{
    bool lease = s->queues[l->queue].claims[l->claim].kind == WAIT_LEASE;
    return (lease ? find_lease_blocker : waitgraph_find_before)(s, l->queue, l->claim);
}

/* ---- reduction ------------------------------------------------------------------------- */

static bool waitgraph_can_proceed(const struct solver *s, const struct owner *o)
{
    size_t waits = 0, stuck = 0;
    for (size_t at = o->claims; at != WAIT_NONE; at = s->links[at].next) {
        const struct link *l = &s->links[at];
        waits += l->waits;
        stuck += l->waits && find_blocker(s, l) != WAIT_NONE;
    }
    if (o->known)
        return stuck == 0 && o->stuck_parts == 0;
    return o->moving || waits == 0 || stuck < waits;
}

static bool reduce_once(struct solver *s)
{
    bool progress = false;
    for (size_t i = 0; i < s->nowners; i++) {
        struct owner *o = &s->owners[i];
        if (!o->stuck || !waitgraph_can_proceed(s, o))
            continue;
        o->stuck = false;
        progress = true;
        if (o->parent != WAIT_NONE)
            s->owners[o->parent].stuck_parts--;
    }
    return progress;
}

static void reduce(struct solver *s)
{
    /* Everybody still counts as stuck here: this finds what is a wait at all. */
    for (size_t i = 0; i < s->nlinks; i++)
        s->links[i].waits = find_blocker(s, &s->links[i]) != WAIT_NONE;
    while (reduce_once(s))
        continue;
}

/* ---- cycles ---------------------------------------------------------------------------- */

static const struct wait_claim *claim_of(const struct solver *s, const struct wait_step *step)
{
    return &s->queues[step->queue].claims[step->claim];
}

/* The oldest wait, so that the choice does not depend on the order of the queues. */
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

static void choose_child(struct solver *s, struct owner *o)
{
    const struct link *has = &s->links[o->claims];
    o->step = (struct wait_step){has->queue, has->claim, WAIT_NONE};
    for (size_t i = 0; i < s->nowners; i++) {
        const struct owner *part = &s->owners[i];
        bool mine = part->stuck && part->parent == index_of(s, o);
        if (mine && (o->next == WAIT_NONE || strcmp(part->text, s->owners[o->next].text) < 0))
            o->next = i;
    }
}

static size_t find_victim(const struct solver *s, const struct wait_cycle *c)
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

/* Every stuck owner waits for a stuck owner: following the waits leads to a cycle. */
static void waitgraph_collect(struct solver *s, struct wait_verdict *v)
{
    size_t nsteps = 0;
    for (size_t i = 0; i < s->nowners; i++) {
        size_t at = i;
        while (s->owners[at].stuck && s->owners[at].walk == 0) {
            s->owners[at].walk = i + 1;
            at = s->owners[at].next;
        }
        if (!s->owners[at].stuck || s->owners[at].walk != i + 1)
            continue; /* nobody is stuck here, or the cycle is known */
        struct wait_cycle *c = &v->cycles[v->n++];
        *c = (struct wait_cycle){.steps = &v->steps[nsteps]};
        while (s->owners[at].walk == i + 1) {
            s->owners[at].walk = SIZE_MAX;
            v->steps[nsteps++] = s->owners[at].step;
            at = s->owners[at].next;
            c->n++;
        }
        c->victim = find_victim(s, c);
    }
}

static clave_err name_cycles(struct solver *s, struct wait_verdict *v)
{
    for (size_t i = 0; i < s->nowners; i++)
        v->stuck += s->owners[i].stuck;
    if (v->stuck == 0)
        return CLAVE_OK;
    v->cycles = clave__mem_zalloc(s->mem, v->stuck * sizeof *v->cycles);
    v->steps = clave__mem_zalloc(s->mem, v->stuck * sizeof *v->steps);
    if (!v->cycles || !v->steps)
        return CLAVE_ENOMEM;
    for (size_t i = 0; i < s->nowners; i++) {
        struct owner *o = &s->owners[i];
        if (o->stuck)
            choose_wait(s, o);
        if (o->stuck && o->next == WAIT_NONE)
            choose_child(s, o);
    }
    waitgraph_collect(s, v);
    return CLAVE_OK;
}

/* ---- all of it ------------------------------------------------------------------------- */

static clave_err solver_init(struct solver *s, const struct clave_mem *mem, uint64_t seed,
                             const struct wait_queue *queues, size_t n)
{
    size_t total = 1; /* 0 bytes are never asked for */
    *s = (struct solver){.mem = mem, .queues = queues, .n = n};
    for (size_t q = 0; q < n; q++)
        total += queues[q].n;
    clave_err err = clave__map_init(&s->by_text, mem, seed);
    s->first = clave__mem_zalloc(mem, (n + 1) * sizeof *s->first);
    s->head = clave__mem_zalloc(mem, (n + 1) * sizeof *s->head);
    s->links = clave__mem_zalloc(mem, total * sizeof *s->links);
    s->owners = clave__mem_zalloc(mem, total * sizeof *s->owners);
    return s->first && s->head && s->links && s->owners ? err : CLAVE_ENOMEM;
}

static void solver_fini(struct solver *s)
{
    clave__map_fini(&s->by_text);
    clave__mem_free(s->mem, s->first);
    clave__mem_free(s->mem, s->head);
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
        err = name_cycles(&s, out);
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
