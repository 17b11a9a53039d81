/* names_fuzz.c - children of a lock's path with any names: in one order, whoever asks. The first
 * byte says by which rule; then comes a name a line. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "recipe/election/latch_internal.h"
#include "recipe/queue/priority_tag.h"
#include "recipe/queue/queue_order.h"

enum { NAMES = 64 };

static const struct queue_order_rule *const rules[] = {
    &clave__queue_order_mutex, &clave__queue_order_read, &clave__queue_order_write,
    &clave__queue_order_lease, &clave__queue_order_latch};
enum { RULES = sizeof rules / sizeof *rules };

/* Cuts the text; no name stands there twice, as in a folder. */
static size_t split(char *text, const char *names[NAMES])
{
    size_t n = 0;
    for (char *at = text; at && n < NAMES;) {
        char *end = strchr(at, '\n');
        if (end)
            *end++ = '\0';
        bool known = *at == '\0';
        for (size_t i = 0; i < n && !known; i++)
            known = strcmp(names[i], at) == 0;
        if (!known)
            names[n++] = at;
        at = end;
    }
    return n;
}

static void check_name(const struct queue_order_rule *rule, const char *name)
{
    struct queue_order_key key = clave__queue_order_key(rule, name);
    size_t len = strlen(name);
    must(key.text >= name && key.text <= name + len);
    must(!key.plain || name + len - key.text == 10);
    must(!key.plain || clave__queue_order_is_kind(rule, name) ||
         (rule->other && clave__queue_order_is_kind(rule->other, name)));
    must(clave__priority_of(name) >= 0);
}

/* As many are ahead as the order says; for a rule that shares, as many of the other kind. Only
 * contenders count, and a name that is none owns nothing. A rule by which every child counts
 * compares no places: it only counts. */
static void check_place(const struct queue_order_rule *rule, const char *const *names, size_t n,
                        const size_t *order, size_t at)
{
    const char *own = names[order[at]], *before[2] = {NULL, NULL};
    struct queue_order_place place = clave__queue_order_locate(rule, names, n, own);
    struct queue_order_key key = clave__queue_order_key(rule, own);
    size_t ahead = 0, contenders = 0;
    must(place.found);
    for (size_t i = 0; i < n; i++)
        contenders += clave__queue_order_key(rule, names[i]).contender;
    must(place.contenders == contenders);
    must(key.contender || place.exhausted);
    if (!key.contender || rule->any_child)
        return;
    for (size_t i = 0; i < at; i++) {
        const char *name = names[order[i]];
        bool level = rule->shares && strcmp(clave__queue_order_key(rule, name).text, key.text) == 0;
        if (level || (rule->shares && !clave__queue_order_is_kind(rule->other, name)))
            continue;
        ahead++;
        before[1] = before[0];
        before[0] = name;
    }
    must(place.ahead == ahead && place.predecessor == before[0] &&
         place.before_predecessor == before[1]);
}

static void check_rank(const char *const *names, size_t n, const size_t *order, uint8_t byte)
{
    char tag[CLAVE_PRIORITY_TAG], name[CLAVE_PRIORITY_TAG + 64];
    size_t first = clave__priority_highest(names, order, n);
    for (size_t i = 0; i < n; i++) {
        int32_t rank = clave__priority_of(names[order[i]]),
                highest = clave__priority_of(names[order[first]]);
        must(rank < highest || (rank == highest && i >= first));
    }
    int32_t priority = clave__latch_priority_spread(names[0], names[n - 1]) >> byte % 31;
    clave__priority_tag(priority, tag);
    snprintf(name, sizeof name, "_c_00000000-0000-4000-8000-000000000000-%slatch-0000000000", tag);
    must(clave__priority_of(name) == priority);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct clave_mem mem = clave__mem_or_default(NULL);
    struct input in = {data, size};
    struct queue_order_rule unprotected;
    const char *names[NAMES];
    size_t order[NAMES];
    uint8_t byte = input_byte(&in);
    const struct queue_order_rule *rule = rules[byte % RULES];
    char *text = malloc(in.n + 1);
    must(text != NULL);
    if (in.n > 0)
        memcpy(text, in.p, in.n);
    text[in.n] = '\0';
    size_t n = split(text, names);
    if (byte >= 128 && n > 0 && clave__queue_order_unprotected(&unprotected, names[0]) == CLAVE_OK)
        rule = &unprotected;
    must(clave__queue_order_sort(rule, &mem, names, n, order) == CLAVE_OK);
    for (size_t i = 0; i < n; i++)
        check_name(rule, names[i]);
    for (size_t i = 0; i < n; i++)
        check_place(rule, names, n, order, i);
    if (n > 0)
        check_rank(names, n, order, byte);
    must(!clave__queue_order_locate(rule, names, n, "\n").found);
    free(text);
    return 0;
}
