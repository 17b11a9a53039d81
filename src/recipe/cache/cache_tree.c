/* cache_tree.c - the nodes of a cache, in as little memory as they need; see cache_tree.h.
 *
 * A node is one block: its fields, its Stat, its name and its data. The Stat of a node that was
 * never written again takes about 25 bytes instead of 80: what a node is created with is stored
 * once, and the rest as differences, in numbers of variable length. The children of a node are in a
 * hash table with open addressing, so that a child costs its parent no more than a slot or two. The
 * hash is keyed, so that other clients cannot choose names that all meet in one slot. A removal
 * moves the entries behind it back, so there are no markers for removed entries.
 *
 * What must stay true: `bytes`, `nodes` and `count` are exact, and every node that is not present
 * is wanted or waited for. */
#include "recipe/cache/cache_tree.h"

#include <assert.h>
#include <string.h>

enum { CACHE_STAT_MAX = 96, DIR_SLOTS = 4 /* at first */ };

/* ---- a Stat ---------------------------------------------------------------------------------- */

/* Writes seven bits per byte, lowest first; the top bit says that another byte follows. */
static uint8_t *put_number(uint8_t *p, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p++ = (uint8_t)v;
    return p;
}

static const uint8_t *get_number(const uint8_t *p, uint64_t *v)
{
    unsigned shift = 0;
    *v = 0;
    do {
        *v |= (uint64_t)(*p & 0x7f) << shift;
        shift += 7;
    } while (*p++ & 0x80);
    return p;
}

/* Writes a signed number, with the sign in the lowest bit so that small differences are short in
 * either direction. */
static uint8_t *put_signed(uint8_t *p, int64_t v)
{
    return put_number(p, ((uint64_t)v << 1) ^ (v < 0 ? UINT64_MAX : 0));
}

static const uint8_t *get_signed(const uint8_t *p, int64_t *v)
{
    uint64_t u;
    p = get_number(p, &u);
    *v = (int64_t)((u >> 1) ^ (u & 1 ? UINT64_MAX : 0));
    return p;
}

static uint8_t *put_int(uint8_t *p, int32_t v)
{
    return put_signed(p, v);
}

static const uint8_t *get_int(const uint8_t *p, int32_t *v)
{
    int64_t wide;
    p = get_signed(p, &wide);
    *v = (int32_t)wide;
    return p;
}

static int64_t distance(int64_t to, int64_t from)
{
    return (int64_t)((uint64_t)to - (uint64_t)from);
}

static int64_t moved_by(int64_t from, int64_t by)
{
    return (int64_t)((uint64_t)from + (uint64_t)by);
}

/* Returns the number of bytes. */
static size_t stat_put(uint8_t out[CACHE_STAT_MAX], const clave_stat *s)
{
    uint8_t *p = out;
    p = put_signed(p, s->czxid);
    p = put_signed(p, distance(s->mzxid, s->czxid));
    p = put_signed(p, distance(s->pzxid, s->czxid));
    p = put_signed(p, s->ctime);
    p = put_signed(p, distance(s->mtime, s->ctime));
    p = put_number(p, (uint64_t)s->ephemeral_owner);
    p = put_int(p, s->version);
    p = put_int(p, s->cversion);
    p = put_int(p, s->aversion);
    p = put_int(p, s->data_length);
    p = put_int(p, s->num_children);
    return (size_t)(p - out);
}

static clave_stat stat_get(const uint8_t *p)
{
    clave_stat s;
    int64_t by;
    uint64_t owner;
    p = get_signed(p, &s.czxid);
    p = get_signed(p, &by);
    s.mzxid = moved_by(s.czxid, by);
    p = get_signed(p, &by);
    s.pzxid = moved_by(s.czxid, by);
    p = get_signed(p, &s.ctime);
    p = get_signed(p, &by);
    s.mtime = moved_by(s.ctime, by);
    p = get_number(p, &owner);
    s.ephemeral_owner = (int64_t)owner;
    p = get_int(p, &s.version);
    p = get_int(p, &s.cversion);
    p = get_int(p, &s.aversion);
    p = get_int(p, &s.data_length);
    get_int(p, &s.num_children);
    return s;
}

/* ---- the children of a node ------------------------------------------------------------------ */

const char *clave__cache_children_name(const struct cache_node *n)
{
    return (const char *)n->bytes + n->stat_len;
}

static uint32_t children_home(const struct cache_tree *t, uint32_t nslots, const char *name,
                              size_t len)
{
    return (uint32_t)clave__siphash(t->key, name, len) & (nslots - 1);
}

