/* sender.c - senders and their shares. Called by admission.c, answer.c, exchange.c and web.c for
 * requests, and by sessions, which keep their sender. Invariant: what the senders have of a pool
 * adds up to what the pool has given. */
#include "web/http/sender.h"

#include <assert.h>
#include <string.h>

#include "web/http/exchange.h"

clave_err clave__senders_new(struct web *w)
{
    w->senders = clave__mem_zalloc(&w->mem, sizeof *w->senders);
    return w->senders ? clave__map_init(&w->senders->map, &w->mem, clave__rand_u64(&w->rand))
                      : CLAVE_ENOMEM;
}

void clave__senders_free(struct web *w)
{
    if (w->senders)
        clave__map_fini(&w->senders->map);
    clave__mem_free(&w->mem, w->senders);
    w->senders = NULL;
}

/* ---- finding --------------------------------------------------------------------------------- */

enum { V6_BYTES = 16, V6_PREFIX = 8 };

struct sender_name {
    enum sender_kind kind;
    const char *text;
    size_t len;
};

/* The groups of an IPv6 address, as its text has them, up to `end`: at most n bytes. */
static size_t sender_v6_groups(const char *text, const char *end, uint8_t *out, size_t n)
{
    size_t len = 0;
    while (text < end && len < n) {
        unsigned group = 0;
        for (; text < end && *text != ':'; text++) {
            char c = (char)(*text | 0x20);
            group = group << 4 | (unsigned)(c <= '9' ? c - ('0' | 0x20) : c - 'a' + 10);
        }
        out[len++] = (uint8_t)(group >> 8);
        out[len++] = (uint8_t)group;
        text += text < end;
    }
    return len;
}

/* The network of one host: the first 64 bits of its address. */
static void sender_v6_prefix(const char *text, size_t n, uint8_t out[V6_PREFIX])
{
    uint8_t back[V6_BYTES], all[V6_BYTES] = {0};
    const char *end = text + n, *gap = strstr(text, "::");
    gap = gap && gap < end ? gap : end;
    sender_v6_groups(text, gap, all, sizeof all);
    size_t len = gap < end ? sender_v6_groups(gap + 2, end, back, sizeof back) : 0;
    memcpy(all + sizeof all - len, back, len);
    memcpy(out, all, V6_PREFIX);
}

/* "10.0.0.1:80", "[2001:db8::1%eth0]:80", and both without port and brackets. An IPv4 address
 * within one of IPv6 counts as it is written. */
static struct sender_name sender_name_of_address(const char *address, uint8_t prefix[V6_PREFIX])
{
    const char *first = strchr(address, ':'), *last = strrchr(address, ':');
    size_t n = first ? (size_t)(last - address) : strlen(address);
    bool bracket = address[0] == '[', is_v6 = bracket || first != last;
    if (!is_v6 || strchr(address, '.'))
        return (struct sender_name){.text = address, .len = n};
    address += bracket;
    sender_v6_prefix(address, strcspn(address, "]%"), prefix);
    return (struct sender_name){.text = (const char *)prefix, .len = V6_PREFIX};
}

static bool sender_is(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct sender, node);
    const struct sender *s = (const void *)at;
    const struct sender_name *name = key;
    return s->kind == name->kind && s->len == name->len && memcmp(s->name, name->text, s->len) == 0;
}

struct sender *clave__sender_get(struct web *w, enum sender_kind kind, const char *text)
{
    struct map *m = &w->senders->map;
    uint8_t prefix[V6_PREFIX];
    struct sender_name name = kind == SENDER_NAMED
                                  ? (struct sender_name){.text = text, .len = strlen(text)}
                                  : sender_name_of_address(text, prefix);
    name.kind = kind;
    uint32_t hash = clave__map_hash_bytes(m, name.text, name.len);
    struct map_node *found = clave__map_find(m, hash, sender_is, &name);
    if (found)
        return clave__sender_ref(MAP_ENTRY(found, struct sender, node));
    struct sender *s = clave__mem_zalloc(&w->mem, sizeof *s + name.len);
    if (!s)
        return NULL;
    s->refs = 1;
    s->kind = kind;
    s->len = name.len;
    memcpy(s->name, name.text, name.len);
    clave__map_insert(m, &s->node, hash);
    return s;
}

struct sender *clave__sender_ref(struct sender *s)
{
    assert(s->refs > 0);
    s->refs++;
    return s;
}

void clave__sender_unref(struct web *w, struct sender *s)
{
    assert(!s || s->refs > 0);
    if (!s || --s->refs > 0)
        return;
    for (size_t i = 0; i < POOLS; i++)
        assert(s->used[i] == 0);
    clave__map_remove(&w->senders->map, &s->node);
    clave__mem_free(&w->mem, s);
}

/* ---- whose a request is --------------------------------------------------------------------- */

/* The address according to the rules about proxies. */
static const char *sender_of_address(const struct web_exchange *x)
{
    return x->peer.address ? x->peer.address : "";
}

struct sender *clave__web_sender(struct web_exchange *x)
{
    bool named = x->who.is_known && x->who.name[0];
    enum sender_kind kind = SENDER_STRANGER;
    if (x->who.found == ACCESS_KNOWN)
        kind = named ? SENDER_NAMED : SENDER_ADMITTED;
    if (!x->sender)
        x->sender = clave__sender_get(x->web, kind, named ? x->who.name : sender_of_address(x));
    return x->sender;
}

/* ==== shares ================================================================================== */

enum {
    MOST_WAITING = 15000,
    MOST_SESSIONS = 10000,
    MOST_BYTES = 256 << 20,
    /* One sender may have 4 in 5 of the total, so that some is left for others. */
    ONE_SENDER = 4,
    OF_ALL = 5,
    /* Requests that do not ask to wait have a sixth more room than those that do. With three
     * quarters of the connections for the latter, an eighth is left for renewals and releases
     * alone. Where only few may wait, they have a few more, since they are answered soon. */
    CALLS_MORE = 6,
    LEAST_CALLS_MORE = 16,
    /* Strangers together may have an eighth of the bytes; one other sender, half of the rest. */
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
        most.all = SIZE_MAX; /* the driver limits that */
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
    if (all + n > limit.all) {
        *most = limit.all;
        return SENDER_ALL_TAKEN;
    }
    *most = limit.one;
    return one + n > limit.one ? SENDER_HAS_MOST : SENDER_MAY;
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

/* Sets the number of bytes that the exchange counts for. */
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

/* Counts the body, as received and as JSON, and the present part of the answer. */
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
    bool must = clave__shares_is_own(x) || !clave__web_reads(x);
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
