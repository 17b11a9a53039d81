/* tree.c - the znodes, by path. Also what belongs to a single node: the meaning of its stored
 * owner, the Stat that clients see, and its digest. store/txn.c changes the tree; requests and
 * snapshots read it.
 *
 * What must stay true: the digest over all nodes equals Apache's bit by bit, because both servers
 * check it in the log. So whatever changes a node's Stat, path or data calls clave__tree_changed,
 * or unlinks the node and links it again. While a snapshot is being written, a node that it has yet
 * to write is reported (before_change) before it changes. */
#include "server/tree/tree.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/path.h"

/* ---- owners ---------------------------------------------------------------------------------- */

enum { TTL_BITS = 40 };

enum node_kind clave__owner_kind(int64_t owner)
{
    if (owner == 0)
        return NODE_PLAIN;
    if (owner == OWNER_CONTAINER)
        return NODE_CONTAINER;
    return (uint64_t)owner >> 56 == 0xff ? NODE_TTL : NODE_EPHEMERAL;
}

int64_t clave__owner_ttl_ms(int64_t owner)
{
    assert(clave__owner_kind(owner) == NODE_TTL);
    return owner & (((int64_t)1 << TTL_BITS) - 1);
}

int64_t clave__owner_of_ttl(int64_t ttl_ms)
{
    return (int64_t)((uint64_t)0xff << 56 | (uint64_t)ttl_ms);
}

/* ---- the Stat -------------------------------------------------------------------------------- */

struct jbytes clave__node_name(const struct node *n)
{
    const char *path = clave__node_path(n);
    size_t at = n->path_len;
    while (at > 0 && path[at - 1] != '/')
        at--;
    return clave__jbytes_n(path + at, n->path_len - at);
}

struct wire_stat clave__node_wire_stat(const struct node *n)
{
    const struct node_stat *s = &n->stat;
    bool ephemeral = clave__owner_kind(s->owner) == NODE_EPHEMERAL;
    /* Clients see a cversion that counts creations and deletions: the creations, plus those of the
     * created children that no longer exist. */
    uint32_t cversion = (uint32_t)s->cversion * 2u - (uint32_t)s->num_children;
    return (struct wire_stat){
        .czxid = s->czxid,
        .mzxid = s->mzxid,
        .ctime = s->ctime,
        .mtime = s->mtime,
        .version = s->version,
        .cversion = (int32_t)cversion,
        .aversion = s->aversion,
        .ephemeral_owner = ephemeral ? s->owner : 0,
        .data_length = n->data_len > 0 ? n->data_len : 0,
        .num_children = s->num_children,
        .pzxid = s->pzxid,
    };
}

void clave__node_put_stat(struct jwriter *w, const struct node *n)
{
    struct wire_stat s = clave__node_wire_stat(n);
    clave__wire_put_stat(w, &s);
}

/* ---- the digest ------------------------------------------------------------------------------ */

static uint8_t *node_put_long(uint8_t *p, int64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)((uint64_t)v >> (56 - 8 * i));
    return p + 8;
}

static uint8_t *node_put_int(uint8_t *p, int32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)((uint32_t)v >> (24 - 8 * i));
    return p + 4;
}

/* Sets head_crc; call it whenever the data has changed. */
static void node_update_head(struct node *n, const struct crc32 *by)
{
    enum { LONG_DATA = 1024 }; /* above this, zlib is faster */
    uint32_t crc = clave__crc32(by, 0, clave__node_path(n), n->path_len);
    if (n->data_len >= LONG_DATA && !by->folds)
        crc = (uint32_t)crc32(crc, n->data, (uInt)n->data_len);
    else if (n->data_len > 0)
        crc = clave__crc32(by, crc, n->data, (size_t)n->data_len);
    n->head_crc = crc;
}

