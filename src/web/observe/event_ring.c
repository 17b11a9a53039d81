/* event_ring.c - see event_ring.h. Called by observe.c and the streams. Invariant: of each lock
 * there is one event at most, its newest; and all events after `dropped` are there. */
#include "web/observe/event_ring.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { MOST_EVENTS = 16384, MOST_BYTES = 8 << 20 };

static int event_compare(const void *key, const struct ordered_node *node)
{
    uint64_t n = *(const uint64_t *)key, own = ORDERED_ENTRY(node, struct event, node)->n;
    return n < own ? -1 : n > own;
}

clave_err clave__event_ring_init(struct event_ring *r, const struct clave_mem *mem, uint64_t seed)
{
    *r = (struct event_ring){
        .mem = mem, .epoch = seed, .max_bytes = MOST_BYTES, .max_events = MOST_EVENTS};
    clave__ordered_init(&r->events, event_compare, seed);
    return clave__map_init(&r->by_path, mem, seed);
}

static void event_remove(struct event_ring *r, struct event *e)
{
    assert(r->bytes >= e->size);
    clave__ordered_remove(&r->events, &e->n);
    if (!e->data)
        clave__map_remove(&r->by_path, &e->by_path);
    r->bytes -= e->size;
    clave__mem_free(r->mem, e);
}

static struct event *event_first(const struct event_ring *r)
{
    struct ordered_node *n = clave__ordered_first(&r->events, ORDERED_ANY);
    return n ? ORDERED_ENTRY(n, struct event, node) : NULL;
}

void clave__event_ring_fini(struct event_ring *r)
{
    for (struct event *e; (e = event_first(r));)
        event_remove(r, e);
    clave__map_fini(&r->by_path);
}

void clave__event_ring_clear(struct event_ring *r)
{
    for (struct event *e; (e = event_first(r));)
        event_remove(r, e);
    r->dropped = ++r->last;
}

static const char *event_copy(char **at, const char *text)
{
    if (!text)
        return NULL;
    size_t n = strlen(text) + 1;
    char *copy = memcpy(*at, text, n);
    *at += n;
    return copy;
}

static size_t event_len(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* NULL: no memory; the number is used up all the same. */
static struct event *event_add(struct event_ring *r, const struct event_text *t)
{
    size_t size =
        sizeof(struct event) + event_len(t->path) + event_len(t->session) + event_len(t->data);
    struct event *e = clave__mem_zalloc(r->mem, size);
    r->last++;
    if (!e) {
        r->dropped = r->last;
        return NULL;
    }
    char *at = e->text;
    *e = (struct event){.n = r->last, .name = t->name, .size = size};
    e->path = event_copy(&at, t->path);
    e->session = event_copy(&at, t->session);
    e->data = event_copy(&at, t->data);
    assert(at <= (char *)e + size);
    clave__ordered_insert(&r->events, &e->node, &e->n, 0);
    r->bytes += size;
    return e;
}

/* The newest stays, whatever its size. */
static void event_ring_trim(struct event_ring *r)
{
    while (r->events.count > 1 && (r->events.count > r->max_events || r->bytes > r->max_bytes)) {
        struct event *e = event_first(r);
        r->dropped = e->n > r->dropped ? e->n : r->dropped;
        event_remove(r, e);
    }
}

void clave__event_ring_put(struct event_ring *r, const struct event_text *t)
{
    assert(t->name && t->data && !strchr(t->data, '\n')); /* as streams write it */
    event_add(r, t);
    event_ring_trim(r);
}

static bool event_path_eq(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct event, by_path);
    const struct event *e = (const struct event *)(const void *)at;
    const struct lock_queue *q = key;
    return e->leases == q->leases && strcmp(e->path, q->path) == 0;
}

void clave__event_ring_lock(struct event_ring *r, const struct lock_queue *q)
{
    uint32_t hash = clave__map_hash_bytes(&r->by_path, q->path, q->len);
    struct map_node *before = clave__map_find(&r->by_path, hash, event_path_eq, q);
    enum lock_queue_kind kind = clave__lock_kind(q);
    if (before) {
        struct event *old = MAP_ENTRY(before, struct event, by_path);
        kind = q->places.count > 0 ? kind : old->kind; /* a lock that vanished keeps its kind */
        event_remove(r, old);
    }
    struct event *e = event_add(r, &(struct event_text){.name = "lock", .path = q->path});
    if (!e)
        return;
    e->leases = q->leases;
    e->kind = kind;
    clave__map_insert(&r->by_path, &e->by_path, hash);
    event_ring_trim(r);
}

bool clave__event_ring_reaches(const struct event_ring *r, uint64_t n)
{
    return n >= r->dropped && n <= r->last;
}

const struct event *clave__event_ring_after(const struct event_ring *r, uint64_t n)
{
    struct ordered_node *node = clave__ordered_after(&r->events, &n, ORDERED_ANY);
    return node ? ORDERED_ENTRY(node, struct event, node) : NULL;
}

void clave__event_id_format(const struct event_ring *r, uint64_t n, char out[EVENT_ID_CAP])
{
    snprintf(out, EVENT_ID_CAP, "%016" PRIx64 "-%" PRIu64, r->epoch, n);
}

bool clave__event_id_parse(const struct event_ring *r, const char *id, uint64_t *n)
{
    char again[EVENT_ID_CAP];
    const char *dash = strchr(id, '-');
    if (!dash)
        return false;
    *n = (uint64_t)strtoll(dash + 1, NULL, 10);
    clave__event_id_format(r, *n, again);
    return strcmp(again, id) == 0;
}
