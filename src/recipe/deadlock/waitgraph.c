/* waitgraph.c - the graph of owners that wait for owners: how it is made of the claims, and solved.
 * Called by deadlock_search.c and by the HTTP gate's model of locks. */
#include <string.h>

#include "recipe/deadlock/waitgraph_internal.h"

struct text {
    const char *p;
    size_t len;
};

static bool waitgraph_text_eq(const struct map_node *node, const void *key)
{
    const char *at = (const char *)node - offsetof(struct owner, node);
    const struct owner *o = (const struct owner *)(const void *)at;
    const struct text *t = key;
    return o->len == t->len && memcmp(o->text, t->p, t->len) == 0;
}

static struct owner *waitgraph_find_owner(const struct solver *s, const char *p, size_t len)
{
    struct text t = {p, len};
    uint32_t hash = clave__map_hash_bytes(&s->by_text, p, len);
    struct map_node *node = clave__map_find(&s->by_text, hash, waitgraph_text_eq, &t);
    return node ? MAP_ENTRY(node, struct owner, node) : NULL;
}

static struct owner *waitgraph_add_owner(struct solver *s, const struct wait_claim *claim)
{
    size_t len = strlen(claim->owner);
    struct owner *o = waitgraph_find_owner(s, claim->owner, len);
    if (!o) {
        o = &s->owners[s->nowners++];
        *o = (struct owner){.text = claim->owner, .len = len, .known = claim->known};
        o->stuck = true;
        o->claims = o->parent = o->part = o->next = WAIT_NONE;
        clave__map_insert(&s->by_text, &o->node,
                          clave__map_hash_bytes(&s->by_text, claim->owner, len));
    }
    o->moving = o->moving || claim->moving;
    return o;
}

/* The nearest owner that it is a part of. */
static void waitgraph_find_parent(struct solver *s, struct owner *o)
{
    for (size_t len = o->len; o->known && len-- > 0;) {
        struct owner *whole = o->text[len] == '/' ? waitgraph_find_owner(s, o->text, len) : NULL;
        if (!whole || !whole->known)
            continue;
        o->parent = clave__wait_index_of(s, whole);
        whole->stuck_parts++;
        return;
    }
}

static void waitgraph_add_owners(struct solver *s)
{
    for (size_t q = 0; q < s->n; q++) {
        s->lines[q].first = s->nlinks;
        for (size_t i = 0; i < s->queues[q].n; i++) {
            struct owner *o = waitgraph_add_owner(s, &s->queues[q].claims[i]);
            s->links[s->nlinks] = (struct link){
                .queue = q, .claim = i, .owner = clave__wait_index_of(s, o), .next = o->claims};
            o->claims = s->nlinks++;
        }
    }
    for (size_t i = 0; i < s->nowners; i++)
        waitgraph_find_parent(s, &s->owners[i]);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static clave_err waitgraph_init(struct solver *s, const struct clave_mem *mem, uint64_t seed,
                                const struct wait_queue *queues, size_t n)
{
    size_t total = 1; /* 0 bytes are never asked for */
    *s = (struct solver){.mem = mem, .queues = queues, .n = n};
    for (size_t q = 0; q < n; q++)
        total += queues[q].n;
    clave_err err = clave__map_init(&s->by_text, mem, seed);
    s->lines = clave__mem_zalloc(mem, (n + 1) * sizeof *s->lines);
    s->free = clave__mem_zalloc(mem, total * sizeof *s->free);
    s->links = clave__mem_zalloc(mem, total * sizeof *s->links);
    s->owners = clave__mem_zalloc(mem, total * sizeof *s->owners);
    return s->lines && s->free && s->links && s->owners ? err : CLAVE_ENOMEM;
}

static void waitgraph_fini(struct solver *s)
{
    clave__map_fini(&s->by_text);
    clave__mem_free(s->mem, s->lines);
    clave__mem_free(s->mem, s->free);
    clave__mem_free(s->mem, s->links);
    clave__mem_free(s->mem, s->owners);
}

clave_err clave__waitgraph_solve(const struct clave_mem *mem, uint64_t seed,
                                 const struct wait_queue *queues, size_t n,
                                 struct wait_verdict *out)
{
    struct solver s;
    *out = (struct wait_verdict){0};
    clave_err err = waitgraph_init(&s, mem, seed, queues, n);
    if (err == CLAVE_OK) {
        waitgraph_add_owners(&s);
        clave__wait_reduce(&s);
        err = clave__wait_cycles_find(&s, out);
        out->looked = s.looked;
    }
    waitgraph_fini(&s);
    if (err != CLAVE_OK)
        clave__waitgraph_fini(mem, out);
    return err;
}

void clave__waitgraph_fini(const struct clave_mem *mem, struct wait_verdict *v)
{
    clave__mem_free(mem, v->cycles);
    clave__mem_free(mem, v->steps);
    *v = (struct wait_verdict){0};
}