/* The slot of a child, or the one where it would go; nslots must not be 0. */
static uint32_t children_place(const struct cache_tree *t, const struct cache_children *d,
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
    d->slots[children_place(t, d, clave__cache_children_name(n), n->name_len)] = n;
}

/* Makes room for one more child. The table is at most three quarters full, and shrinks when it is
 * less than an eighth full. */
static clave_err children_reserve(struct cache_tree *t, struct cache_children *d)
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
        return d->count < d->nslots / 8 ? CLAVE_OK : CLAVE_ENOMEM; /* it was only going to shrink */
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

/* Call _reserve first. */
static void children_insert(struct cache_tree *t, struct cache_children *d, struct cache_node *n)
{
    assert(d->count < d->nslots);
    children_put(t, d, n);
    d->count++;
    d->present += n->present;
}

static void children_remove(const struct cache_tree *t, struct cache_children *d,
                            const struct cache_node *n)
{
    uint32_t mask = d->nslots - 1;
    uint32_t hole = children_place(t, d, clave__cache_children_name(n), n->name_len);
    assert(d->slots[hole] == n);
    d->count--;
    d->present -= n->present;
    for (uint32_t at = (hole + 1) & mask; d->slots[at]; at = (at + 1) & mask) {
        struct cache_node *moves = d->slots[at];
        uint32_t home =
            children_home(t, d->nslots, clave__cache_children_name(moves), moves->name_len);
        /* The entry can be in any slot from its home on: is the hole in between? */
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            d->slots[hole] = moves;
            hole = at;
        }
    }
    d->slots[hole] = NULL;
}

/* The first present node at or after this slot; NULL: there is none. */
static struct cache_node *children_from(const struct cache_children *d, uint32_t at)
{
    for (; at < d->nslots; at++)
        if (d->slots[at] && d->slots[at]->present)
            return d->slots[at];
    return NULL;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Without the padding at the end of the struct. */
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
    /* A table is at least three eighths full. */
    return sizeof(struct cache_node) + CACHE_STAT_MAX + name_len + 1 + 3 * sizeof(void *);
}

/* ---- creating and freeing -------------------------------------------------------------------- */

static struct cache_node *cache_tree_node_new(struct cache_tree *t, const char *name, size_t len)
{
    struct cache_node *n = clave__mem_zalloc(&t->mem, NODE_HEADER + len + 1);
    if (!n)
        return NULL;
    n->name_len = (uint32_t)len & 0xffffff; /* a path is no longer than a frame */
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

/* Takes any child out of a table that is being emptied; `present` counts the slots done. */
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
    return d && d->nslots ? d->slots[children_place(t, d, name, len)] : NULL;
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
        err = children_reserve(t, parent->dir);
    if (err != CLAVE_OK)
        return err;
    struct cache_node *n = cache_tree_node_new(t, name, len);
    if (!n)
        return CLAVE_ENOMEM;
    n->parent = parent->dir;
    children_insert(t, parent->dir, n);
    *out = n;
    return CLAVE_OK;
}

clave_err clave__cache_tree_store(struct cache_tree *t, struct cache_node **n,
                                  const struct cache_value *v, struct cache_node **old)
{
    struct cache_node *was = *n;
    uint8_t stat[CACHE_STAT_MAX];
    size_t nstat = stat_put(stat, &v->stat);
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
        is->parent
            ->slots[children_place(t, is->parent, clave__cache_children_name(is), is->name_len)] =
            is;
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
        children_remove(t, n->parent, n);
        cache_tree_node_free(t, n);
        n = up;
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

clave_stat clave__cache_tree_stat(const struct cache_node *n)
{
    return stat_get(n->bytes);
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
    return n->dir ? children_from(n->dir, 0) : NULL;
}

uint32_t clave__cache_tree_slot(const struct cache_tree *t, const struct cache_node *n)
{
    assert(n->parent);
    return children_place(t, n->parent, clave__cache_children_name(n), n->name_len);
}

struct cache_node *clave__cache_tree_deepest(struct cache_node *top)
{
    for (struct cache_node *child; (child = cache_tree_first_child(top));)
        top = child;
    return top;
}

/* Whatever followed the removed node in the table now has its slot, or a later one. */
struct cache_node *clave__cache_tree_after(const struct cache_children *parent, uint32_t slot)
{
    struct cache_node *next = children_from(parent, slot);
    return next ? clave__cache_tree_deepest(next) : parent->owner;
}

struct cache_node *clave__cache_tree_down(const struct cache_tree *t, const struct cache_node *top,
                                          const struct cache_node *at)
{
    struct cache_node *next = cache_tree_first_child(at);
    while (!next && at != top) {
        next = children_from(at->parent, clave__cache_tree_slot(t, at) + 1);
        at = at->parent->owner;
    }
    return next;
}
