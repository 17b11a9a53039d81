/* top_selection.c - see top_selection.h. Called by top.c and top_screen.c. Invariant: the bar is
 * kept by the path or the node under it, so it stays there while others come and go. */
#include "cmd/top/top_selection.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/top/top_order.h"

void top_selection_fini(struct top_selection *c)
{
    free(c->one);
    free(c->chosen);
    free(c->place);
}

/* ---- what is listed ------------------------------------------------------------------------- */

void top_selection_next_listed(struct top_selection *c)
{
    c->listed = (c->listed + 1) % TOP_LISTED;
}

const char *top_selection_listed(const struct top_selection *c)
{
    static const char *const names[TOP_LISTED] = {"Locks and elections", "Locks", "Elections"};
    return names[c->listed];
}

static bool top_is_listed(const struct top_selection *c, const struct top_lock *l)
{
    bool election = l->kind == LOCK_KIND_ELECTION;
    if (election ? c->listed == TOP_LOCKS : c->listed == TOP_ELECTIONS)
        return false;
    return strcasestr(l->path, c->filter) ||
           (l->nholders > 0 &&
            (strcasestr(l->holder.whose, c->filter) || strcasestr(l->holder.task, c->filter)));
}

size_t top_selection_arrange(const struct top_selection *c, struct top_view *v)
{
    size_t n = 0;
    for (size_t i = 0; i < v->nlocks; i++) {
        if (!top_is_listed(c, &v->locks[i]))
            continue;
        struct top_lock l = v->locks[n];
        v->locks[n++] = v->locks[i];
        v->locks[i] = l;
    }
    top_order_sort(c->order, v->locks, n);
    return n;
}

/* ---- the bar -------------------------------------------------------------------------------- */

/* When what was under it is gone: what has come to its place at the top of the screen. */
size_t top_selection_at(const struct top_selection *c, const struct top_view *v, size_t n)
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

static void top_choose(struct top_selection *c, const struct top_lock *l)
{
    c->chosen_leases = l->leases;
    top_keep(&c->chosen, l->path);
}

void top_selection_move(struct top_selection *c, const struct top_view *v, size_t n, long by)
{
    size_t rows = c->one ? v->nplaces : n;
    size_t at = top_moved(top_selection_at(c, v, n), rows, by);
    if (at >= rows)
        return;
    if (c->one)
        top_keep(&c->place, v->places[at].node);
    else
        top_choose(c, &v->locks[at]);
}

void top_selection_enter(struct top_selection *c, const struct top_view *v, size_t n)
{
    size_t at = top_selection_at(c, v, n);
    if (c->one || at >= n)
        return;
    top_choose(c, &v->locks[at]);
    c->one_leases = c->chosen_leases;
    top_keep(&c->one, v->locks[at].path);
    top_keep(&c->place, NULL);
    c->first = 0;
}

void top_selection_leave(struct top_selection *c)
{
    top_keep(&c->one, NULL);
    c->help = false;
    c->first = 0;
}

void top_selection_scroll(struct top_selection *c, size_t at, size_t seen, size_t n)
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
