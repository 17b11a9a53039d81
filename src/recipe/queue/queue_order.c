/* queue_order.c - who is before whom in a queue; see queue_order.h. What must stay true: the order
 * is Curator's, and depends on nothing but the names. */
#include "recipe/queue/queue_order.h"

#include <stdint.h>
#include <string.h>

/* A sequence number is the number of children that the parent ever had, written with "%010d": 10
 * digits, until it wraps from 2147483647 to -2147483648 (ZOOKEEPER-2944). '-' sorts before the
 * digits, so from then on every newcomer would own the lock; we stop before that. */
enum { DIGITS = 10 };
static const char counter_limit[] = "2147482647";
static const char counter_least[] = "2147483648"; /* the digits of the lowest negative number */

const struct queue_order_rule clave__queue_order_mutex = {.base = "lock-",
                                                          .kazoo_base = "__lock__"};
/* A reader waits for the writers before it, a writer for every node before it. Both of Curator's
 * names have the same length, so the number is at the same position in both. */
const struct queue_order_rule clave__queue_order_read = {.base = "__READ__",
                                                         .kazoo_base = "__rlock__",
                                                         .other = &clave__queue_order_write,
                                                         .shares = true};
const struct queue_order_rule clave__queue_order_write = {.base = "__WRIT__",
                                                          .kazoo_base = "__lock__",
                                                          .other = &clave__queue_order_read,
                                                          .overtaken = true};
const struct queue_order_rule clave__queue_order_lease = {.base = "lease-", .any_child = true};
const struct queue_order_rule clave__queue_order_latch = {.base = "latch-",
                                                          .kazoo_base = "__lock__"};

clave_err clave__queue_order_unprotected(struct queue_order_rule *out, const char *prefix)
{
    bool slash = false, letter = false;
    *out = (struct queue_order_rule){.base = prefix, .unprotected = true};
    for (const char *p = prefix; p && *p; p++) {
        slash = slash || *p == '/';
        letter = letter || (*p != '-' && (*p < '0' || *p > '9'));
    }
    return letter && !slash ? CLAVE_OK : CLAVE_EINVAL;
}

static bool queue_order_is_digits(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9')
            return false;
    return s[n] == '\0';
}

/* True for the form in which the server writes a counter that has wrapped: a sign and at least 9
 * digits. "-3" is not such a number, since anybody can write it. */
static bool queue_order_is_wrapped(const char *s)
{
    if (s[0] != '-')
        return false;
    if (queue_order_is_digits(s + 1, DIGITS - 1))
        return strcmp(s + 1, "000000000") != 0;
    return queue_order_is_digits(s + 1, DIGITS) && s[1] != '0' && strcmp(s + 1, counter_least) <= 0;
}

/* The number at the end of the name, right after `base`; NULL: there is none. */
static const char *queue_order_number_after(const char *name, size_t len, const char *base)
{
    size_t nbase = strlen(base);
    for (size_t n = DIGITS; n <= DIGITS + 1; n++) {
        if (len < nbase + n || memcmp(name + len - n - nbase, base, nbase) != 0)
            continue;
        const char *number = name + len - n;
        if (queue_order_is_digits(number, DIGITS) || queue_order_is_wrapped(number))
            return number;
    }
    return NULL;
}

static const char *queue_order_number_of_kind(const struct queue_order_rule *rule, const char *name,
                                              size_t len)
{
    const char *number = queue_order_number_after(name, len, rule->base);
    return !number && rule->kazoo_base ? queue_order_number_after(name, len, rule->kazoo_base)
                                       : number;
}

bool clave__queue_order_is_kind(const struct queue_order_rule *rule, const char *name)
{
    return queue_order_number_of_kind(rule, name, strlen(name)) != NULL;
}

struct queue_order_key clave__queue_order_key(const struct queue_order_rule *rule, const char *name)
{
    size_t len = strlen(name);
    const char *text = queue_order_number_of_kind(rule, name, len);
    if (!text && rule->other)
        text = queue_order_number_of_kind(rule->other, name, len);
    if (!text)
        return (struct queue_order_key){.text = name, .contender = rule->any_child};
    bool number = text[0] != '-';
    return (struct queue_order_key){
        .text = text,
        .numbered = true,
        .contender = true,
        .plain = number,
        .exhausted = !number || strcmp(text, counter_limit) >= 0,
    };
}

/* Java compares UTF-16 units. Names have no characters above the BMP, so comparing the bytes of
 * UTF-8 gives the same result. */
static bool queue_order_comes_before(const char *a, size_t ia, const char *b, size_t ib)
{
    int cmp = strcmp(a, b);
    return cmp < 0 || (cmp == 0 && ia < ib);
}

/* The two names nearest before ours so far. The keys point into them. */
struct nearest {
    const char *name;
    const char *key;
    size_t index;
};

static void queue_order_keep_nearest(struct nearest best[2], struct nearest it)
{
    if (!best[0].name || queue_order_comes_before(best[0].key, best[0].index, it.key, it.index)) {
        best[1] = best[0];
        best[0] = it;
    } else if (!best[1].name ||
               queue_order_comes_before(best[1].key, best[1].index, it.key, it.index)) {
        best[1] = it;
    }
}

/* Counts the nodes of both kinds before ours, whose key is `own`. The first of them are owners: a
 * single node, or all readers before the first writer. */
