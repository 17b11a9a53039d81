#include "lock_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/server_internal.h"

enum { DIGITS = 10 };

const char *lock_kind_name(enum lock_kind kind)
{
    static const char *const names[LOCK_KINDS] = {
        [LOCK_MUTEX] = "mutex",
        [LOCK_RWLOCK] = "read-write lock",
        [LOCK_SEMAPHORE] = "semaphore",
        [LOCK_LATCH] = "election",
    };
    return names[kind];
}

struct lock_layout layout_make(unsigned nth, enum lock_kind kind)
{
    static const struct lock_layout places[LOCKS] = {
        {.path = "/locks/a",
         .queue = "/locks/a",
         .counter = "/counter-a",
         .unguarded = "/unguarded-a"},
        {.path = "/b", .queue = "/b", .counter = "/counters/b", .unguarded = "/unguarded-b"},
    };
    static const char *const leases[LOCKS] = {"/locks/a/leases", "/b/leases"};
    static const char *const gates[LOCKS] = {"/locks/a/locks", "/b/locks"};
    struct lock_layout s = places[nth];
    s.kind = kind;
    s.limit = 1;
    if (kind == LOCK_SEMAPHORE) {
        s.queue = leases[nth];
        s.gate = gates[nth];
    }
    return s;
}

bool layout_is_exclusive(const struct lock_layout *s)
{
    return s->limit == 1;
}

/* Names that whoever queues there has to reckon with, and names to be passed over. */
const char *layout_foreign_name(const struct lock_layout *s, const char *directory, unsigned way)
{
    static const char *const names[LOCK_KINDS][FOREIGN_NAMES] = {
        [LOCK_MUTEX] = {"_c_0-lock-", "0123__lock__", "stranger-lock-", "_c_0-lock--3",
                        "deadlock--", "0000000000-"},
        [LOCK_RWLOCK] = {"0123__lock__", "0123__rlock__", "_c_0-__WRIT__", "_c_0-__WRIT__-3",
                         "_c_0-__READ__0", "0000000000-"},
        [LOCK_SEMAPHORE] = {"_c_0-lease-", "stranger-lease-", "0123-lease-", "whatever",
                            "0-lease--3", "0000000000-"},
        [LOCK_LATCH] = {"_c_0-latch-", "0123__lock__", "stranger-latch-", "_c_0-latch--3",
                        "0000000000-", "latch-x"},
    };
    bool gate = s->gate && strcmp(directory, s->gate) == 0;
    return names[gate ? LOCK_MUTEX : s->kind][way];
}

/* ---- what stands there --------------------------------------------------------------- */

int64_t layout_child(const struct server_host *h, const char *directory, size_t nth, char *out,
                     size_t cap)
{
    const struct node *n = inspector_child(h, directory, nth);
    if (!n)
        return -1;
    snprintf(out, cap, "%.*s", (int)n->path_len, clave__node_path(n));
    return clave__owner_kind(n->stat.owner) == NODE_EPHEMERAL ? n->stat.owner : 0;
}

struct place {
    int64_t number; /* the last ten digits of the name */
    bool writes;    /* of a read-write lock: readers wait for it */
};

static struct place place_of(const struct node *n)
{
    char name[PATH_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)n->path_len, clave__node_path(n));
    size_t len = strlen(name);
    return (struct place){
        .number = atoll(len > DIGITS ? name + len - DIGITS : name),
        .writes = strstr(name, "__WRIT__") || strstr(name, "__lock__"),
    };
}

/* A read that took its write's place has the number of that, and so its place: who stands where
 * tells the number. Everywhere else the age of the node says as much. */
static bool is_before(const struct lock_layout *s, const struct node *other, const struct node *own)
{
    if (s->kind != LOCK_RWLOCK)
        return other->stat.czxid < own->stat.czxid;
    struct place theirs = place_of(other), mine = place_of(own);
    return theirs.number < mine.number && (mine.writes || theirs.writes);
}

static bool ends_with(const char *text, size_t n, const char *end)
{
    size_t nend = strlen(end);
    return n >= nend && memcmp(text + n - nend, end, nend) == 0;
}

/* By the name alone: one of those that are used there, and after it ten digits. */
static bool queues(const struct lock_layout *s, bool gate, const struct node *n)
{
    static const char *const bases[LOCK_KINDS][4] = {
        [LOCK_MUTEX] = {"lock-", "__lock__"},
        [LOCK_RWLOCK] = {"__READ__", "__WRIT__", "__lock__", "__rlock__"},
        [LOCK_LATCH] = {"latch-", "__lock__"},
    };
    const char *const *base = bases[gate ? LOCK_MUTEX : s->kind];
    const char *path = clave__node_path(n);
    size_t len = n->path_len;
    if (s->kind == LOCK_SEMAPHORE && !gate)
        return true; /* whatever stands there takes room */
    for (size_t i = 0; i < DIGITS; i++)
        if (len <= DIGITS || path[len - 1 - i] < '0' || path[len - 1 - i] > '9')
            return false;
    for (size_t i = 0; i < 4 && base[i]; i++)
        if (ends_with(path, len - DIGITS, base[i]))
            return true;
    return false;
}

/* How many stand before it in its directory. */
static size_t rank(const struct server_host *h, const struct lock_layout *s, bool gate,
                   const struct node *own)
{
    char directory[PATH_SIZE];
    size_t before = 0;
    snprintf(directory, sizeof directory, "%.*s", (int)own->path_len, clave__node_path(own));
    *strrchr(directory, '/') = '\0';
    const struct node *top = clave__tree_find(&h->server->tree, clave__jbytes(directory));
    for (const struct node *other = top; (other = clave__tree_next(other, top));)
        before += queues(s, gate, other) && is_before(s, other, own);
    return before;
}

bool layout_has_turn(const struct server_host *h, const struct lock_layout *s, const char *node)
{
    const struct node *own = clave__tree_find(&h->server->tree, clave__jbytes(node));
    bool gate = s->gate && strncmp(node, s->gate, strlen(s->gate)) == 0;
    return own && rank(h, s, gate, own) < (gate ? 1 : s->limit);
}

bool layout_fits_limit(const struct server_host *h, const struct lock_layout *s, const char *lease)
{
    const struct node *own = clave__tree_find(&h->server->tree, clave__jbytes(lease));
    const struct node *n = clave__tree_find(&h->server->tree, clave__jbytes(s->limit_path));
    struct jbytes data = n ? clave__node_data(n) : (struct jbytes){0};
    return own && data.n == 4 && rank(h, s, false, own) < (uint8_t)data.p[3];
}
