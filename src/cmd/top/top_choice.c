/* top_choice.c - see top_choice.h. Called by top.c and top_screen.c. Invariant: the bar is kept by
 * the path or the node under it, so it stays there while others come and go. */
#include "cmd/top/top_choice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void top_choice_fini(struct top_choice *c)
{
    free(c->one);
    free(c->chosen);
    free(c->place);
}

/* ---- the order ------------------------------------------------------------------------------ */

/* -1 is "none", which comes last. */
static int top_compare_times(int64_t a, int64_t b)
{
    if (a == b)
        return 0;
    return a < 0 ? 1 : b < 0 ? -1 : a < b ? -1 : 1;
}

static int top_by_path(const struct top_lock *one, const struct top_lock *other)
{
    int cmp = strcmp(one->path, other->path);
    return cmp ? cmp : one->leases - other->leases;
}

static int top_by_held(const struct top_lock *one, const struct top_lock *other)
{
    int cmp = top_compare_times(one->holder.since, other->holder.since);
    return cmp ? cmp : top_by_path(one, other);
}

static int top_by_waiters(const struct top_lock *one, const struct top_lock *other)
{
    if (one->nwaiters != other->nwaiters)
        return one->nwaiters > other->nwaiters ? -1 : 1;
    int cmp = top_compare_times(one->waiting_since, other->waiting_since);
    return cmp ? cmp : top_by_held(one, other);
}

static int top_by_wait(const struct top_lock *one, const struct top_lock *other)
{
    int cmp = top_compare_times(one->waiting_since, other->waiting_since);
    return cmp ? cmp : top_by_waiters(one, other);
}

static const struct {
    const char *name;
    int (*compare)(const struct top_lock *one, const struct top_lock *other);
} orders[] = {{"oldest wait", top_by_wait},
              {"waiters", top_by_waiters},
              {"held longest", top_by_held},
              {"path", top_by_path}};

enum { TOP_ORDERS = sizeof orders / sizeof *orders };

static int top_compare(const void *a, const void *b, void *order)
{
    const struct top_lock *one = a, *other = b;
    if (one->deadlocked != other->deadlocked)
        return other->deadlocked - one->deadlocked;
    return orders[*(const size_t *)order].compare(one, other);
}

void top_choice_next_order(struct top_choice *c)
{
    c->order = (c->order + 1) % TOP_ORDERS;
}

const char *top_choice_order(const struct top_choice *c)
{
    assert(c->order < TOP_ORDERS);
    return orders[c->order].name;
}

/* ---- what is listed ------------------------------------------------------------------------- */

void top_choice_next_listed(struct top_choice *c)
{
    c->listed = (c->listed + 1) % TOP_LISTED;
}

const char *top_choice_listed(const struct top_choice *c)
{
    static const char *const names[TOP_LISTED] = {"Locks and elections", "Locks", "Elections"};
    return names[c->listed];
}

static bool top_is_listed(const struct top_choice *c, const struct top_lock *l)
{
    bool election = l->sort == LOCK_SORT_ELECTION;
    if (election ? c->listed == TOP_LOCKS : c->listed == TOP_ELECTIONS)
        return false;
    return strcasestr(l->path, c->filter) ||
           (l->nholders > 0 &&
            (strcasestr(l->holder.whose, c->filter) || strcasestr(l->holder.task, c->filter)));
}

size_t top_choice_arrange(const struct top_choice *c, struct top_view *v)
{
    size_t n = 0, order = c->order;
    for (size_t i = 0; i < v->nlocks; i++) {
        if (!top_is_listed(c, &v->locks[i]))
            continue;
        struct top_lock l = v->locks[n];
        v->locks[n++] = v->locks[i];
        v->locks[i] = l;
    }
    if (n > 1)
        qsort_r(v->locks, n, sizeof *v->locks, top_compare, &order);
    return n;
}

/* ---- the bar -------------------------------------------------------------------------------- */

/* When what was under it is gone: what has come to its place at the top of the screen. */
size_t top_choice_at(const struct top_choice *c, const struct top_view *v, size_t n)
{
    size_t rows = c->one ? v->nplaces : n;
    for (size_t i = 0; c->one && c->place && i < rows; i++)
        if (strcmp(v->places[i].node, c->place) == 0)
            return i;
    for (size_t i = 0; !c->one && c->chosen && i < rows; i++)
        if (v->locks[i].leases == c->chosen_leases && strcmp(v->locks[i].path, c->chosen) == 0)
            return i;
    return c->first < rows ? c->first : rows ? rows - 1 : 0;
}

static void top_keep(char **to, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    free(*to);
    *to = copy;
}

static size_t top_moved(size_t at, size_t n, long by)
{
    size_t step = by < 0 ? (size_t)-by : (size_t)by;
    if (by < 0)
        return at > step ? at - step : 0;
    return at + step < n ? at + step : n ? n - 1 : 0;
}

static void top_choose(struct top_choice *c, const struct top_lock *l)
{
    c->chosen_leases = l->leases;
    top_keep(&c->chosen, l->path);
}

void top_choice_move(struct top_choice *c, const struct top_view *v, size_t n, long by)
{
    size_t rows = c->one ? v->nplaces : n;
    size_t at = top_moved(top_choice_at(c, v, n), rows, by);
    if (at >= rows)
        return;
    if (c->one)
        top_keep(&c->place, v->places[at].node);
    else
        top_choose(c, &v->locks[at]);
}

void top_choice_enter(struct top_choice *c, const struct top_view *v, size_t n)
{
    size_t at = top_choice_at(c, v, n);
    if (c->one || at >= n)
        return;
    top_choose(c, &v->locks[at]);
    c->one_leases = c->chosen_leases;
    top_keep(&c->one, v->locks[at].path);
    top_keep(&c->place, NULL);
    c->first = 0;
}

void top_choice_leave(struct top_choice *c)
{
    top_keep(&c->one, NULL);
    c->help = false;
    c->first = 0;
}

void top_choice_scroll(struct top_choice *c, size_t at, size_t seen, size_t n)
{
    assert(seen > 0);
    size_t last = n > seen ? n - seen : 0; /* no empty rows below */
    if (at < c->first)
        c->first = at;
    if (at >= c->first + seen)
        c->first = at - seen + 1;
    if (c->first > last)
        c->first = last;
}
