/* timer.c - the pairing heap of timer.h. It is intrusive and allocates nothing. The root is the
 * timer that is due first. */
#include "client/timer.h"

#include <stddef.h>

static bool timer_before(const struct timer *a, const struct timer *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

/* Merges two heaps, either of which may be NULL. */
static struct timer *timer_meld(struct timer *a, struct timer *b)
{
    if (!a || !b)
        return a ? a : b;
    if (timer_before(b, a)) {
        struct timer *t = a;
        a = b;
        b = t;
    }
    b->next = a->child;
    if (b->next)
        b->next->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

/* Merges siblings in pairs from the left, then merges the pairs from the right. */
static struct timer *timer_meld_siblings(struct timer *first)
{
    struct timer *pairs = NULL;
    while (first) {
        struct timer *a = first;
        struct timer *b = a->next;
        first = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b)
            b->next = b->prev = NULL;
        a = timer_meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    struct timer *root = NULL;
    while (pairs) {
        struct timer *rest = pairs->next;
        pairs->next = NULL;
        root = timer_meld(root, pairs);
        pairs = rest;
    }
    return root;
}

void clave__timers_set(struct timers *ts, struct timer *t, int64_t at)
{
    clave__timers_clear(ts, t);
    t->at = at;
    t->seq = ts->seq++;
    t->armed = true;
    ts->root = timer_meld(ts->root, t);
}

static void timer_cut_out(struct timer *t)
{
    if (t->prev->child == t)
        t->prev->child = t->next;
    else
        t->prev->next = t->next;
    if (t->next)
        t->next->prev = t->prev;
    t->next = t->prev = NULL;
}

void clave__timers_clear(struct timers *ts, struct timer *t)
{
    if (!t->armed)
        return;
    struct timer *below = t->child;
    t->child = NULL;
    t->armed = false;
    if (t == ts->root) {
        ts->root = timer_meld_siblings(below);
        return;
    }
    timer_cut_out(t);
    ts->root = timer_meld(ts->root, timer_meld_siblings(below));
}

struct timer *clave__timers_pop(struct timers *ts, int64_t now)
{
    struct timer *t = ts->root;
    if (!t || t->at > now)
        return NULL;
    clave__timers_clear(ts, t);
    return t;
}
