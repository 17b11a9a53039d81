/* ordered_set.c - see ordered_set.h. Called by the HTTP gate's model of locks, its events and its
 * history. Invariant: a node's rank is at least that of its children, and its `below` has the marks
 * of both of them and its own. */
#include "base/ordered_set.h"

#include <assert.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/map.h"

void clave__ordered_init(struct ordered *o, ordered_compare *compare, uint64_t seed)
{
    *o = (struct ordered){.compare = compare, .seed = seed};
}

static bool ordered_set_has(const struct ordered_node *n, uint32_t marks)
{
    return n && (marks == ORDERED_ANY || n->below & marks);
}

static bool ordered_set_is(const struct ordered_node *n, uint32_t marks)
{
    return marks == ORDERED_ANY || n->marks & marks;
}

static void ordered_set_sum_up(struct ordered_node *n)
{
    uint32_t below = n->marks;
    if (n->left)
        below |= n->left->below;
    if (n->right)
        below |= n->right->below;
    n->below = below;
}

static size_t ordered_set_check_below(const struct ordered_node *n)
{
    if (!n)
        return 0;
    unsigned below = n->marks;
    below |= n->left ? n->left->below : 0u;
    below |= n->right ? n->right->below : 0u;
    CHECK(below == n->below);
    CHECK(!n->left || n->left->rank <= n->rank);
    CHECK(!n->right || n->right->rank <= n->rank);
    return ordered_set_check_below(n->left) + 1 + ordered_set_check_below(n->right);
}

/* Ranks and marks are as the head of this file says, and every node is counted. Of the order only
 * this is known without the keys of others: a walk to `key` ends at `node`; NULL: it is not there.
 */
static void ordered_set_check(const struct ordered *o, const void *key,
                              const struct ordered_node *node)
{
    if (!clave__check_is_due(o->count))
        return;
    CHECK(ordered_set_check_below(o->root) == o->count);
    CHECK(clave__ordered_find(o, key) == node);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* What is before the key, and what is after it. */
static void ordered_set_split(const struct ordered *o, struct ordered_node *n, const void *key,
                              struct ordered_node **before, struct ordered_node **after)
{
    if (!n) {
        *before = *after = NULL;
        return;
    }
    int cmp = o->compare(key, n);
    assert(cmp != 0); /* it is there already */
    if (cmp < 0) {
        ordered_set_split(o, n->left, key, before, &n->left);
        *after = n;
    } else {
        ordered_set_split(o, n->right, key, &n->right, after);
        *before = n;
    }
    ordered_set_sum_up(n);
}

/* All of `a` comes before all of `b`. */
static struct ordered_node *ordered_set_join(struct ordered_node *a, struct ordered_node *b)
{
    if (!a || !b)
        return a ? a : b;
    struct ordered_node *top = a->rank >= b->rank ? a : b;
    if (top == a)
        a->right = ordered_set_join(a->right, b);
    else
        b->left = ordered_set_join(a, b->left);
    ordered_set_sum_up(top);
    return top;
}

static struct ordered_node *ordered_set_put(const struct ordered *o, struct ordered_node *at,
                                            struct ordered_node *node, const void *key)
{
    if (!at || node->rank > at->rank) {
        ordered_set_split(o, at, key, &node->left, &node->right);
        ordered_set_sum_up(node);
        return node;
    }
    int cmp = o->compare(key, at);
    assert(cmp != 0);
    if (cmp < 0)
        at->left = ordered_set_put(o, at->left, node, key);
    else
        at->right = ordered_set_put(o, at->right, node, key);
    ordered_set_sum_up(at);
    return at;
}

void clave__ordered_insert(struct ordered *o, struct ordered_node *node, const void *key,
                           uint32_t marks)
{
    ordered_set_check(o, key, NULL);
    uint32_t rank = clave__map_hash_u64(o->seed++ * UINT64_C(0x9e3779b97f4a7c15));
    *node = (struct ordered_node){.rank = rank, .marks = marks};
    o->root = ordered_set_put(o, o->root, node, key);
    o->count++;
    ordered_set_check(o, key, node);
}

static struct ordered_node *ordered_set_drop(const struct ordered *o, struct ordered_node *at,
                                             const void *key)
{
    assert(at);
    int cmp = o->compare(key, at);
    if (cmp == 0)
        return ordered_set_join(at->left, at->right);
    if (cmp < 0)
        at->left = ordered_set_drop(o, at->left, key);
    else
        at->right = ordered_set_drop(o, at->right, key);
    ordered_set_sum_up(at);
    return at;
}

void clave__ordered_remove(struct ordered *o, const void *key)
{
    o->root = ordered_set_drop(o, o->root, key);
    o->count--;
    ordered_set_check(o, key, NULL);
}

static void ordered_set_sum_up_to(const struct ordered *o, struct ordered_node *at, const void *key)
{
    assert(at);
    int cmp = o->compare(key, at);
    if (cmp != 0)
        ordered_set_sum_up_to(o, cmp < 0 ? at->left : at->right, key);
    ordered_set_sum_up(at);
}

void clave__ordered_mark(struct ordered *o, struct ordered_node *node, const void *key,
                         uint32_t marks)
{
    if (node->marks == marks)
        return;
    node->marks = marks;
    ordered_set_sum_up_to(o, o->root, key);
    ordered_set_check(o, key, node);
}

/* ---- looking --------------------------------------------------------------------------------- */

struct ordered_node *clave__ordered_find(const struct ordered *o, const void *key)
{
    struct ordered_node *at = o->root;
    for (int cmp; at && (cmp = o->compare(key, at)) != 0;)
        at = cmp < 0 ? at->left : at->right;
    return at;
}

static struct ordered_node *ordered_set_first_of(struct ordered_node *at, uint32_t marks)
{
    while (ordered_set_has(at, marks)) {
        if (ordered_set_has(at->left, marks))
            at = at->left;
        else if (ordered_set_is(at, marks))
            return at;
        else
            at = at->right;
    }
    return NULL;
}

struct ordered_node *clave__ordered_first(const struct ordered *o, uint32_t marks)
{
    return ordered_set_first_of(o->root, marks);
}

struct ordered_node *clave__ordered_last(const struct ordered *o, uint32_t marks)
{
    struct ordered_node *at = o->root;
    while (ordered_set_has(at, marks)) {
        if (ordered_set_has(at->right, marks))
            at = at->right;
        else if (ordered_set_is(at, marks))
            return at;
        else
            at = at->left;
    }
    return NULL;
}

struct ordered_node *clave__ordered_after(const struct ordered *o, const void *key, uint32_t marks)
{
    struct ordered_node *found = NULL, *at = o->root;
    struct ordered_node *rest = NULL; /* the nearest whose right side has one, if nothing nearer */
    while (at) {
        if (o->compare(key, at) >= 0) {
            at = at->right;
            continue;
        }
        if (ordered_set_is(at, marks)) {
            found = at;
            rest = NULL;
        } else if (ordered_set_has(at->right, marks)) {
            found = NULL;
            rest = at->right;
        }
        at = at->left;
    }
    return rest ? ordered_set_first_of(rest, marks) : found;
}
