/* snapshot_load.c - loads the tree and the sessions from a file in Apache's format, which
 * snapshot_read.c reads. Recovery calls it; it leaves a whole tree or an empty one. */
#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "server/server_internal.h"
#include "server/store/snapshot_read.h"

/* Keys count up from 1; one near the end of the range is not a valid key. */
#define MAX_KEY (INT64_MAX / 2)

struct known_list {
    int64_t key;
    struct acl *list;
};

struct loading {
    struct server *s;
    struct snapshot_reader in;
    struct known_list *lists; /* by key, once all are known */
    size_t nlists;
    bool is_sorted;
    struct acl *missing; /* replaces lists that are not in the map; NULL: not needed yet */
};

static clave_err load_session(void *arg, int64_t id, int32_t timeout_ms)
{
    struct sessions *sessions = &((struct loading *)arg)->s->sessions;
    struct session *session;
    if (timeout_ms != 0)
        return clave__sessions_add(sessions, id, timeout_ms, &session);
    if (id > 0) /* the next id: save_put_session_count */
        clave__sessions_note_id(sessions, id - 1);
    return CLAVE_OK;
}

/* ---- access lists ---------------------------------------------------------------------------- */

static int load_by_key(const void *a, const void *b)
{
    const struct known_list *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static clave_err load_lists(void *arg, size_t n)
{
    struct loading *l = arg;
    l->lists = clave__mem_alloc(&l->s->mem, (n > 0 ? n : 1) * sizeof *l->lists);
    return l->lists ? CLAVE_OK : CLAVE_ENOMEM;
}

static clave_err load_list(void *arg, int64_t key, struct jvec entries)
{
    struct loading *l = arg;
    if (key <= 0 || key > MAX_KEY)
        return clave__snapshot_damaged(&l->in, "the access lists are not well formed");
    struct acl *list = clave__acls_take(&l->s->tree.acls, entries, key);
    if (!list)
        return CLAVE_ENOMEM;
    l->lists[l->nlists++] = (struct known_list){key, list};
    return CLAVE_OK;
}

/* Apache writes the lists first, so the list of a node created meanwhile may be missing. Until the
 * node's creation is replayed, nobody may do anything with it. NULL: no memory. */
static struct acl *load_missing_list(struct loading *l)
{
    static const uint8_t nobody[] = {0,   0, 0, 0, 0, 0,   0,   5,   'w', 'o', 'r', 'l',
                                     'd', 0, 0, 0, 6, 'a', 'n', 'y', 'o', 'n', 'e'};
    const struct jvec entries = {1, nobody, sizeof nobody};
    if (!l->missing)
        l->missing = clave__acls_take(&l->s->tree.acls, entries, ACL_NEW_KEY);
    return l->missing;
}

static struct acl *load_list_of(struct loading *l, int64_t key)
{
    struct known_list wanted = {key, NULL};
    if (key == ACL_OPEN_KEY)
        return l->s->tree.acls.open;
    if (!l->is_sorted)
        qsort(l->lists, l->nlists, sizeof *l->lists, load_by_key);
    l->is_sorted = true;
    const struct known_list *known =
        l->nlists ? bsearch(&wanted, l->lists, l->nlists, sizeof *l->lists, load_by_key) : NULL;
    return known ? known->list : load_missing_list(l);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* The root already exists: it takes the file's values. */
static clave_err load_set_root(struct loading *l, const struct node_spec *spec)
{
    struct tree *t = &l->s->tree;
    uint8_t *data;
    int32_t len = spec->data.n;
    int32_t num_children = t->root->stat.num_children;
    clave_err err = clave__tree_copy_data(t, spec->data, &data);
    if (err != CLAVE_OK)
        return err;
    clave__tree_swap_data(t, t->root, &data, &len);
    clave__tree_free_data(t, t->root, data);
    struct acl *old = t->root->acl;
    t->root->acl = clave__acl_ref(spec->acl);
    clave__acls_drop(&t->acls, old);
    t->root->stat = spec->stat;
    t->root->stat.num_children = num_children;
    clave__tree_changed(t, t->root);
    return CLAVE_OK;
}

static clave_err snapshot_add_node(struct loading *l, const struct node_spec *spec)
{
    struct tree *t = &l->s->tree;
    if (spec->path.n == 0)
        return spec->stat.owner == 0 ? load_set_root(l, spec)
                                     : clave__snapshot_damaged(&l->in, "the root has an owner");
    struct node *parent = clave__tree_find_parent(t, spec->path);
    if (!parent || clave__tree_find(t, spec->path))
        return clave__snapshot_damaged(&l->in, "a node without a parent, or a node twice");
    struct node *n = clave__tree_new_node(t, spec);
    if (!n)
        return CLAVE_ENOMEM;
    clave__tree_link(t, parent, n);
    return CLAVE_OK;
}

static clave_err load_node(void *arg, const struct snapshot_node *n)
{
    struct loading *l = arg;
    const struct node_spec spec = {n->path, n->data, n->stat, load_list_of(l, n->acl_key)};
    return spec.acl ? snapshot_add_node(l, &spec) : CLAVE_ENOMEM;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Sets the zxid from which the log is replayed, and that from which its digests count. */
static clave_err load_settle_zxid(struct loading *l)
{
    struct server *s = l->s;
    const struct snapshot_reader *in = &l->in;
    if (in->newest == INT64_MAX)
        return clave__snapshot_damaged(&l->in, "it has the largest possible zxid");
    s->last_zxid = s->replay.named_zxid >= 0 ? s->replay.named_zxid : in->newest;
    s->txn_log.durable_zxid = s->last_zxid;
    s->replay.fuzzy_zxid = in->newest;
    s->replay.fuzzy_digest = in->digest;
    /* Apache does not know the digest of a tree that no transaction has changed, and writes 0. */
    s->replay.has_fuzzy_digest = in->has_digest && in->digest_zxid > 0 &&
                                 in->digest_zxid >= s->last_zxid && in->digest_zxid == in->newest;
    clave__txn_log_check_fuzzy_digest(s);
    return CLAVE_OK;
}

static clave_err snapshot_load(struct loading *l, const void *p, size_t n)
{
    clave_err err = clave__snapshot_read(&l->in, p, n);
    if (err == CLAVE_OK)
        err = load_settle_zxid(l);
    for (size_t i = 0; i < l->nlists; i++)
        clave__acls_drop(&l->s->tree.acls, l->lists[i].list);
    clave__acls_drop(&l->s->tree.acls, l->missing);
    clave__mem_free(&l->s->mem, l->lists);
    return err;
}

void clave__server_snapshot_named(struct server *s, int64_t zxid)
{
    s->replay.named_zxid = zxid;
}

/* Resets to a fresh server, or to one without any nodes, for loading a snapshot (`bare`). */
static clave_err snapshot_reset_server(struct server *s, bool bare)
{
    assert(!s->serving && list_empty(&s->conns.all) && s->txn.count == 0);
    clave__tree_fini(&s->tree);
    clave__sessions_fini(&s->sessions);
    s->last_zxid = s->txn_log.durable_zxid = s->replay.fuzzy_zxid = 0;
    s->replay.has_fuzzy_digest = false;
    clave_err err = clave__sessions_init(&s->sessions, &s->mem, s->limits.tick_ms, s->hash_seed);
    if (err != CLAVE_OK)
        return err;
    return bare ? clave__tree_init_bare(&s->tree, &s->mem, s->hash_seed)
                : clave__tree_init(&s->tree, &s->mem, s->hash_seed);
}

clave_err clave__server_load_snapshot(struct server *s, const void *p, size_t n, char *fault,
                                      size_t cap)
{
    static const struct snapshot_visitor visitor = {load_session, load_lists, load_list, load_node};
    struct loading l = {.s = s, .in = {.visitor = &visitor, .arg = &l, .fault = fault, .cap = cap}};
    clave_err err = snapshot_reset_server(s, true);
    if (err != CLAVE_OK)
        return err;
    err = snapshot_load(&l, p, n);
    s->replay.named_zxid = -1;
    if (err == CLAVE_OK) {
        clave__snapshot_schedule(s);
        return CLAVE_OK;
    }
    clave_err emptied = snapshot_reset_server(s, false);
    return emptied != CLAVE_OK ? emptied : err;
}
