/* address_limit.c - counts connections by address (address_limit.h). */
#include "runtime/server/address_limit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "clave/uv.h"
#include "runtime/server/server_run.h"

struct address {
    struct map_node node;
    uint8_t family;
    uint8_t ip[16];
    unsigned count;
    unsigned sessionless; /* of these, those without a session */
};

clave_err clave__address_limit_init(struct address_limit *l, const struct clave_mem *mem)
{
    return clave__map_init(&l->addresses, mem, clave_random_seed());
}

void clave__address_limit_fini(struct address_limit *l)
{
    assert(l->addresses.count == 0);
    clave__map_fini(&l->addresses);
}

void clave__address_limit_set(struct address_limit *l, int max_per_address, int max_sessionless)
{
    l->max_connections = SERVER_PER_ADDRESS;
    if (max_per_address != 0)
        l->max_connections = max_per_address > 0 ? (unsigned)max_per_address : 0;
    l->max_sessionless = max_sessionless > 0 ? (unsigned)max_sessionless : 0;
}

static bool address_is_of(const struct map_node *node, const void *key)
{
    const struct address *a = (const void *)node; /* its first member */
    const struct peer_addr *p = key;
    return a->family == p->family && memcmp(a->ip, p->ip, clave__peer_counted(p)) == 0;
}

const char *clave__address_limit_enter(struct address_limit *l, const struct peer_addr *peer,
                                       struct address **out)
{
    *out = NULL;
    if (peer->family == 0)
        return NULL;
    uint32_t hash = clave__map_hash_bytes(&l->addresses, peer->ip, clave__peer_counted(peer));
    struct map_node *node = clave__map_find(&l->addresses, hash, address_is_of, peer);
    struct address *a = node ? MAP_ENTRY(node, struct address, node) : calloc(1, sizeof *a);
    if (!a)
        return "out of memory";
    if (!node) {
        a->family = peer->family;
        memcpy(a->ip, peer->ip, sizeof a->ip);
        clave__map_insert(&l->addresses, &a->node, hash);
    }
    if (l->max_connections > 0 && a->count >= l->max_connections)
        return "too many connections from its address, or its IPv6 /64 (--max-connections)";
    if (l->max_sessionless > 0 && a->sessionless >= l->max_sessionless)
        return "too many connections without a session from its address, or its IPv6 /64 "
               "(--max-sessionless)";
    a->count++;
    a->sessionless++;
    *out = a;
    return NULL;
}

void clave__address_limit_note_session(struct address *a)
{
    if (!a)
        return;
    assert(a->sessionless > 0);
    a->sessionless--;
}

void clave__address_limit_leave(struct address_limit *l, struct address *a, bool has_session)
{
    if (!a)
        return;
    assert(a->count > 0 && (has_session || a->sessionless > 0));
    a->sessionless -= has_session ? 0 : 1;
    if (--a->count > 0)
        return;
    clave__map_remove(&l->addresses, &a->node);
    free(a);
}
