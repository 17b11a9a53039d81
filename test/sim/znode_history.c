/* The search of Wing and Gong with Lowe's memory: take one of the calls that may be next (called
 * before any other that is left was answered), and go on from there; go back when none is left to
 * try. Which calls are done and what the znode is like then decides everything after it, so a
 * place that was reached before is not searched again.
 *
 * Writes of unknown outcome could make that exponential: each may stand anywhere after its call, or
 * nowhere. Three things prevent it. Versions count the writes, so one too many shows with the next
 * answer. Of unknown writes that differ in nothing that anybody saw, the first to be called goes
 * first. And who has used fewer of them is no worse off: where the same calls with an answer are
 * done, and the znode is the same, a place is not searched again with more of the unknown writes
 * done. */
#include "znode_history.h"

#include <stdlib.h>
#include <string.h>

enum { ABSENT = -1, VALUE_UNSEEN = 0, FIRST_PLACES = 1024 };

struct state {
    int32_t version; /* ABSENT: there is no znode */
    int64_t value;
};

/* A call that is left to place. */
struct entry {
    struct entry *prev, *next; /* in the order of their calls */
    const struct znode_call *call;
    int64_t value;
    uint64_t key;  /* of one with an answer, or too many */
    uint64_t lost; /* its bit, of one without */
    /* Once it is placed: what there was before. */
    struct state before;
    int64_t answered;
};

/* A state of the search; hash 0: none. */
struct place {
    uint64_t hash; /* of the keys of the calls that are placed, and of the znode */
    uint64_t lost; /* the bits of those without an answer */
};

struct search {
    struct entry *entries; /* from 1; the list's head is 0 */
    struct entry **placed;
    size_t nplaced;
    size_t known; /* entries left that have an answer */
    size_t nlost; /* entries without one */
    struct state state;
    uint64_t keys; /* of those placed */
    uint64_t lost;
    struct place *places; /* reached before */
    size_t nplaces, cap;
};

static void *must_alloc(size_t n, size_t size)
{
    void *p = calloc(n, size);
    if (!p)
        abort();
    return p;
}

size_t znode_history_add(struct znode_history *h, const struct znode_call *call)
{
    if (h->n == h->cap) {
        h->cap = h->cap ? h->cap * 2 : 256;
        h->calls = realloc(h->calls, h->cap * sizeof *h->calls);
        if (!h->calls)
            abort();
    }
    h->calls[h->n] = *call;
    return h->n++;
}

void znode_history_fini(struct znode_history *h)
{
    free(h->calls);
    *h = (struct znode_history){0};
}

/* ---- one znode -------------------------------------------------------------------------- */

static enum znode_answer state_answer(const struct state *s, const struct znode_call *c)
{
    if (c->op == ZNODE_CREATE)
        return s->version == ABSENT ? ZNODE_DONE : ZNODE_NODE_EXISTS;
    if (s->version == ABSENT)
        return ZNODE_NO_NODE;
    bool asks = c->op == ZNODE_SET || c->op == ZNODE_DELETE;
    return asks && c->expected != -1 && c->expected != s->version ? ZNODE_BAD_VERSION : ZNODE_DONE;
}

/* Does it; false: then its answer would have been another. An unknown write that a znode like this
 * refuses has not been done. */
static bool state_apply(struct state *s, const struct entry *e)
{
    const struct znode_call *c = e->call;
    enum znode_answer answer = state_answer(s, c);
    if (answer != (c->answer == ZNODE_UNKNOWN ? ZNODE_DONE : c->answer))
        return false;
    if (answer != ZNODE_DONE)
        return true;
    if (c->op == ZNODE_CREATE)
        *s = (struct state){0, e->value};
    else if (c->op == ZNODE_SET)
        *s = (struct state){s->version + 1, e->value};
    else if (c->op == ZNODE_DELETE)
        *s = (struct state){ABSENT, VALUE_UNSEEN};
    if (c->op == ZNODE_GET && s->value != e->value)
        return false;
    return c->answer == ZNODE_UNKNOWN || c->op == ZNODE_DELETE || s->version == c->version;
}

/* ---- places that were reached before ------------------------------------------------------ */

/* splitmix64. Two of a million places are mistaken for one in one of 10^7 searches. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

/* false: it was reached before, with these unknown writes done or fewer. */
static bool places_put(struct place *places, size_t cap, struct place p)
{
    size_t i = (size_t)p.hash & (cap - 1);
    for (; places[i].hash != 0; i = (i + 1) & (cap - 1))
        if (places[i].hash == p.hash && (places[i].lost & ~p.lost) == 0)
            return false;
    places[i] = p;
    return true;
}

static void grow_places(struct search *q)
{
    struct place *grown = must_alloc(q->cap * 2, sizeof *grown);
    for (size_t i = 0; i < q->cap; i++)
        if (q->places[i].hash != 0)
            (void)places_put(grown, q->cap * 2, q->places[i]);
    free(q->places);
    q->places = grown;
    q->cap *= 2;
}

/* The one that placing `e` leads to. */
static bool is_new_place(struct search *q, const struct entry *e, const struct state *s)
{
    uint64_t state = mix((uint64_t)s->value ^ mix((uint64_t)s->version));
    struct place p = {mix(q->keys ^ e->key ^ state) | 1, q->lost | e->lost};
    if (q->nplaces * 2 >= q->cap)
        grow_places(q);
    if (!places_put(q->places, q->cap, p))
        return false;
    q->nplaces++;
    return true;
}

/* ---- the search ---------------------------------------------------------------------------- */