static void queue_order_count_before(const struct queue_order_rule *rule, const char *const *names,
                                     size_t n, size_t mine, const char *own,
                                     struct queue_order_place *place)
{
    const char *writer = own;
    size_t at = mine;
    bool reads_first = false;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++) {
            struct queue_order_key key = clave__queue_order_key(rule, names[i]);
            if (i == mine || !key.contender || !queue_order_comes_before(key.text, i, own, mine))
                continue;
            bool other = rule->other && clave__queue_order_is_kind(rule->other, names[i]);
            bool reads = rule->other && other != rule->shares;
            bool first = queue_order_comes_before(key.text, i, writer, at);
            if (pass == 0) {
                place->before++;
                if (!reads && first) {
                    writer = key.text;
                    at = i;
                }
            } else if (reads && first) {
                reads_first = true;
                place->owners++;
            }
        }
    }
    if (!reads_first && place->before > 0)
        place->owners = 1;
    place->before -= place->owners;
}

/* True if a node before ours makes us wait. `is_other`: it is of the other kind. */
static bool queue_order_blocks(const struct queue_order_rule *rule, bool is_other)
{
    return !rule->shares || is_other;
}

struct queue_order_place clave__queue_order_locate(const struct queue_order_rule *rule,
                                                   const char *const *names, size_t n,
                                                   const char *own)
{
    struct queue_order_place place = {.plain = true};
    size_t mine = 0;
    for (size_t i = 0; i < n && !place.found; i++) {
        place.found = strcmp(names[i], own) == 0;
        mine = i;
    }
    if (!place.found)
        return place;

    struct queue_order_key own_key = clave__queue_order_key(rule, own);
    /* only our own number certainly comes from the server */
    place.exhausted = own_key.exhausted || !own_key.contender;
    struct nearest best[2] = {{0}, {0}};
    for (size_t i = 0; i < n; i++) {
        struct queue_order_key key = clave__queue_order_key(rule, names[i]);
        if (!key.contender)
            continue;
        place.contenders++;
        place.unnumbered += !key.numbered;
        bool other = rule->other && clave__queue_order_is_kind(rule->other, names[i]);
        if (i != mine && !queue_order_blocks(rule, other))
            continue;
        place.plain = place.plain && key.plain;
        /* Nodes that have the same number are in the order of the server's list. But a reader does
         * not wait for a node with its own number, which is the write node of a downgrade. */
        size_t at = rule->shares ? mine : i;
        if (!queue_order_comes_before(key.text, at, own_key.text, mine))
            continue;
        place.ahead++;
        queue_order_keep_nearest(best, (struct nearest){names[i], key.text, i});
    }
    if (place.ahead > 0)
        queue_order_count_before(rule, names, n, mine, own_key.text, &place);
    place.predecessor = best[0].name;
    place.before_predecessor = best[1].name;
    return place;
}

struct queue_order_place clave__queue_order_at_end(const struct queue_order_rule *rule,
                                                   const char *const *names, size_t n)
{
    static const char last[] = "~"; /* after every number */
    struct queue_order_place place = {.plain = true};
    for (size_t i = 0; i < n; i++) {
        struct queue_order_key key = clave__queue_order_key(rule, names[i]);
        bool other = rule->other && clave__queue_order_is_kind(rule->other, names[i]);
        place.contenders += key.contender;
        place.unnumbered += key.contender && !key.numbered;
        place.ahead += key.contender && queue_order_blocks(rule, other);
    }
    if (place.ahead > 0)
        queue_order_count_before(rule, names, n, n, last, &place);
    return place;
}

struct sorting {
    struct queue_order_key *keys;
    size_t *order;
};

/* Names that have a number come first. */
static bool out_of_order(const struct sorting *s, size_t a, size_t b)
{
    if (s->keys[a].numbered != s->keys[b].numbered)
        return s->keys[a].numbered;
    return queue_order_comes_before(s->keys[a].text, a, s->keys[b].text, b);
}

static void queue_order_sift_down(const struct sorting *s, size_t root, size_t n)
{
    for (size_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
        if (child + 1 < n && out_of_order(s, s->order[child], s->order[child + 1]))
            child++;
        if (!out_of_order(s, s->order[root], s->order[child]))
            return;
        size_t swap = s->order[root];
        s->order[root] = s->order[child];
        s->order[child] = swap;
        root = child;
    }
}

/* Sorts with a heap, because libc's qsort may allocate memory behind our hooks. Equal keys are
 * ordered by index, so the order is stable. */
clave_err clave__queue_order_sort(const struct queue_order_rule *rule, const struct clave_mem *mem,
                                  const char *const *names, size_t n, size_t *order)
{
    if (n == 0)
        return CLAVE_OK;
    struct sorting s = {.order = order};
    if (n > SIZE_MAX / sizeof *s.keys)
        return CLAVE_ENOMEM;
    s.keys = clave__mem_alloc(mem, n * sizeof *s.keys);
    if (!s.keys)
        return CLAVE_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        s.keys[i] = clave__queue_order_key(rule, names[i]);
        order[i] = i;
    }
    for (size_t i = n / 2; i-- > 0;)
        queue_order_sift_down(&s, i, n);
    for (size_t end = n - 1; end > 0; end--) {
        size_t swap = order[0];
        order[0] = order[end];
        order[end] = swap;
        queue_order_sift_down(&s, 0, end);
    }
    clave__mem_free(mem, s.keys);
    return CLAVE_OK;
}
