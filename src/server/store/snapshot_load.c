/* snapshot_load.c - reads snapshots in Apache's format (snapshot.h), and loads the tree and the
 * sessions from one. Used by recovery; it leaves either the whole tree or an empty one.
 * snapshot_save.c writes such files.
 *
 * Apache saves while writes continue, so its file may contain some later changes, and may lack the
 * access lists of nodes created meanwhile. The log, which is replayed afterwards, corrects both. */
#include "server/store/snapshot.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "server/server_internal.h"
#include "server/store/adler32.h"
#include "wire/record.h"

/* ---- reading a file -------------------------------------------------------------------------- */

/* Reports what a visitor found wrong: writes `fault`, with the offset, and returns ECORRUPT. */
static clave_err snapshot_damaged(struct snapshot_reader *in, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(in->fault, in->cap, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < in->cap)
        snprintf(in->fault + n, in->cap - (size_t)n, ", at offset %zu",
                 (size_t)(in->r.p - in->begin));
    return CLAVE_ECORRUPT;
}

enum { HEADER = 16, DIGEST_VERSION = 2 };

static const char magic[4] = {'Z', 'K', 'S', 'N'};

static clave_err snapshot_get_header(struct snapshot_reader *in)
{
    if (in->r.n < HEADER || memcmp(in->r.p, magic, sizeof magic) != 0)
        return snapshot_damaged(in, "it does not begin with ZKSN, as a snapshot does");
    clave__jget_int(&in->r);
    clave__jget_int(&in->r);
    clave__jget_long(&in->r);
    return CLAVE_OK;
}

static clave_err snapshot_get_sessions(struct snapshot_reader *in)
{
    int32_t count = clave__jget_count(&in->r, 12);
    clave_err err = CLAVE_OK;
    for (int32_t i = 0; i < count && err == CLAVE_OK; i++) {
        int64_t id = clave__jget_long(&in->r);
        int32_t timeout_ms = clave__jget_int(&in->r);
        if (in->visitor->session)
            err = in->visitor->session(in->arg, id, timeout_ms);
    }
    if (err != CLAVE_OK)
        return err;
    return in->r.bad ? snapshot_damaged(in, "the sessions are cut short") : CLAVE_OK;
}

static clave_err snapshot_get_lists(struct snapshot_reader *in)
{
    int32_t count = clave__jget_count(&in->r, 12);
    if (in->r.bad)
        return snapshot_damaged(in, "the access lists are cut short");
    size_t n = count > 0 ? (size_t)count : 0;
    clave_err err = in->visitor->lists ? in->visitor->lists(in->arg, n) : CLAVE_OK;
    for (size_t i = 0; i < n && err == CLAVE_OK; i++) {
        int64_t key = clave__jget_long(&in->r);
        struct jvec entries = clave__wire_get_acls(&in->r);
        if (in->r.bad)
            return snapshot_damaged(in, "the access lists are not well formed");
        if (in->visitor->list)
            err = in->visitor->list(in->arg, key, entries);
    }
    return err;
}

static struct node_stat snapshot_get_stat(struct jreader *r)
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

static void snapshot_note_zxid(struct snapshot_reader *in, int64_t zxid)
{
    if (zxid > in->newest)
        in->newest = zxid;
}

static bool snapshot_is_end(struct jbytes path)
{
    return path.n == 1 && path.p[0] == '/';
}

static clave_err snapshot_get_nodes(struct snapshot_reader *in)
{
    for (;;) {
        struct snapshot_node n = {.path = clave__jget_bytes(&in->r)};
        if (!in->r.bad && snapshot_is_end(n.path))
            return CLAVE_OK;
        n.data = clave__jget_bytes(&in->r);
        n.acl_key = clave__jget_long(&in->r);
        n.stat = snapshot_get_stat(&in->r);
        if (in->r.bad || n.path.n < 0)
            return snapshot_damaged(in, "the nodes are cut short");
        snapshot_note_zxid(in, n.stat.mzxid);
        snapshot_note_zxid(in, n.stat.pzxid);
        clave_err err = in->visitor->node(in->arg, &n);
        if (err != CLAVE_OK)
            return err;
    }
}

/* Reads a seal, which is a checksum of everything before it. */
static clave_err snapshot_get_seal(struct snapshot_reader *in, const uint8_t **from, uint32_t *sum)
{
    *sum = clave__checksum(*sum, *from, (size_t)(in->r.p - *from));
    *from = in->r.p;
    int64_t seal = clave__jget_long(&in->r);
    struct jbytes end = clave__jget_bytes(&in->r);
    if (in->r.bad || !snapshot_is_end(end))
        return snapshot_damaged(in, "a seal is cut short");
    return seal == (int64_t)*sum ? CLAVE_OK
                                 : snapshot_damaged(in, "a seal is not the checksum of the file");
}

