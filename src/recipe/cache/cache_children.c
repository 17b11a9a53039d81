/* cache_children.c - the table of a node's children; see cache_children.h. Called by cache_tree.c.
 * Linear probing; a removal moves back what had to give way, so there are no marks of what was
 * removed. */
#include "recipe/cache/cache_children.h"

#include <assert.h>
#include <string.h>

enum { DIR_SLOTS = 4 }; /* at first */

const char *clave__cache_children_name(const struct cache_node *n)
{
    return (const char *)n->bytes + n->stat_len;
}

static uint32_t children_home(const struct cache_tree *t, uint32_t nslots, const char *name,
                              size_t len)
{
    return (uint32_t)clave__siphash(t->key, name, len) & (nslots - 1);
}

uint32_t clave__cache_children_place(const struct cache_tree *t, const struct cache_children *d,
                                     const char *name, size_t len)
{
    assert(d->nslots > 0 && (d->nslots & (d->nslots - 1)) == 0);
    uint32_t at = children_home(t, d->nslots, name, len);
    for (;; at = (at + 1) & (d->nslots - 1)) {
        const struct cache_node *n = d->slots[at];
        if (!n || (n->name_len == len && memcmp(clave__cache_children_name(n), name, len) == 0))
            return at;
    }
}

static void children_put(const struct cache_tree *t, struct cache_children *d, struct cache_node *n)
{
    d->slots[clave__cache_children_place(t, d, clave__cache_children_name(n), n->name_len)] = n;
}

/* Three quarters full at most; it shrinks when it is less than an eighth full. */
clave_err clave__cache_children_reserve(struct cache_tree *t, struct cache_children *d)
{
    uint32_t want = d->nslots ? d->nslots : DIR_SLOTS;
    while ((uint64_t)(d->count + 1) * 4 > (uint64_t)want * 3)
        want *= 2;
    while (want > DIR_SLOTS && (uint64_t)(d->count + 1) * 8 < want)
        want /= 2;
    if (want == d->nslots)
        return CLAVE_OK;
    struct cache_node **slots = clave__mem_zalloc(&t->mem, want * sizeof *slots);
    if (!slots)
        return d->count < d->nslots / 8 ? CLAVE_OK : CLAVE_ENOMEM; /* it was only to shrink */
    struct cache_children former = *d;
    d->slots = slots;
    d->nslots = want;
    for (uint32_t i = 0; i < former.nslots; i++)
        if (former.slots[i])
            children_put(t, d, former.slots[i]);
    clave__mem_free(&t->mem, former.slots);
    t->bytes += want * sizeof *slots;
    t->bytes -= former.nslots * sizeof *slots;
    return CLAVE_OK;
}

void clave__cache_children_insert(struct cache_tree *t, struct cache_children *d,
                                  struct cache_node *n)
{
    assert(d->count < d->nslots);
    children_put(t, d, n);
    d->count++;
    d->present += n->present;
}

void clave__cache_children_remove(const struct cache_tree *t, struct cache_children *d,
                                  const struct cache_node *n)
{
    uint32_t mask = d->nslots - 1;
    uint32_t hole = clave__cache_children_place(t, d, clave__cache_children_name(n), n->name_len);
    assert(d->slots[hole] == n);
    d->count--;
    d->present -= n->present;
    for (uint32_t at = (hole + 1) & mask; d->slots[at]; at = (at + 1) & mask) {
        struct cache_node *moves = d->slots[at];
        uint32_t home =
            children_home(t, d->nslots, clave__cache_children_name(moves), moves->name_len);
        /* It may stand anywhere from its home on: is the hole between the two? */
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            d->slots[hole] = moves;
            hole = at;
        }
    }
    d->slots[hole] = NULL;
}

struct cache_node *clave__cache_children_from(const struct cache_children *d, uint32_t at)
{
    for (; at < d->nslots; at++)
        if (d->slots[at] && d->slots[at]->present)
            return d->slots[at];
    return NULL;
}
