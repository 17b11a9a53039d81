/* http_evict.c - see http_internal.h. Each step takes the same time, however many connections there
 * are. */
#include "runtime/http/http_internal.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

struct http_address_key {
    uint8_t family;
    uint8_t bytes[16];
};

struct http_address {
    struct map_node node;
    struct http_address_key key;
    bool is_exempt;
    struct list link;               /* in `with`, unless it has no unknown connections */
    struct list of[HTTP_STANDINGS]; /* oldest first */
    size_t n, nunknown;
};

static bool http_address_is(const struct map_node *node, const void *key)
{
    const struct http_address *a =
        (const void *)((const char *)node - offsetof(struct http_address, node));
    return memcmp(&a->key, key, sizeof a->key) == 0;
}

/* For a Unix socket, the user counts. */
static struct http_address_key http_address_key(const struct peer_addr *peer)
{
    struct http_address_key key = {.family = peer->family};
    if (peer->family == 0)
        memcpy(key.bytes, &peer->uid, sizeof peer->uid);
    else
        memcpy(key.bytes, peer->ip, clave__peer_counted(peer));
    return key;
}

static struct http_address *http_address_get(struct http_shares *all, const struct peer_addr *peer)
{
    struct http_address_key key = http_address_key(peer);
    uint32_t hash = clave__map_hash_bytes(&all->by_address, &key, sizeof key);
    struct map_node *node = clave__map_find(&all->by_address, hash, http_address_is, &key);
    if (node)
        return MAP_ENTRY(node, struct http_address, node);
    struct http_address *a = clave__mem_zalloc(all->mem, sizeof *a);
    if (!a)
        return NULL;
    a->key = key;
    list_init(&a->link);
    for (int i = 0; i < HTTP_STANDINGS; i++)
        list_init(&a->of[i]);
    clave__map_insert(&all->by_address, &a->node, hash);
    return a;
}

static unsigned http_address_bucket(size_t n)
{
    unsigned bucket = 0;
    while (n > 1 && bucket + 1 < HTTP_SHARE_BUCKETS) {
        n /= 2;
        bucket++;
    }
    return bucket;
}

/* Counts one more unknown connection of the address, or one fewer. */
static void http_address_count(struct http_shares *all, struct http_address *a, bool more)
{
    assert(more || a->nunknown > 0);
    unsigned was = http_address_bucket(a->nunknown);
    a->nunknown += more ? 1 : (size_t)-1;
    unsigned is = http_address_bucket(a->nunknown);
    if (a->is_exempt || (!list_empty(&a->link) && a->nunknown > 0 && was == is))
        return;
    list_remove(&a->link);
    if (a->nunknown > 0)
        list_push_back(&all->with[is], &a->link);
}

/* ---- connections ---------------------------------------------------------------------------- */

clave_err clave__http_shares_init(struct http_shares *all, const struct clave_mem *mem,
                                  uint64_t seed)
{
    all->mem = mem;
    list_init(&all->idle);
    for (int i = 0; i < HTTP_SHARE_BUCKETS; i++)
        list_init(&all->with[i]);
    return clave__map_init(&all->by_address, mem, seed);
}

void clave__http_shares_fini(struct http_shares *all)
{
    assert(all->by_address.count == 0);
    clave__map_fini(&all->by_address);
}

clave_err clave__http_evict_join(struct http_shares *all, struct http_evict *s,
                                 const struct peer_addr *peer, bool is_exempt)
{
    assert(!s->of);
    struct http_address *a = http_address_get(all, peer);
    if (!a)
        return CLAVE_ENOMEM;
    if (a->is_exempt != is_exempt) /* the settings were reloaded in between */
        list_remove(&a->link);
    a->is_exempt = is_exempt;
    a->n++;
    *s = (struct http_evict){.of = a, .standing = HTTP_UNASKED};
    list_push_back(&a->of[HTTP_UNASKED], &s->link);
    http_address_count(all, a, true);
    return CLAVE_OK;
}

bool clave__http_evict_is_exempt(const struct http_evict *s)
{
    return s->of && s->of->is_exempt;
}

void clave__http_evict_set(struct http_shares *all, struct http_evict *s, enum http_standing to)
{
    if (!s->of || s->standing == HTTP_KNOWN || s->standing == to)
        return;
    bool is_idle = s->of->is_exempt && to == HTTP_UNASKED;
    s->standing = to;
    list_remove(&s->link);
    list_push_back(is_idle ? &all->idle : &s->of->of[to], &s->link);
    if (to == HTTP_KNOWN)
        http_address_count(all, s->of, false);
}

void clave__http_evict_leave(struct http_shares *all, struct http_evict *s)
{
    struct http_address *a = s->of;
    if (!a)
        return;
    list_remove(&s->link);
    if (s->standing != HTTP_KNOWN)
        http_address_count(all, a, false);
    s->of = NULL;
    assert(a->n > 0);
    if (--a->n > 0)
        return;
    clave__map_remove(&all->by_address, &a->node);
    clave__mem_free(all->mem, a);
}

struct http_evict *clave__http_shares_victim(struct http_shares *all)
{
    for (int i = HTTP_SHARE_BUCKETS - 1; i >= 0; i--) {
        if (list_empty(&all->with[i]))
            continue;
        struct http_address *a = LIST_ENTRY(all->with[i].next, struct http_address, link);
        for (int standing = 0; standing < HTTP_KNOWN; standing++)
            if (!list_empty(&a->of[standing]))
                return LIST_ENTRY(a->of[standing].next, struct http_evict, link);
    }
    return list_empty(&all->idle) ? NULL : LIST_ENTRY(all->idle.next, struct http_evict, link);
}
