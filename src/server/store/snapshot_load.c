/* snapshot_load.c - loads the tree and the sessions from a file in Apache's format: header,
 * sessions, the map of access lists, nodes, and up to three parts that each end in a seal (a
 * checksum of everything before). Recovery calls it; it leaves a whole tree or an empty one. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "server/server_internal.h"
#include "server/store/checksum.h"

enum { HEADER = 16, DIGEST_VERSION = 2 };

/* Keys count up from 1; one near the end of the range is not a valid key. */
#define MAX_KEY (INT64_MAX / 2)

static const char magic[4] = {'Z', 'K', 'S', 'N'};

struct known_list {
    int64_t key;
    struct acl *list;
};

struct loading {
    struct server *s;
    const uint8_t *begin;
    struct jreader r;
    struct known_list *lists; /* by key */
    size_t nlists;
    struct acl *missing; /* replaces lists that are not in the map; NULL: not needed yet */
    int64_t newest;      /* the newest zxid of anything in the file */
    bool has_digest;
    int64_t digest_zxid;
    uint64_t digest;
    char *fault;
    size_t cap;
};

__attribute__((format(printf, 2, 3))) static clave_err damaged(struct loading *l, const char *fmt,
                                                               ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(l->fault, l->cap, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < l->cap)
        snprintf(l->fault + n, l->cap - (size_t)n, ", at offset %zu", (size_t)(l->r.p - l->begin));
    return CLAVE_ECORRUPT;
}

static clave_err snapshot_get_header(struct loading *l)
{
    if (l->r.n < HEADER || memcmp(l->r.p, magic, sizeof magic) != 0)
        return damaged(l, "it does not begin with ZKSN, as a snapshot does");
    clave__jget_int(&l->r);
    clave__jget_int(&l->r);
    clave__jget_long(&l->r);
    return CLAVE_OK;
}

static clave_err get_sessions(struct loading *l)
{
    int32_t count = clave__jget_count(&l->r, 12);
    for (int32_t i = 0; i < count; i++) {
        struct session *session;
        int64_t id = clave__jget_long(&l->r);
        int32_t timeout_ms = clave__jget_int(&l->r);
        if (timeout_ms == 0) { /* the next id: save_put_session_count */
            if (id > 0)
                clave__sessions_note_id(&l->s->sessions, id - 1);
            continue;
        }
        clave_err err = clave__sessions_add(&l->s->sessions, id, timeout_ms, &session);
        if (err != CLAVE_OK)
            return err;
    }
    return l->r.bad ? damaged(l, "the sessions are cut short") : CLAVE_OK;
}

static int by_key(const void *a, const void *b)
{
    const struct known_list *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static clave_err get_lists(struct loading *l)
{
    struct acls *acls = &l->s->tree.acls;
    int32_t count = clave__jget_count(&l->r, 12);
    if (l->r.bad)
        return damaged(l, "the access lists are cut short");
    l->lists = clave__mem_alloc(acls->mem, (size_t)(count > 0 ? count : 1) * sizeof *l->lists);
    if (!l->lists)
        return CLAVE_ENOMEM;
    for (int32_t i = 0; i < count; i++) {
        int64_t key = clave__jget_long(&l->r);
        struct jvec entries = clave__wire_get_acls(&l->r);
        if (l->r.bad || key <= 0 || key > MAX_KEY)
            return damaged(l, "the access lists are not well formed");
        struct acl *list = clave__acls_take(acls, entries, key);
        if (!list)
            return CLAVE_ENOMEM;
        l->lists[l->nlists++] = (struct known_list){key, list};
    }
    qsort(l->lists, l->nlists, sizeof *l->lists, by_key);
    return CLAVE_OK;
}

/* Apache writes the lists first, so the list of a node created meanwhile may be missing. Until the
 * node's creation is replayed, nobody may do anything with it. NULL: no memory. */
static struct acl *missing_list(struct loading *l)
{
    static const uint8_t nobody[] = {0,   0, 0, 0, 0, 0,   0,   5,   'w', 'o', 'r', 'l',
                                     'd', 0, 0, 0, 6, 'a', 'n', 'y', 'o', 'n', 'e'};
    const struct jvec entries = {1, nobody, sizeof nobody};
    if (!l->missing)
        l->missing = clave__acls_take(&l->s->tree.acls, entries, ACL_NEW_KEY);
    return l->missing;
}

static struct acl *list_of(struct loading *l, int64_t key)
{
    struct known_list wanted = {key, NULL};
    if (key == ACL_OPEN_KEY)
        return l->s->tree.acls.open;
    const struct known_list *known =
        l->nlists ? bsearch(&wanted, l->lists, l->nlists, sizeof *l->lists, by_key) : NULL;
    return known ? known->list : missing_list(l);
}

static void note_zxid(struct loading *l, int64_t zxid)
{
    if (zxid > l->newest)
        l->newest = zxid;
}

static struct node_stat get_stat(struct jreader *r)
{
    struct node_stat s = {0};
    s.czxid = clave__jget_long(r);
    s.mzxid = clave__jget_long(r);
    s.ctime = clave__jget_long(r);
    s.mtime = clave__jget_long(r);
    s.version = clave__jget_int(r);
    s.cversion = clave__jget_int(r);
    s.aversion = clave__jget_int(r);
    s.owner = clave__jget_long(r);
    s.pzxid = clave__jget_long(r);
    return s;
}

/* The root already exists: it takes the file's values. */
static clave_err set_root(struct loading *l, const struct node_spec *spec)
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
        return spec->stat.owner == 0 ? set_root(l, spec) : damaged(l, "the root has an owner");
    struct node *parent = clave__tree_find_parent(t, spec->path);
    if (!parent || clave__tree_find(t, spec->path))
        return damaged(l, "a node without a parent, or a node twice");
    struct node *n = clave__tree_new_node(t, spec);
    if (!n)
        return CLAVE_ENOMEM;
    clave__tree_link(t, parent, n);
    return CLAVE_OK;
}

