/* What zxids promise. A zxid is one transaction: no two writes have one, and whoever sees a znode
 * as a transaction left it sees the same. A write has a greater zxid than all that was answered
 * before it was called, and than all that its session asked for before it. A read shows its znode
 * at least as new. */
#include <stdlib.h>

#include "znode_history.h"

/* What a call is after: the greatest zxid that was shown before, of any znode and of its own. */
struct bounds {
    int64_t any;
    int64_t own;
};

static bool has_stat(const struct znode_call *c)
{
    return c->answer == ZNODE_DONE && c->op != ZNODE_DELETE;
}

static bool is_write(const struct znode_call *c)
{
    return c->op == ZNODE_CREATE || c->op == ZNODE_SET || c->op == ZNODE_DELETE;
}

/* The zxid that its answer shows; 0: it shows none. */
static int64_t shown(const struct znode_call *c)
{
    if (c->answer != ZNODE_DONE)
        return 0;
    return is_write(c) ? c->zxid : c->mzxid;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* `before` was over, or asked for, first. */
static struct bounds raise_bounds(struct bounds b, const struct znode_call *c,
                                  const struct znode_call *before)
{
    b.any = most(b.any, shown(before));
    if (before->znode == c->znode)
        b.own = most(b.own, shown(before));
    return b;
}

static bool is_within(const struct znode_call *c, struct bounds b)
{
    if (shown(c) == 0)
        return true;
    return is_write(c) ? c->zxid > b.any : c->mzxid >= b.own;
}

static const char *check_before(const struct znode_history *h, size_t i)
{
    const struct znode_call *c = &h->calls[i];
    struct bounds in_time = {0, 0}, in_session = {0, 0};
    for (size_t k = 0; k < h->n; k++) {
        const struct znode_call *other = &h->calls[k];
        if (other->answered < c->called)
            in_time = raise_bounds(in_time, c, other);
        if (k < i && other->session == c->session && c->session != 0)
            in_session = raise_bounds(in_session, c, other);
    }
    if (!is_within(c, in_time))
        return "its zxid is not after what was answered before its call";
    return is_within(c, in_session) ? NULL : "its zxid is not in the order of its session";
}

/* ---- what was seen of each transaction ---------------------------------------------------- */

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_znode_and_time(const void *a, const void *b)
{
    const struct znode_call *x = *(const struct znode_call *const *)a;
    const struct znode_call *y = *(const struct znode_call *const *)b;
    int order = compare(x->znode, y->znode);
    return order ? order : compare(x->mzxid, y->mzxid);
}

static int by_zxid(const void *a, const void *b)
{
    const struct znode_call *x = *(const struct znode_call *const *)a;
    const struct znode_call *y = *(const struct znode_call *const *)b;
    int order = compare(shown(x), shown(y));
    return order ? order : is_write(y) - is_write(x);
}

static const char *check_stat(const struct znode_call *c)
{
    if (is_write(c) && c->mzxid != c->zxid)
        return "its reply has another zxid than its stat";
    if ((c->czxid == c->mzxid) != (c->version == 0) || c->czxid > c->mzxid)
        return "its version is 0 if and only if it was never written to";
    return NULL;
}

static const char *check_neighbours(const struct znode_call *a, const struct znode_call *b)
{
    bool shows_data = a->op != ZNODE_EXISTS && b->op != ZNODE_EXISTS;
    if (a->mzxid == b->mzxid &&
        (a->czxid != b->czxid || a->version != b->version || (shows_data && a->value != b->value)))
        return "one transaction was seen to leave two states";
    if (a->mzxid < b->mzxid && a->czxid == b->czxid && a->version >= b->version)
        return "a later write has no greater version";
    if (a->czxid != b->czxid && b->czxid <= a->mzxid)
        return "a znode was made before its predecessor was gone";
    return NULL;
}

static const char *check_states(const struct znode_history *h, const struct znode_call **seen,
                                size_t *at)
{
    const char *why = NULL;
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        if (has_stat(&h->calls[i]))
            seen[n++] = &h->calls[i];
    qsort(seen, n, sizeof *seen, by_znode_and_time);
    for (size_t i = 0; i < n && !why; i++) {
        *at = (size_t)(seen[i] - h->calls);
        why = check_stat(seen[i]);
        if (!why && i > 0 && seen[i - 1]->znode == seen[i]->znode)
            why = check_neighbours(seen[i - 1], seen[i]);
    }
    return why;
}

/* Of what shows the same zxid, the writes come first. */
static const char *check_uniqueness(const struct znode_history *h, const struct znode_call **seen,
                                    size_t *at)
{
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++)
        if (shown(&h->calls[i]) != 0)
            seen[n++] = &h->calls[i];
    qsort(seen, n, sizeof *seen, by_zxid);
    for (size_t i = 1; i < n; i++) {
        const struct znode_call *a = seen[i - 1], *b = seen[i];
        *at = (size_t)(b - h->calls);
        if (shown(a) == shown(b) && (is_write(b) || a->znode != b->znode))
            return "two transactions have one zxid";
    }
    return NULL;
}

const char *znode_order_check(const struct znode_history *h, size_t *at)
{
    const struct znode_call **seen = calloc(h->n + 1, sizeof *seen);
    if (!seen)
        abort();
    const char *why = check_uniqueness(h, seen, at);
    if (!why)
        why = check_states(h, seen, at);
    free(seen);
    for (size_t i = 0; i < h->n && !why; i++) {
        why = check_before(h, i);
        *at = i;
    }
    return why;
}
