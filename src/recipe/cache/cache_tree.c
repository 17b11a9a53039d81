/* cache_tree.c - the nodes of a cache; see cache_tree.h. Called by cache.c and cache_read.c.
 * Invariant: `bytes`, `nodes` and `count` are exact, and whatever is not present is wanted or
 * waited for. */
#include "recipe/cache/cache_tree.h"

#include <assert.h>
#include <string.h>

#include "recipe/cache/cache_children.h"
#include "recipe/cache/cache_stat.h"

/* Without the padding of the struct. */
#define NODE_HEADER offsetof(struct cache_node, bytes)

static size_t cache_tree_node_size(const struct cache_node *n)
{
    return NODE_HEADER + (size_t)n->stat_len + (size_t)n->name_len + 1 + n->data_len;
}

static const uint8_t *cache_tree_node_data(const struct cache_node *n)
{
    return n->bytes + n->stat_len + n->name_len + 1;
}

size_t clave__cache_tree_room(size_t name_len)
{
    /* A slot is at least three eighths in use. */
    return sizeof(struct cache_node) + CACHE_STAT_MAX + name_len + 1 + 3 * sizeof(void *);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct cache_node *cache_tree_node_new(struct cache_tree *t, const char *name, size_t len)
{
    struct cache_node *n = clave__mem_zalloc(&t->mem, NODE_HEADER + len + 1);
    if (!n)
        return NULL;
    n->name_len = (uint32_t)len & 0xffffff; /* a path has at most the bytes of a frame */
    memcpy(n->bytes, name, len);
    t->nodes++;
    t->bytes += cache_tree_node_size(n);
    return n;
}

static void cache_tree_dir_free(struct cache_tree *t, struct cache_children *d)
{
    if (d->watches)
        t->free_watches(d->watches);
    t->bytes -= sizeof *d + d->nslots * sizeof *d->slots;
    clave__mem_free(&t->mem, d->slots);
    clave__mem_free(&t->mem, d);
}

static void cache_tree_node_free(struct cache_tree *t, struct cache_node *n)
{
    assert(t->nodes > 0 && t->bytes >= cache_tree_node_size(n));
    if (n->dir)
        cache_tree_dir_free(t, n->dir);
    t->nodes--;
    t->bytes -= cache_tree_node_size(n);
    clave__mem_free(&t->mem, n);
}

clave_err clave__cache_tree_init(struct cache_tree *t, const struct clave_mem *mem, uint64_t seed,
                                 const char *path)
{
    *t = (struct cache_tree){.mem = *mem, .key = clave__siphash_key(seed)};
    clave__buf_init(&t->path, &t->mem, SIZE_MAX / 2);
    clave_err err = clave__buf_reserve(&t->path, strlen(path) + 1);
    if (err != CLAVE_OK)
        return err;
    t->root = cache_tree_node_new(t, path, strlen(path));
    return t->root ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Any child that is left, in a dir that is being emptied: `present` counts the slots done. */
static struct cache_node *cache_tree_take_child(struct cache_children *d)
{
    while (d && d->present < d->nslots) {
        struct cache_node *n = d->slots[d->present++];
        if (n)
            return n;
    }
    return NULL;
}

void clave__cache_tree_fini(struct cache_tree *t)
{
    struct cache_node *n = t->root;
    if (n && n->dir)
        n->dir->present = 0;
    while (n) {
        struct cache_node *child = cache_tree_take_child(n->dir);
        if (child) {
            n = child;
            if (n->dir)
                n->dir->present = 0;
            continue;
        }
        struct cache_node *up = clave__cache_tree_parent(n);
        cache_tree_node_free(t, n);
        n = up;
    }
    t->root = NULL;
    clave__buf_fini(&t->path);
}

/* ---- finding --------------------------------------------------------------------------------- */

struct cache_node *clave__cache_tree_parent(const struct cache_node *n)
{
    return n->parent ? n->parent->owner : NULL;
}

struct cache_node *clave__cache_tree_child(const struct cache_tree *t, const struct cache_node *n,
                                           const char *name, size_t len)
{
    const struct cache_children *d = n->dir;
    return d && d->nslots ? d->slots[clave__cache_children_place(t, d, name, len)] : NULL;
}

struct cache_node *clave__cache_tree_find(const struct cache_tree *t, const char *path, size_t n)
{
    const char *end = path + n;
    struct cache_node *at = t->root;
    size_t root = at->name_len;
    if (n < root || memcmp(path, clave__cache_children_name(at), root) != 0)
        return NULL;
    if (n == root)
        return at;
    if (root > 1) {
        if (path[root] != '/')
            return NULL;
        root++;
    }
    for (path += root; at && path <= end;) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        const char *stop = slash ? slash : end;
        at = clave__cache_tree_child(t, at, path, (size_t)(stop - path));
        path = stop + 1;
    }
    return at;
}

static size_t cache_tree_path_len(const struct cache_node *n)
{
    size_t len = 0;
    for (; n->parent; n = n->parent->owner)
        len += n->name_len + 1;
    return len + (n->name_len > 1 ? n->name_len : 0);
}

char *clave__cache_tree_path(const struct cache_node *n, uint8_t *bytes)
{
    char *out = (char *)bytes;
    size_t at = cache_tree_path_len(n);
    if (!n->parent)
        at = n->name_len;
    out[at] = '\0';
    for (; n->parent; n = n->parent->owner) {
        at -= n->name_len;
        memcpy(out + at, clave__cache_children_name(n), n->name_len);
        out[--at] = '/';
    }
    memcpy(out, clave__cache_children_name(n), at);
    return out;
}

/* ---- changing -------------------------------------------------------------------------------- */

clave_err clave__cache_tree_make_dir(struct cache_tree *t, struct cache_node *n)
{
    if (n->dir)
        return CLAVE_OK;
    n->dir = clave__mem_zalloc(&t->mem, sizeof *n->dir);
    if (!n->dir)
        return CLAVE_ENOMEM;
    n->dir->owner = n;
    t->bytes += sizeof *n->dir;
    return CLAVE_OK;
}

clave_err clave__cache_tree_add(struct cache_tree *t, struct cache_node *parent, const char *name,
                                size_t len, struct cache_node **out)
{
    clave_err err = clave__buf_reserve(&t->path, cache_tree_path_len(parent) + len + 2);
    if (err == CLAVE_OK)
        err = clave__cache_tree_make_dir(t, parent);
    if (err == CLAVE_OK)
        err = clave__cache_children_reserve(t, parent->dir);
    if (err != CLAVE_OK)
        return err;
    struct cache_node *n = cache_tree_node_new(t, name, len);
    if (!n)
        return CLAVE_ENOMEM;
    n->parent = parent->dir;
    clave__cache_children_insert(t, parent->dir, n);
    *out = n;
    return CLAVE_OK;
}

clave_err clave__cache_tree_store(struct cache_tree *t, struct cache_node **n,
                                  const struct cache_value *v, struct cache_node **old)
{
    struct cache_node *was = *n;
    uint8_t stat[CACHE_STAT_MAX];
    size_t nstat = clave__cache_stat_put(stat, &v->stat);
    size_t ndata = v->has_data ? v->len : 0;
    struct cache_node *is =
        clave__mem_alloc(&t->mem, NODE_HEADER + nstat + was->name_len + 1 + ndata);
    if (!is)
        return CLAVE_ENOMEM;
    memcpy(is, was, NODE_HEADER);
    is->stat_len = (uint32_t)nstat & 0xff;
    is->data_len = (uint32_t)ndata;
    is->has_data = v->has_data;
    is->null_data = !v->data;
    is->unreadable = v->unreadable;
    memcpy(is->bytes, stat, nstat);
    memcpy(is->bytes + nstat, clave__cache_children_name(was), was->name_len);
    is->bytes[nstat + was->name_len] = '\0';
    if (ndata)
        memcpy(is->bytes + nstat + was->name_len + 1, v->data, ndata);
    if (is->dir)
        is->dir->owner = is;
    if (is->parent)
        is->parent->slots[clave__cache_children_place(t, is->parent, clave__cache_children_name(is),
                                                      is->name_len)] = is;
    else
        t->root = is;
    t->bytes += cache_tree_node_size(is);
    *old = was;
    *n = is;
    return CLAVE_OK;
}

void clave__cache_tree_discard(struct cache_tree *t, struct cache_node *old)
{
    t->bytes -= cache_tree_node_size(old);
    clave__mem_free(&t->mem, old);
}

void clave__cache_tree_set_present(struct cache_tree *t, struct cache_node *n, bool present)
{
    uint32_t change = (uint32_t)present - n->present;
    t->count += (size_t)present - n->present;
    if (n->parent)
        n->parent->present += change;
    n->present = present;
}

static bool cache_tree_is_of_no_use(const struct cache_node *n)
{
    return n->parent && !n->present && n->phase == CACHE_NODE_IDLE && !(n->dir && n->dir->count);
}

void clave__cache_tree_prune(struct cache_tree *t, struct cache_node *n)
{
    while (cache_tree_is_of_no_use(n)) {
        struct cache_node *up = n->parent->owner;
        clave__cache_children_remove(t, n->parent, n);
        cache_tree_node_free(t, n);
        n = up;
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

clave_stat clave__cache_tree_stat(const struct cache_node *n)
{
    return clave__cache_stat_get(n->bytes);
}

struct cache_value clave__cache_tree_value(const struct cache_node *n)
{
    struct cache_value v = {.stat = clave__cache_tree_stat(n), .len = n->data_len};
    v.has_data = n->has_data;
    v.unreadable = n->unreadable;
    v.data = n->has_data && !n->null_data ? cache_tree_node_data(n) : NULL;
    if (n->listed)
        v.stat.num_children = n->dir ? (int32_t)n->dir->present : 0;
    return v;
}

/* ---- walking --------------------------------------------------------------------------------- */

static struct cache_node *cache_tree_first_child(const struct cache_node *n)
{
    return n->dir ? clave__cache_children_from(n->dir, 0) : NULL;
}

uint32_t clave__cache_tree_slot(const struct cache_tree *t, const struct cache_node *n)
{
    assert(n->parent);
    return clave__cache_children_place(t, n->parent, clave__cache_children_name(n), n->name_len);
}

struct cache_node *clave__cache_tree_deepest(struct cache_node *top)
{
    for (struct cache_node *child; (child = cache_tree_first_child(top));)
        top = child;
    return top;
}

/* What was behind the removed node in the table has its slot now, or a later one. */
struct cache_node *clave__cache_tree_after(const struct cache_children *parent, uint32_t slot)
{
    struct cache_node *next = clave__cache_children_from(parent, slot);
    return next ? clave__cache_tree_deepest(next) : parent->owner;
}

struct cache_node *clave__cache_tree_down(const struct cache_tree *t, const struct cache_node *top,
                                          const struct cache_node *at)
{
    struct cache_node *next = cache_tree_first_child(at);
    while (!next && at != top) {
        next = clave__cache_children_from(at->parent, clave__cache_tree_slot(t, at) + 1);
        at = at->parent->owner;
    }
    return next;
}