/* Apache's digest of a node, computed from head_crc and the Stat; 0 for nodes below /zookeeper. */
static uint32_t node_digest(const struct node *n, const struct crc32 *by)
{
    static const char system[] = "/zookeeper/";
    enum { SYSTEM = sizeof system - 1, STAT = 60 };
    const struct node_stat *s = &n->stat;
    uint8_t stat[STAT], *p = stat;
    if (n->path_len >= SYSTEM && memcmp(clave__node_path(n), system, SYSTEM) == 0)
        return 0;
    p = node_put_long(p, s->czxid);
    p = node_put_long(p, s->mzxid);
    p = node_put_long(p, s->pzxid);
    p = node_put_long(p, s->ctime);
    p = node_put_long(p, s->mtime);
    p = node_put_int(p, s->version);
    p = node_put_int(p, s->cversion);
    p = node_put_int(p, s->aversion);
    node_put_long(p, s->owner);
    return clave__crc32(by, n->head_crc, stat, STAT);
}

/* Data of up to this many bytes is stored in the node's own allocation. */
enum { INLINE_DATA = 256 };

/* ---- invariants ------------------------------------------------------------------------------ */

struct tree_sums {
    size_t nodes, ephemerals, data_bytes;
    uint64_t digest;
};

/* Checks that the counts below a node add up, and that each of its children is its child by
 * path. */
static void tree_check_node(const struct node *n, struct tree_sums *sums)
{
    int32_t children = 0;
    uint32_t below = 0;
    for (struct list *l = n->children.next; l != &n->children; l = l->next, children++) {
        const struct node *child = LIST_ENTRY(l, struct node, sibling);
        CHECK(child->parent == n && child->path_len > n->path_len);
        CHECK(memcmp(clave__node_path(child), clave__node_path(n), n->path_len) == 0);
        below += child->in_tree.user + 1;
    }
    CHECK(children == n->stat.num_children && below == n->in_tree.user);
    CHECK(n->data_len > 0 ? n->data != NULL : n->data == NULL);
    sums->nodes++;
    sums->digest += n->digest;
    sums->data_bytes += n->path_len + (n->data_len > 0 ? (size_t)n->data_len : 0);
    sums->ephemerals += clave__owner_kind(n->stat.owner) == NODE_EPHEMERAL;
}