static bool is_known(const struct entry *e)
{
    return e->call->answer != ZNODE_UNKNOWN;
}

/* An unknown write like it, called before it, is left: that one goes first. */
static bool is_preceded(const struct search *q, const struct entry *e)
{
    if (is_known(e) || e->value != VALUE_UNSEEN)
        return false;
    for (const struct entry *at = e->prev; at != q->entries; at = at->prev)
        if (!is_known(at) && at->value == VALUE_UNSEEN && at->call->op == e->call->op &&
            at->call->expected == e->call->expected)
            return true;
    return false;
}

static bool try_place(struct search *q, struct entry *e, int64_t answered)
{
    struct state next = q->state;
    if (is_preceded(q, e) || !state_apply(&next, e) || !is_new_place(q, e, &next))
        return false;
    e->before = q->state;
    e->answered = answered;
    e->prev->next = e->next;
    e->next->prev = e->prev;
    q->placed[q->nplaced++] = e;
    q->known -= is_known(e);
    q->keys ^= e->key;
    q->lost ^= e->lost;
    q->state = next;
    return true;
}

static struct entry *take_back(struct search *q)
{
    struct entry *e = q->placed[--q->nplaced];
    e->prev->next = e->next->prev = e;
    q->known += is_known(e);
    q->keys ^= e->key;
    q->lost ^= e->lost;
    q->state = e->before;
    return e;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where the search looks for the next call to place: first among those with an answer, then among
 * the lost ones, which the znode may not need. */
struct cursor {
    struct entry *at;
    int64_t
        answered; /* of those in front of it, the first answer: what was called later comes later */
    bool lost;
};

static struct cursor cursor_begin(const struct search *q, bool lost)
{
    return (struct cursor){q->entries->next, INT64_MAX, lost};
}

static void cursor_next(struct cursor *c)
{
    c->answered = least(c->answered, c->at->call->answered);
    c->at = c->at->next;
}

/* From here nothing fits: to the next choice. false: there is none. */
static bool go_back(struct search *q, struct cursor *c)
{
    if (!c->lost) {
        *c = cursor_begin(q, true);
        return true;
    }
    if (q->nplaced == 0)
        return false;
    struct entry *e = take_back(q);
    *c = (struct cursor){e, e->answered, !is_known(e)};
    cursor_next(c);
    return true;
}

static enum znode_verdict search_run(struct search *q, size_t max_steps,
                                     const struct znode_call **stuck)
{
    struct cursor c = cursor_begin(q, false);
    size_t longest = 0;
    for (size_t steps = 0; q->known > 0; steps++) {
        if (steps == max_steps)
            return ZNODE_UNDECIDED;
        if (c.at == q->entries || c.at->call->called > c.answered) {
            if (!go_back(q, &c))
                return ZNODE_BROKEN;
        } else if (is_known(c.at) != c.lost && try_place(q, c.at, c.answered)) {
            c = cursor_begin(q, false);
        } else {
            if (!c.lost && is_known(c.at) && q->nplaced >= longest) {
                longest = q->nplaced;
                *stuck = c.at->call;
            }
            cursor_next(&c);
        }
    }
    return ZNODE_FINE;
}

/* ---- from the history ----------------------------------------------------------------------- */

static bool was_seen(const struct znode_history *h, const struct znode_call *write)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct znode_call *c = &h->calls[i];
        if (c->znode == write->znode && c->op == ZNODE_GET && c->answer == ZNODE_DONE &&
            c->value == write->value)
            return true;
    }
    return false;
}

/* Reads without an answer say nothing, and so does what was not done. Insertion is quick: the calls
 * come nearly in order. */
static void search_add(struct search *q, const struct znode_history *h, struct entry *e,
                       const struct znode_call *c)
{
    bool known = c->answer != ZNODE_UNKNOWN;
    bool writes = c->op == ZNODE_CREATE || c->op == ZNODE_SET;
    if (c->answer == ZNODE_NOT_DONE || (!known && (c->op == ZNODE_GET || c->op == ZNODE_EXISTS)))
        return;
    struct entry *after = q->entries->prev;
    while (after != q->entries && after->call->called > c->called)
        after = after->prev;
    *e = (struct entry){
        .prev = after,
        .next = after->next,
        .call = c,
        .value = !writes || was_seen(h, c) ? c->value : VALUE_UNSEEN,
    };
    after->next = e->next->prev = e;
    q->known += known;
    q->nlost += !known;
    if (!known && q->nlost <= 64)
        e->lost = (uint64_t)1 << (q->nlost - 1);
    else
        e->key = mix((uint64_t)(e - q->entries));
}

enum znode_verdict znode_history_check(const struct znode_history *h, unsigned znode,
                                       size_t max_steps, size_t *at)
{
    struct search q = {.state = {ABSENT, VALUE_UNSEEN}, .cap = FIRST_PLACES};
    const struct znode_call *stuck = h->calls;
    q.entries = must_alloc(h->n + 1, sizeof *q.entries);
    q.placed = must_alloc(h->n + 1, sizeof(struct entry *));
    q.places = must_alloc(q.cap, sizeof *q.places);
    q.entries->prev = q.entries->next = q.entries;
    for (size_t i = 0; i < h->n; i++)
        if (h->calls[i].znode == znode)
            search_add(&q, h, &q.entries[i + 1], &h->calls[i]);
    enum znode_verdict verdict = search_run(&q, max_steps, &stuck);
    *at = verdict == ZNODE_BROKEN ? (size_t)(stuck - h->calls) : 0;
    free(q.entries);
    free(q.placed);
    free(q.places);
    return verdict;
}
