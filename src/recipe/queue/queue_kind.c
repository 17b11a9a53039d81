/* queue_kind.c - see queue_kind.h. What must stay true: each kind waits for exactly what the rule
 * of its recipe in queue_order.c says. */
#include "recipe/queue/queue_kind.h"

#include <string.h>

enum { UUID_DIGITS = 32, NUMBER_DIGITS = 10 };

static bool kazoo_is_one_of(const char *set, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] == '\0' || !strchr(set, p[i]))
            return false;
    return true;
}

bool clave__kazoo_is_name(const char *name)
{
    return kazoo_is_one_of("0123456789abcdef", name, UUID_DIGITS);
}

bool clave__kazoo_is_default(const char *name)
{
    static const char *const words[] = {"__lock__", "__rlock__"};
    if (!clave__kazoo_is_name(name))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *number = name + UUID_DIGITS + strlen(words[i]);
        if (strncmp(name + UUID_DIGITS, words[i], strlen(words[i])) != 0)
            continue;
        number += *number == '-'; /* of a counter that has wrapped */
        return kazoo_is_one_of("0123456789", number, NUMBER_DIGITS) &&
               number[NUMBER_DIGITS] == '\0';
    }
    return false;
}

bool clave__kazoo_warn(const struct log *log, const char *path, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!clave__kazoo_is_default(names[i]))
            continue;
        clave__log(log, CLAVE_LOG_WARN,
                   "%s/%s has the default name of a kazoo lock, which takes no part in this queue "
                   "and may hold at the same time as another, unless its extra_lock_patterns name "
                   "the others: give it a name of this queue (_NODE_NAME, see clave-locks(1))",
                   strcmp(path, "/") == 0 ? "" : path, names[i]);
        return true;
    }
    return false;
}

enum {
    KAZOO = 1 << QUEUE_KAZOO_LOCK | 1 << QUEUE_KAZOO_READ,
    SIDES = 1 << QUEUE_READ | 1 << QUEUE_WRITE,
    QUEUED = 1 << QUEUE_LOCK | SIDES | 1 << QUEUE_LATCH,
};

enum queue_kind clave__queue_kind_of(const char *name)
{
    static const struct {
        struct queue_order_rule names;
        enum queue_kind kind;
    } table[] = {
        {{.base = "lock-"}, QUEUE_LOCK},          {{.base = "latch-"}, QUEUE_LATCH},
        {{.base = "__READ__"}, QUEUE_READ},       {{.base = "__WRIT__"}, QUEUE_WRITE},
        {{.base = "__lock__"}, QUEUE_KAZOO_LOCK}, {{.base = "__rlock__"}, QUEUE_KAZOO_READ},
        {{.base = "lease-"}, QUEUE_LEASE},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (clave__queue_order_is_kind(&table[i].names, name))
            return table[i].kind;
    return QUEUE_OTHER;
}

const struct queue_order_rule *clave__queue_kind_rule(unsigned kinds)
{
    if (kinds & (SIDES | 1 << QUEUE_KAZOO_READ))
        return &clave__queue_order_write;
    if (kinds & 1 << QUEUE_LATCH)
        return &clave__queue_order_latch;
    if (kinds & 1 << QUEUE_LEASE)
        return &clave__queue_order_lease;
    return kinds & (1 << QUEUE_LOCK | 1 << QUEUE_KAZOO_LOCK) ? &clave__queue_order_mutex : NULL;
}

unsigned clave__queue_kind_waits_for(enum queue_kind kind)
{
    static const unsigned table[QUEUE_KINDS] = {
        [QUEUE_OTHER] = 1 << QUEUE_OTHER | QUEUED | KAZOO,
        [QUEUE_LOCK] = 1 << QUEUE_LOCK | 1 << QUEUE_KAZOO_LOCK,
        [QUEUE_READ] = 1 << QUEUE_WRITE | 1 << QUEUE_KAZOO_LOCK,
        [QUEUE_WRITE] = SIDES | KAZOO,
        [QUEUE_KAZOO_LOCK] = QUEUED | KAZOO,
        [QUEUE_KAZOO_READ] = 1 << QUEUE_WRITE | 1 << QUEUE_KAZOO_LOCK,
        [QUEUE_LATCH] = 1 << QUEUE_LATCH | 1 << QUEUE_KAZOO_LOCK,
    };
    return table[kind];
}

unsigned clave__queue_kind_unseen(enum queue_kind kind, const char *name)
{
    return 1u << kind & KAZOO && clave__kazoo_is_default(name) ? QUEUED : 0;
}
