/* sender_limits.c - see sender_limits.h. Called by request_limits.c, answer.c, exchange.c and
 * web.c for requests, and by the sessions. Invariant: what the senders have of a pool adds up to
 * what the pool has given. */
#include "web/http/sender_limits.h"

#include <assert.h>
#include <string.h>

#include "web/http/route.h"

enum {
    MOST_WAITING = 15000,
    MOST_SESSIONS = 10000,
    MOST_BYTES = 256 << 20,
    /* Of what there is, one sender may have 4 in 5: whoever takes that much leaves some for others.
     */
    ONE_SENDER = 4,
    OF_ALL = 5,
    /* Requests that do not ask to wait have a sixth more than those that do: with three quarters of
     * the connections for these, an eighth is left for renewals and releases alone. Where few may
     * wait at all they have some more: they are answered soon. */
    CALLS_MORE = 6,
    LEAST_CALLS_MORE = 16,
    /* Of the bytes; and of the rest, one sender may have half. */
    STRANGERS = 8,
    HALF = 2
};

struct sender_most {
    size_t all, one;
};

static struct sender_most limits_part(size_t all)
{
    return (struct sender_most){all, all / OF_ALL * ONE_SENDER +
                                         (all % OF_ALL * ONE_SENDER + OF_ALL - 1) / OF_ALL};
}

static enum sender_pool limits_pool(const struct sender *s, enum sender_share share)
{
    switch (share) {
    case SENDER_WAITS:
    case SENDER_CALLS:
        return POOL_WAITS;
    case SENDER_BYTES:
        return s->kind == SENDER_STRANGER ? POOL_STRANGE_BYTES : POOL_BYTES;
    case SENDER_CONNECTIONS:
        return POOL_CONNECTIONS;
    case SENDER_SESSIONS:
        break;
    }
    return POOL_SESSIONS;
}

static struct sender_most limits_most(const struct web *w, const struct sender *s,
                                      enum sender_share share)
{
    const struct web_options *o = &w->o;
    size_t waits = o->max_waiting ? o->max_waiting : MOST_WAITING;
    size_t bytes = o->max_held ? o->max_held : MOST_BYTES;
    struct sender_most most;
    switch (share) {
    case SENDER_WAITS:
        return limits_part(waits);
    case SENDER_CALLS:
        return limits_part(waits + (waits / CALLS_MORE > LEAST_CALLS_MORE ? waits / CALLS_MORE
                                                                          : LEAST_CALLS_MORE));
    case SENDER_BYTES:
        bytes = s->kind == SENDER_STRANGER ? bytes / STRANGERS : bytes - bytes / STRANGERS;
        return (struct sender_most){bytes, bytes / HALF};
    case SENDER_CONNECTIONS:
        most = limits_part(o->max_connections ? o->max_connections : SIZE_MAX);
        most.all = SIZE_MAX; /* the driver's business */
        return most;
    case SENDER_SESSIONS:
        break;
    }
    most = limits_part(o->max_sessions ? o->max_sessions : MOST_SESSIONS);
    if (o->max_sender_sessions > 0)
        most.one = o->max_sender_sessions;
    return most;
}

/* Never NO_MEMORY. */
static enum sender_found limits_may(const struct web *w, const struct sender *s,
                                    enum sender_share share, size_t n, size_t *most)
{
    enum sender_pool pool = limits_pool(s, share);
    struct sender_most limit = limits_most(w, s, share);
    size_t all = w->senders->used[pool], one = s->used[pool];
    bool taken = all + n > limit.all;
    *most = taken ? limit.all : limit.one;
    return taken ? SENDER_ALL_TAKEN : one + n > limit.one ? SENDER_HAS_MOST : SENDER_MAY;
}

void clave__sender_add(struct web *w, struct sender *s, enum sender_share share, size_t n)
{
    enum sender_pool pool = limits_pool(s, share);
    w->senders->used[pool] += n;
    s->used[pool] += n;
}

void clave__sender_give(struct web *w, struct sender *s, enum sender_share share, size_t n)
{
    enum sender_pool pool = limits_pool(s, share);
    assert(s->used[pool] >= n && w->senders->used[pool] >= n);
    w->senders->used[pool] -= n;
    s->used[pool] -= n;
}

size_t clave__senders_have(const struct web *w, enum sender_share share)
{
    const size_t *used = w->senders->used;
    switch (share) {
    case SENDER_WAITS:
    case SENDER_CALLS:
        return used[POOL_WAITS];
    case SENDER_BYTES:
        return used[POOL_BYTES] + used[POOL_STRANGE_BYTES];
    case SENDER_CONNECTIONS:
        return used[POOL_CONNECTIONS];
    case SENDER_SESSIONS:
        break;
    }
    return used[POOL_SESSIONS];
}

