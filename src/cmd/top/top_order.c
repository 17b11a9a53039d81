/* top_order.c - see top_order.h. Called by top.c, top_selection.c and top_screen.c. */
#include "cmd/top/top_order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* -1 is "none", which comes last. */
static int top_order_by_time(int64_t a, int64_t b)
{
    if (a == b)
        return 0;
    return a < 0 ? 1 : b < 0 ? -1 : a < b ? -1 : 1;
}

static int top_order_by_path(const struct top_lock *one, const struct top_lock *other)
{
    int cmp = strcmp(one->path, other->path);
    return cmp ? cmp : one->leases - other->leases;
}

static int top_order_by_held(const struct top_lock *one, const struct top_lock *other)
{
    int cmp = top_order_by_time(one->holder.since, other->holder.since);
    return cmp ? cmp : top_order_by_path(one, other);
}

static int top_order_by_waiters(const struct top_lock *one, const struct top_lock *other)
{
    if (one->nwaiters != other->nwaiters)
        return one->nwaiters > other->nwaiters ? -1 : 1;
    int cmp = top_order_by_time(one->waiting_since, other->waiting_since);
    return cmp ? cmp : top_order_by_held(one, other);
}

static int top_order_by_wait(const struct top_lock *one, const struct top_lock *other)
{
    int cmp = top_order_by_time(one->waiting_since, other->waiting_since);
    return cmp ? cmp : top_order_by_waiters(one, other);
}

static const struct {
    const char *name;
    int (*compare)(const struct top_lock *one, const struct top_lock *other);
} orders[] = {{"oldest wait", top_order_by_wait},
              {"waiters", top_order_by_waiters},
              {"held longest", top_order_by_held},
              {"path", top_order_by_path}};

enum { TOP_ORDERS = sizeof orders / sizeof *orders };

static int top_order_compare(const void *a, const void *b, void *order)
{
    const struct top_lock *one = a, *other = b;
    if (one->deadlocked != other->deadlocked)
        return other->deadlocked - one->deadlocked;
    return orders[*(const size_t *)order].compare(one, other);
}

size_t top_order_next(size_t order)
{
    return (order + 1) % TOP_ORDERS;
}

const char *top_order_name(size_t order)
{
    assert(order < TOP_ORDERS);
    return orders[order].name;
}

void top_order_sort(size_t order, struct top_lock *locks, size_t n)
{
    if (n > 1)
        qsort_r(locks, n, sizeof *locks, top_order_compare, &order);
}
