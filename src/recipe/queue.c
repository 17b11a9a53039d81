#include "recipe/queue.h"

#include <stdint.h>
#include <string.h>

/* A sequence number is 10 digits: the parent's count of creates, which runs from
 * 2147483647 over to -2147483648 (ZOOKEEPER-2944). '-' sorts before the digits, so from
 * there on every newcomer would own the lock; we stop before. */
enum { DIGITS = 10 };
static const char counter_limit[] = "2147482647";

const struct queue_rule clave__queue_mutex = {.base = "lock-", .kin = "__lock__"};
/* Curator's names have one length, so that a number stands at the same place in both. */
const struct queue_rule clave__queue_read = {
    .base = "__READ__", .kin = "__rlock__", .other = &clave__queue_write, .shares = true};
const struct queue_rule clave__queue_write = {
    .base = "__WRIT__", .kin = "__lock__", .other = &clave__queue_read, .overtaken = true};
const struct queue_rule clave__queue_lease = {.base = "lease-"};
const struct queue_rule clave__queue_latch = {.base = "latch-", .kin = "__lock__"};

clave_err clave__queue_bare(struct queue_rule *out, const char *prefix)
{
    bool slash = false, letter = false;
    *out = (struct queue_rule){.base = prefix, .bare = true};
    for (const char *p = prefix; p && *p; p++) {
        slash = slash || *p == '/';
        letter = letter || (*p != '-' && (*p < '0' || *p > '9'));
    }
    return letter && !slash ? CLAVE_OK : CLAVE_EINVAL;
}

static bool is_number(const char *s)
{
    for (size_t i = 0; i < DIGITS; i++)
        if (s[i] < '0' || s[i] > '9')
            return false;
    return s[DIGITS] == '\0';
}

/* The text behind the last occurrence of `base`; NULL when there is none. */
static const char *behind_last(const char *name, size_t len, const char *base)
{
    size_t nbase = strlen(base);
    for (size_t at = len + 1; at-- > nbase;)
        if (memcmp(name + at - nbase, base, nbase) == 0)
            return name + at;
    return NULL;
}

/* As behind_last, only where a number ends the name. */
static const char *number_behind(const char *name, size_t len, const char *base)
{
    size_t nbase = strlen(base);
    for (size_t n = DIGITS; n <= DIGITS + 1; n++) {
        if (len < nbase + n || memcmp(name + len - n - nbase, base, nbase) != 0)
            continue;
        const char *number = name + len - n;
        if (is_number(number) || (number[0] == '-' && is_number(number + 1)))
            return number;
    }
    return NULL;
}

/* With two kinds, what stands behind the last base name of either. */
static const char *key_text(const struct queue_rule *rule, const char *name, size_t len)
{
    const char *text = behind_last(name, len, rule->base);
    const char *other = rule->other ? behind_last(name, len, rule->other->base) : NULL;
    if (!text || (other && other > text))
        text = other;
    if (!text && rule->kin)
        text = number_behind(name, len, rule->kin);
    if (!text && rule->other && rule->other->kin)
        text = number_behind(name, len, rule->other->kin);
    return text;
}

bool clave__queue_is_kind(const struct queue_rule *rule, const char *name)
{
    size_t len = strlen(name);
    return behind_last(name, len, rule->base) || (rule->kin && number_behind(name, len, rule->kin));
}

struct queue_key clave__queue_key(const struct queue_rule *rule, const char *name)
{
    const char *text = key_text(rule, name, strlen(name));
    if (!text)
        return (struct queue_key){.text = name};
    bool number = is_number(text);
    return (struct queue_key){
        .text = text,
        .plain = number,
        .exhausted = number ? strcmp(text, counter_limit) >= 0 : text[0] == '-',
    };
}

/* Java compares UTF-16 units; names have no characters above the BMP, so bytes of UTF-8
 * compare alike. */
static bool comes_before(const char *a, size_t ia, const char *b, size_t ib)
{
    int cmp = strcmp(a, b);
    return cmp < 0 || (cmp == 0 && ia < ib);
}

/* The two names closest before us so far; keys point into them. */
struct nearest {
    const char *name;
    const char *key;
    size_t index;
};

static void offer(struct nearest best[2], struct nearest it)
{
    if (!best[0].name || comes_before(best[0].key, best[0].index, it.key, it.index)) {
        best[1] = best[0];
        best[0] = it;
    } else if (!best[1].name || comes_before(best[1].key, best[1].index, it.key, it.index)) {
        best[1] = it;
    }
}

/* Can it stand in our way at all? */
static bool may_block(const struct queue_rule *rule, const char *name)
{
    return !rule->shares || clave__queue_is_kind(rule->other, name);
}

struct queue_place clave__queue_locate(const struct queue_rule *rule, const char *const *names,
                                       size_t n, const char *own)
{
    struct queue_place place = {.plain = true};
    size_t mine = 0;
    for (size_t i = 0; i < n && !place.found; i++) {
        place.found = strcmp(names[i], own) == 0;
        mine = i;
    }
    if (!place.found)
        return place;

    struct queue_key own_key = clave__queue_key(rule, own);
    place.exhausted = own_key.exhausted;
    struct nearest best[2] = {{0}, {0}};
    for (size_t i = 0; i < n; i++) {
        struct queue_key key = clave__queue_key(rule, names[i]);
        /* Another's number near the limit is still in order; behind a '-' nothing is. */
        place.exhausted = place.exhausted || (key.exhausted && !key.plain);
        if (i != mine && !may_block(rule, names[i]))
            continue;
        place.plain = place.plain && key.plain;
        /* Those who share are not held up by their own number: it is the write node of a
         * downgrade, whatever the server's order. */
        if (!comes_before(key.text, rule->shares ? mine : i, own_key.text, mine))
            continue;
        place.ahead++;
        offer(best, (struct nearest){names[i], key.text, i});
    }
    place.last = best[0].name;
    place.last_but = best[1].name;
    return place;
}

struct sorting {
    const char **keys;
    size_t *order;
};

static bool out_of_order(const struct sorting *s, size_t a, size_t b)
{
    return comes_before(s->keys[a], a, s->keys[b], b);
}

static void sift_down(const struct sorting *s, size_t root, size_t n)
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

/* Heap sort: libc's qsort may take memory behind the hooks. The index decides between
 * equal keys, so the order is the stable one. */
clave_err clave__queue_order(const struct queue_rule *rule, const struct clave_mem *mem,
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
        s.keys[i] = clave__queue_key(rule, names[i]).text;
        order[i] = i;
    }
    for (size_t i = n / 2; i-- > 0;)
        sift_down(&s, i, n);
    for (size_t end = n - 1; end > 0; end--) {
        size_t swap = order[0];
        order[0] = order[end];
        order[end] = swap;
        sift_down(&s, 0, end);
    }
    clave__mem_free(mem, s.keys);
    return CLAVE_OK;
}