static bool snapshot_is_end(struct jbytes path)
{
    return path.n == 1 && path.p[0] == '/';
}

static clave_err get_nodes(struct loading *l)
{
    for (;;) {
        struct node_spec spec = {.path = clave__jget_bytes(&l->r)};
        if (!l->r.bad && snapshot_is_end(spec.path))
            return CLAVE_OK;
        spec.data = clave__jget_bytes(&l->r);
        spec.acl = list_of(l, clave__jget_long(&l->r));
        spec.stat = get_stat(&l->r);
        if (l->r.bad || spec.path.n < 0)
            return damaged(l, "the nodes are cut short");
        if (!spec.acl)
            return CLAVE_ENOMEM;
        note_zxid(l, spec.stat.mzxid);
        note_zxid(l, spec.stat.pzxid);
        clave_err err = snapshot_add_node(l, &spec);
        if (err != CLAVE_OK)
            return err;
    }
}

/* A seal is the checksum of everything before it. */
static clave_err get_seal(struct loading *l, const uint8_t **from, uint32_t *sum)
{
    *sum = clave__checksum(*sum, *from, (size_t)(l->r.p - *from));
    *from = l->r.p;
    int64_t seal = clave__jget_long(&l->r);
    struct jbytes end = clave__jget_bytes(&l->r);
    if (l->r.bad || !snapshot_is_end(end))
        return damaged(l, "a seal is cut short");
    return seal == (int64_t)*sum ? CLAVE_OK : damaged(l, "a seal is not the checksum of the file");
}

/* The parts added in 3.6 and 3.9 may be missing. */
static clave_err get_seals(struct loading *l)
{
    const uint8_t *from = l->begin;
    uint32_t sum = CHECKSUM_START;
    clave_err err = get_seal(l, &from, &sum);
    if (err != CLAVE_OK || l->r.n == 0)
        return err;
    /* Without digests Apache 3.9 writes only its zxid and a seal: 21 bytes. */
    if (l->r.n != 8 + 8 + 5) {
        l->digest_zxid = clave__jget_long(&l->r);
        l->has_digest = clave__jget_int(&l->r) == DIGEST_VERSION;
        l->digest = (uint64_t)clave__jget_long(&l->r);
        note_zxid(l, l->digest_zxid);
        err = get_seal(l, &from, &sum);
        if (err != CLAVE_OK || l->r.n == 0)
            return err;
    }
    note_zxid(l, clave__jget_long(&l->r));
    return get_seal(l, &from, &sum);
}

/* Sets the zxid from which the log is replayed, and that from which its digests count. */
static clave_err settle_zxid(struct loading *l)
{
    struct server *s = l->s;
    if (l->newest == INT64_MAX)
        return damaged(l, "it has the largest possible zxid");
    s->last_zxid = s->named_zxid >= 0 ? s->named_zxid : l->newest;
    s->durable_zxid = s->last_zxid;
    s->fuzzy_zxid = l->newest;
    s->fuzzy_digest = l->digest;
    /* Apache does not know the digest of a tree that no transaction has changed, and writes 0. */
    s->has_fuzzy_digest = l->has_digest && l->digest_zxid > 0 && l->digest_zxid >= s->last_zxid &&
                          l->digest_zxid == l->newest;
    clave__log_check_fuzzy_digest(s);
    return CLAVE_OK;
}

static clave_err snapshot_load(struct loading *l)
{
    clave_err err = snapshot_get_header(l);
    if (err == CLAVE_OK)
        err = get_sessions(l);
    if (err == CLAVE_OK)
        err = get_lists(l);
    if (err == CLAVE_OK)
        err = get_nodes(l);
    if (err == CLAVE_OK)
        err = get_seals(l);
    if (err == CLAVE_OK)
        err = settle_zxid(l);
    for (size_t i = 0; i < l->nlists; i++)
        clave__acls_drop(&l->s->tree.acls, l->lists[i].list);
    clave__acls_drop(&l->s->tree.acls, l->missing);
    clave__mem_free(&l->s->mem, l->lists);
    return err;
}

void clave__server_snapshot_named(struct server *s, int64_t zxid)
{
    s->named_zxid = zxid;
}

/* Resets to a fresh server, or to one without any nodes, for loading a snapshot (`bare`). */
static clave_err snapshot_reset_server(struct server *s, bool bare)
{
    clave__tree_fini(&s->tree);
    clave__sessions_fini(&s->sessions);
    s->last_zxid = s->durable_zxid = s->fuzzy_zxid = 0;
    s->has_fuzzy_digest = false;
    clave_err err = clave__sessions_init(&s->sessions, &s->mem, s->tick_ms);
    if (err != CLAVE_OK)
        return err;
    return bare ? clave__tree_init_bare(&s->tree, &s->mem, s->hash_seed)
                : clave__tree_init(&s->tree, &s->mem, s->hash_seed);
}

clave_err clave__server_load_snapshot(struct server *s, const void *p, size_t n, char *fault,
                                      size_t cap)
{
    struct loading l = {.s = s, .begin = p, .r = clave__jreader(p, n), .fault = fault, .cap = cap};
    clave_err err = snapshot_reset_server(s, true);
    if (err != CLAVE_OK)
        return err;
    err = snapshot_load(&l);
    s->named_zxid = -1;
    if (err == CLAVE_OK) {
        clave__snapshot_schedule(s);
        return CLAVE_OK;
    }
    clave_err emptied = snapshot_reset_server(s, false);
    return emptied != CLAVE_OK ? emptied : err;
}
