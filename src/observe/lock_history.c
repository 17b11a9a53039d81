/* lock_history.c - see lock_history.h. Called by observe.c and api/history_api.c. Invariant:
 * numbers grow by one, and only the oldest entries are dropped. */
#include "observe/lock_history.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "observe/lock_json.h"

/* Nothing makes as many entries in a millisecond. */
enum { NUMBERS_PER_MS = 1000 };
enum { MOST_ENTRIES = 20000, KEPT_BYTES = 16 << 20, PLACE_MAX = 16384 };
#define KEPT_MS (INT64_C(7) * 86400000)

static int lock_history_compare(const void *key, const struct ordered_node *node)
{
    uint64_t n = *(const uint64_t *)key, own = ORDERED_ENTRY(node, struct history_entry, node)->n;
    return n < own ? -1 : n > own;
}

void clave__history_init(struct history *h, const struct clave_mem *mem, uint64_t seed)
{
    *h = (struct history){.mem = mem};
    clave__ordered_init(&h->entries, lock_history_compare, seed);
}

static struct history_entry *lock_history_first(const struct history *h)
{
    struct ordered_node *n = clave__ordered_first(&h->entries, ORDERED_ANY);
    return n ? ORDERED_ENTRY(n, struct history_entry, node) : NULL;
}

static void lock_history_drop(struct history *h, struct history_entry *e)
{
    assert(h->bytes >= e->size);
    clave__ordered_remove(&h->entries, &e->n);
    h->bytes -= e->size;
    clave__mem_free(h->mem, e);
}

void clave__history_fini(struct history *h)
{
    for (struct history_entry *e; (e = lock_history_first(h));)
        lock_history_drop(h, e);
}

static void lock_history_trim(struct history *h, int64_t at)
{
    for (struct history_entry *e; (e = lock_history_first(h)) && e->n != h->last;
         lock_history_drop(h, e)) {
        if (h->entries.count <= MOST_ENTRIES && h->bytes <= KEPT_BYTES && at - e->at <= KEPT_MS)
            return;
        h->from = e->at;
    }
}

void clave__history_begin(struct history *h, int64_t at)
{
    assert(h->entries.count == 0);
    h->last = (uint64_t)(at > 0 ? at : 0) * NUMBERS_PER_MS + MOST_ENTRIES;
    h->from = at;
}

uint64_t clave__history_add(struct history *h, int64_t at, int64_t zxid, enum lock_change what,
                            const struct lock_node *p, const char *path)
{
    struct buf place;
    clave__buf_init(&place, h->mem, PLACE_MAX);
    struct json j = clave__json_to(&place);
    clave__lock_place_json(&j, NULL, p);
    size_t npath = strlen(path) + 1, nplace = clave__buf_len(&place);
    size_t size = sizeof(struct history_entry) + npath + nplace + 1;
    struct history_entry *e = j.err == CLAVE_OK ? clave__mem_zalloc(h->mem, size) : NULL;
    if (e) {
        *e = (struct history_entry){
            .n = ++h->last, .at = at, .zxid = zxid, .what = what, .size = size};
        e->kind = clave__lock_kind(p->queue);
        memcpy(e->path, path, npath);
        memcpy(e->path + npath, clave__buf_bytes(&place), nplace);
        e->place = e->path + npath;
        clave__ordered_insert(&h->entries, &e->node, &e->n, 0);
        h->bytes += size;
        lock_history_trim(h, at);
    }
    clave__buf_fini(&place);
    return e ? e->n : 0;
}

void clave__history_take_before(struct history *h, struct history *from)
{
    assert(h->mem->alloc == from->mem->alloc && h->mem->arg == from->mem->arg);
    const struct history_entry *first = lock_history_first(h);
    uint64_t n = first ? first->n : h->last + 1;
    for (struct ordered_node *node;
         n > 1 && (node = clave__ordered_last(&from->entries, ORDERED_ANY));) {
        struct history_entry *e = ORDERED_ENTRY(node, struct history_entry, node);
        if (h->entries.count >= MOST_ENTRIES || h->bytes + e->size > KEPT_BYTES)
            return;
        clave__ordered_remove(&from->entries, &e->n);
        from->bytes -= e->size;
        e->n = --n;
        h->from = e->at;
        clave__ordered_insert(&h->entries, &e->node, &e->n, 0);
        h->bytes += e->size;
    }
}

const struct history_entry *clave__history_find(const struct history *h, uint64_t n)
{
    struct ordered_node *node = clave__ordered_find(&h->entries, &n);
    return node ? ORDERED_ENTRY(node, struct history_entry, node) : NULL;
}

void clave__history_forget(struct history *h, uint64_t n)
{
    struct ordered_node *node = clave__ordered_find(&h->entries, &n);
    if (!node)
        return;
    struct history_entry *e = ORDERED_ENTRY(node, struct history_entry, node);
    clave__ordered_remove(&h->entries, &e->n);
    h->bytes -= e->size;
    clave__mem_free(h->mem, e);
}

void clave__history_set_cause(struct history *h, uint64_t n, enum lock_cause cause)
{
    struct ordered_node *node = clave__ordered_find(&h->entries, &n);
    if (node)
        ORDERED_ENTRY(node, struct history_entry, node)->cause = cause;
}

const struct history_entry *clave__history_after(const struct history *h, uint64_t n)
{
    struct ordered_node *node = clave__ordered_after(&h->entries, &n, ORDERED_ANY);
    return node ? ORDERED_ENTRY(node, struct history_entry, node) : NULL;
}

void clave__history_json(struct json *j, const struct history_entry *e)
{
    static const char *const what[] = {[LOCK_QUEUED] = "queued",
                                       [LOCK_GRANTED] = "granted",
                                       [LOCK_ASKED] = "asked",
                                       [LOCK_ENDED] = "ended"};
    clave__json_open(j, NULL, '{');
    clave__json_int64(j, "n", (int64_t)e->n);
    if (e->zxid)
        clave__json_int64(j, "zxid", e->zxid);
    else
        clave__json_string(j, "zxid", NULL);
    clave__lock_time_json(j, "time", e->at);
    clave__json_string(j, "path", e->path);
    clave__json_string(j, "kind", clave__lock_kind_name(e->kind));
    clave__json_string(j, "what", what[e->what]);
    clave__json_string(j, "cause", e->what == LOCK_ENDED ? clave__lock_cause_name(e->cause) : NULL);
    clave__json_number(j, "place", e->place);
    clave__json_close(j, '}');
}