/* Checks the tree's counts and digest against the nodes linked in it. */
static void tree_check(const struct tree *t)
{
    struct tree_sums sums = {0};
    if (!clave__check_is_due(t->nodes.count))
        return;
    for (const struct node *n = t->root; n; n = clave__tree_next(n, t->root))
        tree_check_node(n, &sums);
    CHECK(sums.nodes == t->nodes.count + 1 && sums.ephemerals == t->ephemerals);
    CHECK(sums.digest == t->digest && sums.data_bytes == t->data_bytes);
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool server_tree_has_path(const struct map_node *node, const void *key)
{
    const struct node *n = (const void *)node; /* its first member */
    const struct jbytes *path = key;
    return n->path_len == (uint32_t)path->n &&
           memcmp(clave__node_path(n), path->p, n->path_len) == 0;
}

struct node *clave__tree_find(const struct tree *t, struct jbytes path)
{
    if (path.n <= 0 || (path.n == 1 && path.p[0] == '/'))
        return t->root;
    struct map_node *n =
        clave__map_find(&t->nodes, clave__map_hash_bytes(&t->nodes, path.p, (size_t)path.n),
                        server_tree_has_path, &path);
    return n ? MAP_ENTRY(n, struct node, in_tree) : NULL;
}

struct node *clave__tree_find_parent(const struct tree *t, struct jbytes path)
{
    int32_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/')
        n--;
    return n > 0 ? clave__tree_find(t, (struct jbytes){path.p, n - 1}) : NULL;
}

struct node *clave__tree_next(const struct node *n, const struct node *top)
{
    if (!list_empty(&n->children))
        return LIST_ENTRY(n->children.next, struct node, sibling);
    while (n != top) {
        const struct node *parent = n->parent;
        assert(parent); /* n must be below top */
        if (n->sibling.next != &parent->children)
            return LIST_ENTRY(n->sibling.next, struct node, sibling);
        n = parent;
    }
    return NULL;
}

/* ---- owners ---------------------------------------------------------------------------------- */

static bool server_tree_has_id(const struct map_node *node, const void *key)
{
    const struct owner *o = (const void *)node; /* its first member */
    return o->id == *(const int64_t *)key;
}

struct owner *clave__tree_find_owner(const struct tree *t, int64_t id)
{
    struct map_node *n =
        clave__map_find(&t->owners, clave__map_hash_u64((uint64_t)id), server_tree_has_id, &id);
    return n ? MAP_ENTRY(n, struct owner, in_tree) : NULL;
}

static struct owner *tree_take_owner(struct tree *t, int64_t id)
{
    struct owner *o = clave__tree_find_owner(t, id);
    if (!o) {
        o = clave__mem_alloc(t->mem, sizeof *o);
        if (!o)
            return NULL;
        *o = (struct owner){.id = id};
        list_init(&o->nodes);
        clave__map_insert(&t->owners, &o->in_tree, clave__map_hash_u64((uint64_t)id));
    }
    o->refs++;
    return o;
}

static void tree_drop_owner(struct tree *t, int64_t id)
{
    struct owner *o = clave__tree_find_owner(t, id);
    assert(o && o->refs > 0);
    if (--o->refs > 0)
        return;
    clave__map_remove(&t->owners, &o->in_tree);
    clave__mem_free(t->mem, o);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Always inside the node's allocation, even for empty data (see _new_node), so it never equals the
 * address of another allocation. */
static uint8_t *tree_inline_data(struct node *n)
{
    return (uint8_t *)(n + 1) + n->path_len;
}

/* Where the allocation that contains a node begins. */
static void *tree_block_of(struct node *n)
{
    return n->stat.owner ? (void *)clave__node_owned(n) : (void *)n;
}

static struct node *tree_new_block(struct tree *t, int64_t owner, size_t extra)
{
    if (owner == 0)
        return clave__mem_alloc(t->mem, sizeof(struct node) + extra);
    struct owned_node *o = clave__mem_alloc(t->mem, sizeof *o + extra);
    if (!o)
        return NULL;
    list_init(&o->link);
    return &o->node;
}

struct node *clave__tree_new_node(struct tree *t, const struct node_spec *spec)
{
    assert(spec->acl && spec->path.n >= 0);
    size_t path_len = (size_t)spec->path.n;
    size_t data_len = spec->data.n > 0 ? (size_t)spec->data.n : 0;
    size_t inside = data_len <= INLINE_DATA ? data_len : 0;
    bool ephemeral = clave__owner_kind(spec->stat.owner) == NODE_EPHEMERAL;
    struct node *n = tree_new_block(t, spec->stat.owner, path_len + (inside ? inside : 1));
    if (!n)
        return NULL;
    *n = (struct node){.stat = spec->stat, .data_len = spec->data.n};
    n->path_len = path_len & INT32_MAX;
    n->saved = t->saved;
    n->stat.num_children = 0;
    list_init(&n->sibling);
    list_init(&n->children);
    if (path_len > 0)
        memcpy(n + 1, spec->path.p, path_len);
    if (data_len > 0)
        n->data = inside ? tree_inline_data(n) : clave__mem_alloc(t->mem, data_len);
    if ((data_len > 0 && !n->data) || (ephemeral && !tree_take_owner(t, spec->stat.owner))) {
        clave__tree_free_data(t, n, n->data);
        clave__mem_free(t->mem, tree_block_of(n));
        return NULL;
    }
    if (data_len > 0)
        memcpy(n->data, spec->data.p, data_len);
    n->acl = clave__acl_ref(spec->acl);
    node_update_head(n, &t->crc);
    return n;
}

void clave__tree_free_node(struct tree *t, struct node *n)
{
    if (clave__owner_kind(n->stat.owner) == NODE_EPHEMERAL)
        tree_drop_owner(t, n->stat.owner);
    clave__acls_drop(&t->acls, n->acl);
    clave__tree_free_data(t, n, n->data);
    clave__mem_free(t->mem, tree_block_of(n));
}

static size_t server_tree_size_of(const struct node *n)
{
    return n->path_len + (n->data_len > 0 ? (size_t)n->data_len : 0);
}

static void tree_link_owned(struct tree *t, struct node *n)
{
    assert(n->stat.owner != 0);
    struct list *link = &clave__node_owned(n)->link;
    if (clave__owner_kind(n->stat.owner) != NODE_EPHEMERAL) {
        list_push_back(&t->swept, link);
        return;
    }
    list_push_back(&clave__tree_find_owner(t, n->stat.owner)->nodes, link);
    t->ephemerals++;
}

static void tree_unlink_owned(struct tree *t, struct node *n)
{
    list_cursors_leave(&t->cursors, &clave__node_owned(n)->link);
    list_remove(&clave__node_owned(n)->link);
    if (clave__owner_kind(n->stat.owner) == NODE_EPHEMERAL)
        t->ephemerals--;
}

static void tree_count_below(struct node *n, int by)
{
    for (; n; n = n->parent)
        n->in_tree.user += (uint32_t)by;
}

void clave__tree_link(struct tree *t, struct node *parent, struct node *n)
{
    assert(!n->parent && n != t->root);
    tree_check(t);
    clave__map_insert(&t->nodes, &n->in_tree,
                      clave__map_hash_bytes(&t->nodes, clave__node_path(n), n->path_len));
    n->parent = parent;
    list_push_back(&parent->children, &n->sibling);
    parent->stat.num_children++;
    tree_count_below(parent, 1);
    if (n->stat.owner)
        tree_link_owned(t, n);
    t->data_bytes += server_tree_size_of(n);
    clave__tree_changed(t, n);
    tree_check(t);
}

void clave__tree_unlink(struct tree *t, struct node *n)
{
    assert(n->parent && list_empty(&n->children));
    clave__tree_before_change(t, n);
    clave__map_remove(&t->nodes, &n->in_tree);
    list_remove(&n->sibling);
    n->parent->stat.num_children--;
    tree_count_below(n->parent, -1);
    n->parent = NULL;
    if (n->stat.owner)
        tree_unlink_owned(t, n);
    t->data_bytes -= server_tree_size_of(n);
    t->digest -= n->digest;
    n->digest = 0;
    tree_check(t);
}

/* ---- changes --------------------------------------------------------------------------------- */

clave_err clave__tree_copy_data(struct tree *t, struct jbytes data, uint8_t **out)
{
    *out = NULL;
    if (data.n <= 0)
        return CLAVE_OK;
    *out = clave__mem_alloc(t->mem, (size_t)data.n);
    if (!*out)
        return CLAVE_ENOMEM;
    memcpy(*out, data.p, (size_t)data.n);
    return CLAVE_OK;
}

void clave__tree_swap_data(struct tree *t, struct node *n, uint8_t **data, int32_t *len)
{
    assert((*data != NULL) == (*len > 0));
    uint8_t *old = n->data;
    int32_t old_len = n->data_len;
    clave__tree_before_change(t, n);
    t->data_bytes -= server_tree_size_of(n);
    n->data = *data;
    n->data_len = *len;
    *data = old;
    *len = old_len;
    t->data_bytes += server_tree_size_of(n);
    node_update_head(n, &t->crc);
    tree_check(t);
}

void clave__tree_free_data(struct tree *t, struct node *n, uint8_t *data)
{
    if (data != tree_inline_data(n))
        clave__mem_free(t->mem, data);
}

void clave__tree_changed(struct tree *t, struct node *n)
{
    t->digest -= n->digest;
    n->digest = node_digest(n, &t->crc);
    t->digest += n->digest;
}

/* ---- life ------------------------------------------------------------------------------------ */

static clave_err tree_add_built_in(struct tree *t, const char *path, struct jvec acl,
                                   int32_t aversion)
{
    struct node_spec spec = {
        .path = clave__jbytes(path),
        .data = clave__jbytes(""),
        .stat = {.aversion = aversion},
        .acl = t->acls.open,
    };
    struct acl *own = NULL;
    if (acl.count > 0) {
        own = clave__acls_take(&t->acls, acl, ACL_NEW_KEY);
        if (!own)
            return CLAVE_ENOMEM;
        spec.acl = own;
    }
    struct node *n = clave__tree_new_node(t, &spec);
    clave__acls_drop(&t->acls, own);
    if (!n)
        return CLAVE_ENOMEM;
    clave__tree_link(t, clave__tree_find_parent(t, spec.path), n);
    return CLAVE_OK;
}

static clave_err server_tree_add_root(struct tree *t)
{
    struct node_spec spec = {
        .path = clave__jbytes(""),
        .data = clave__jbytes(""),
        .acl = t->acls.open,
    };
    t->root = clave__tree_new_node(t, &spec);
    if (!t->root)
        return CLAVE_ENOMEM;
    clave__tree_changed(t, t->root);
    return CLAVE_OK;
}

clave_err clave__tree_init_bare(struct tree *t, const struct clave_mem *mem, uint64_t seed)
{
    *t = (struct tree){.mem = mem};
    clave__crc32_init(&t->crc);
    list_init(&t->swept);
    list_init(&t->cursors);
    clave_err err = clave__acls_init(&t->acls, mem, seed);
    if (err != CLAVE_OK)
        return err;
    err = clave__map_init(&t->nodes, mem, seed);
    if (err == CLAVE_OK)
        err = clave__map_init(&t->owners, mem, 0);
    if (err == CLAVE_OK)
        err = server_tree_add_root(t);
    if (err != CLAVE_OK)
        clave__tree_fini(t);
    return err;
}

clave_err clave__tree_init(struct tree *t, const struct clave_mem *mem, uint64_t seed)
{
    static const uint8_t readers[] = {0,   0, 0, PERM_READ, 0, 0,   0,   5,   'w', 'o', 'r', 'l',
                                      'd', 0, 0, 0,         6, 'a', 'n', 'y', 'o', 'n', 'e'};
    const struct jvec everyone_reads = {1, readers, sizeof readers};
    const struct jvec none = {0, NULL, 0};
    clave_err err = clave__tree_init_bare(t, mem, seed);
    if (err != CLAVE_OK)
        return err;
    err = tree_add_built_in(t, "/zookeeper", none, 0);
    if (err == CLAVE_OK)
        err = tree_add_built_in(t, "/zookeeper/config", everyone_reads, -1);
    if (err == CLAVE_OK)
        err = tree_add_built_in(t, "/zookeeper/quota", none, 0);
    if (err != CLAVE_OK)
        clave__tree_fini(t);
    return err;
}

static void tree_free_all_nodes(struct tree *t)
{
    struct map_node *at = clave__map_next(&t->nodes, NULL);
    while (at) {
        struct map_node *next = clave__map_next(&t->nodes, at);
        clave__tree_free_node(t, MAP_ENTRY(at, struct node, in_tree));
        at = next;
    }
    if (t->root)
        clave__tree_free_node(t, t->root);
    t->root = NULL;
}

void clave__tree_fini(struct tree *t)
{
    tree_free_all_nodes(t);
    clave__map_fini(&t->nodes);
    clave__map_fini(&t->owners);
    clave__acls_fini(&t->acls);
}