/* Reads the parts at the end, some of which were added in 3.6 and 3.9 and may be missing. */
static clave_err snapshot_get_seals(struct snapshot_reader *in)
{
    const uint8_t *from = in->begin;
    uint32_t sum = CHECKSUM_START;
    clave_err err = snapshot_get_seal(in, &from, &sum);
    if (err != CLAVE_OK || in->r.n == 0)
        return err;
    /* Apache 3.9 without digests writes only the zxid and a seal here, 21 bytes. */
    if (in->r.n != 8 + 8 + 5) {
        in->digest_zxid = clave__jget_long(&in->r);
        in->has_digest = clave__jget_int(&in->r) == DIGEST_VERSION;
        in->digest = (uint64_t)clave__jget_long(&in->r);
        snapshot_note_zxid(in, in->digest_zxid);
        err = snapshot_get_seal(in, &from, &sum);
        if (err != CLAVE_OK || in->r.n == 0)
            return err;
    }
    snapshot_note_zxid(in, clave__jget_long(&in->r));
    return snapshot_get_seal(in, &from, &sum);
}

clave_err clave__snapshot_read(struct snapshot_reader *in, const void *p, size_t n)
{
    assert(in->visitor->node && (in->visitor->lists || !in->visitor->list));
    assert(in->newest == 0 && !in->has_digest); /* each file needs its own reader */
    in->begin = p;
    in->r = clave__jreader(p, n);
    clave_err err = snapshot_get_header(in);
    if (err == CLAVE_OK)
        err = snapshot_get_sessions(in);
    if (err == CLAVE_OK)
        err = snapshot_get_lists(in);
    if (err == CLAVE_OK)
        err = snapshot_get_nodes(in);
    return err == CLAVE_OK ? snapshot_get_seals(in) : err;
}

/* ---- loading: sessions ----------------------------------------------------------------------- */

/* Keys count up from 1, so a key near the end of the range cannot be valid. */
#define MAX_KEY (INT64_MAX / 2)

struct known_list {
    int64_t key;
    struct acl *list;
};

struct loading {
    struct server *s;
    struct snapshot_reader in;
    struct known_list *lists; /* by key, once all of them have been read */
    size_t nlists;
    bool is_sorted;
    struct acl *missing; /* stands in for lists missing from the map; NULL: not needed so far */
};

static clave_err load_session(void *arg, int64_t id, int32_t timeout_ms)
{
    struct sessions *sessions = &((struct loading *)arg)->s->sessions;
    struct session *session;
    if (timeout_ms != 0)
        return clave__sessions_add(sessions, id, timeout_ms, &session);
    if (id > 0) /* announces the id of the next session: see snapshot_put_session_count */
        clave__sessions_note_id(sessions, id - 1);
    return CLAVE_OK;
}

/* ---- loading: access lists ------------------------------------------------------------------- */

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
        return snapshot_damaged(&l->in, "the access lists are not well formed");
    struct acl *list = clave__acls_take(&l->s->tree.acls, entries, key);
    if (!list)
        return CLAVE_ENOMEM;
    l->lists[l->nlists++] = (struct known_list){key, list};
    return CLAVE_OK;
}

/* The stand-in for an access list that is missing from the file. Apache writes the lists first, so
 * the list of a node created while it saves may not be there. Nobody may do anything with such a
 * node until its creation is replayed. NULL: no memory. */
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

/* ---- loading: nodes -------------------------------------------------------------------------- */

/* The root already exists, so it takes over the values in the file. */
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

static clave_err load_add_node(struct loading *l, const struct node_spec *spec)
{
    struct tree *t = &l->s->tree;
    if (spec->path.n == 0)
        return spec->stat.owner == 0 ? load_set_root(l, spec)
                                     : snapshot_damaged(&l->in, "the root has an owner");
    struct node *parent = clave__tree_find_parent(t, spec->path);
    if (!parent || clave__tree_find(t, spec->path))
        return snapshot_damaged(&l->in, "a node without a parent, or a node twice");
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
    return spec.acl ? load_add_node(l, &spec) : CLAVE_ENOMEM;
}

/* ---- loading a file -------------------------------------------------------------------------- */

/* Sets the zxid from which the log is replayed, and the one from which on its digests count. */
static clave_err load_settle_zxid(struct loading *l)
{
    struct server *s = l->s;
    const struct snapshot_reader *in = &l->in;
    if (in->newest == INT64_MAX)
        return snapshot_damaged(&l->in, "it has the largest possible zxid");
    s->last_zxid = s->replay.named_zxid >= 0 ? s->replay.named_zxid : in->newest;
    s->txn_log.durable_zxid = s->last_zxid;
    s->replay.fuzzy_zxid = in->newest;
    s->replay.fuzzy_digest = in->digest;
    /* Apache does not know the digest of a tree that no transaction has changed yet, and writes 0.
     */
    s->replay.has_fuzzy_digest = in->has_digest && in->digest_zxid > 0 &&
                                 in->digest_zxid >= s->last_zxid && in->digest_zxid == in->newest;
    clave__txn_log_check_fuzzy_digest(s);
    return CLAVE_OK;
}

static clave_err load_file(struct loading *l, const void *p, size_t n)
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

/* Empties the server: `bare` without any nodes, to load a snapshot, otherwise as if it were new. */
static clave_err load_reset_server(struct server *s, bool bare)
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
    clave_err err = load_reset_server(s, true);
    if (err != CLAVE_OK)
        return err;
    err = load_file(&l, p, n);
    s->replay.named_zxid = -1;
    if (err == CLAVE_OK) {
        clave__snapshot_schedule(s);
        return CLAVE_OK;
    }
    clave_err emptied = load_reset_server(s, false);
    return emptied != CLAVE_OK ? emptied : err;
}