bool clave__shares_is_own(const struct web_exchange *x)
{
    return x->route && (x->route->flags & ROUTE_OWN);
}

bool clave__shares_reads(const struct web_exchange *x)
{
    return strcmp(x->q->method, "GET") == 0 || strcmp(x->q->method, "HEAD") == 0;
}

enum sender_found clave__shares_may(struct web_exchange *x, enum sender_share share, size_t n,
                                    size_t *most)
{
    const struct sender *s = clave__web_sender(x);
    return s ? limits_may(x->web, s, share, n, most) : SENDER_NO_MEMORY;
}

bool clave__shares_has_most(struct web_exchange *x, enum sender_share share, size_t n, size_t *most)
{
    const struct sender *s = clave__web_sender(x);
    if (!s)
        return false;
    *most = limits_most(x->web, s, share).one;
    return s->used[limits_pool(s, share)] + n > *most;
}

/* ---- requests that wait --------------------------------------------------------------------- */

enum sender_found clave__shares_enter(struct web_exchange *x, enum sender_share share, size_t *most)
{
    assert(share == SENDER_WAITS || share == SENDER_CALLS);
    clave__shares_leave(x); /* a call that begins to wait */
    enum sender_found found = clave__shares_may(x, share, 1, most);
    if (found == SENDER_MAY)
        clave__sender_add(x->web, x->sender, share, 1);
    x->waits = found == SENDER_MAY;
    return found;
}

void clave__shares_count_waiting(struct web_exchange *x)
{
    if (x->waits || clave__shares_is_own(x) || !clave__web_sender(x))
        return;
    x->waits = true;
    clave__sender_add(x->web, x->sender, SENDER_CALLS, 1);
}

void clave__shares_leave(struct web_exchange *x)
{
    if (x->waits)
        clave__sender_give(x->web, x->sender, SENDER_CALLS, 1);
    x->waits = false;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* The exchange has so many from now on. */
static void limits_set_bytes(struct web_exchange *x, size_t n)
{
    assert(x->sender || n == x->bytes);
    if (n > x->bytes)
        clave__sender_add(x->web, x->sender, SENDER_BYTES, n - x->bytes);
    else if (n < x->bytes)
        clave__sender_give(x->web, x->sender, SENDER_BYTES, x->bytes - n);
    x->bytes = n;
}

static enum sender_found limits_try_bytes(struct web_exchange *x, size_t n, size_t *most)
{
    enum sender_found found =
        n > x->bytes ? clave__shares_may(x, SENDER_BYTES, n - x->bytes, most) : SENDER_MAY;
    if (found == SENDER_MAY)
        limits_set_bytes(x, n);
    return found;
}

enum sender_found clave__shares_take_body(struct web_exchange *x, size_t n, size_t *most)
{
    return n <= SHARES_SMALL || n <= x->bytes ? SENDER_MAY : limits_try_bytes(x, n, most);
}

/* The body, as it came and as JSON, and what there is of the answer. */
static size_t limits_bytes(const struct web_exchange *x, size_t answer)
{
    size_t body = x->received.cap + x->tree;
    bool is_small = x->received.cap <= SHARES_SMALL && x->tree <= SHARES_SMALL_TREE;
    return (is_small ? 0 : body) + (answer > SHARES_SMALL ? answer : 0);
}

enum sender_found clave__shares_take_tree(struct web_exchange *x, size_t n, size_t *most)
{
    assert(x->tree == 0);
    x->tree = n;
    enum sender_found found = limits_try_bytes(x, limits_bytes(x, 0), most);
    if (found != SENDER_MAY)
        x->tree = 0;
    return found;
}

enum sender_found clave__shares_count_answer(struct web_exchange *x)
{
    size_t n = limits_bytes(x, x->answer.body.cap), most;
    bool must = clave__shares_is_own(x) || !clave__shares_reads(x);
    enum sender_found found = limits_try_bytes(x, n, &most);
    if (found == SENDER_MAY || !must)
        return found;
    if (x->sender)
        limits_set_bytes(x, n);
    return SENDER_MAY;
}

bool clave__shares_count_piece(struct web_exchange *x, size_t n)
{
    size_t most;
    return limits_try_bytes(x, limits_bytes(x, n), &most) == SENDER_MAY;
}

void clave__shares_end(struct web_exchange *x)
{
    clave__shares_leave(x);
    limits_set_bytes(x, 0);
    clave__sender_unref(x->web, x->sender);
    x->sender = NULL;
}
