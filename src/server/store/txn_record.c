/* txn_record.c - encodes and decodes transactions, and applies them again from a record; see
 * txn_log.h. txn_log.c puts the records into a log and replays them; `clave data` and the gate show
 * them.
 *
 * Replaying accepts a tree that is ahead of the log, because Apache's snapshots are fuzzy: they are
 * saved while writes continue, so they may contain some later changes. Therefore a change that is
 * already there is not made twice, and neither a version nor a zxid ever goes down. */
#include "server/store/txn_log.h"

#include <assert.h>

/* ---- applying changes again ------------------------------------------------------------------ */

/* Makes a change that will never be undone. */
static clave_err txn_make_for_good(struct txn *t)
{
    assert(t->count == 1);
    clave_err err = clave__txn_make(t);
    clave__txn_end(t);
    return err;
}

/* Removes everything below a node that is to be deleted. A fuzzy snapshot may contain children of a
 * node that the log has yet to delete; the log creates them again later. */
static void txn_drop_children(struct txn *t, struct node *top)
{
    while (!list_empty(&top->children)) {
        struct node *n = LIST_ENTRY(top->children.next, struct node, sibling);
        while (!list_empty(&n->children))
            n = LIST_ENTRY(n->children.next, struct node, sibling);
        clave__tree_unlink(t->tree, n);
        clave__tree_free_node(t->tree, n);
    }
}

static clave_err txn_redo_delete_of(struct txn *t, int32_t type, struct jbytes path)
{
    if (path.n <= 1)
        return CLAVE_EPROTO;
    struct node *n = clave__tree_find(t->tree, path);
    if (!n) {
        struct node *parent = clave__tree_find_parent(t->tree, path);
        if (parent && t->head.zxid > parent->stat.pzxid) {
            parent->stat.pzxid = t->head.zxid;
            clave__tree_changed(t->tree, parent);
        }
        return CLAVE_OK;
    }
    txn_drop_children(t, n);
    struct change *c = clave__txn_add(t, type, path);
    if (!c)
        return CLAVE_ENOMEM;
    c->node = n;
    return txn_make_for_good(t);
}

static clave_err txn_redo_delete(struct txn *t, const struct change_record *r)
{
    return txn_redo_delete_of(t, r->kind->type, r->path);
}

static void txn_redo_set_acl(struct txn *t, struct node *n, struct acl *acl)
{
    struct acl *old = n->acl;
    n->acl = clave__acl_ref(acl);
    clave__acls_drop(&t->tree->acls, old);
}

/* Replays the creation of a node that is already in the snapshot. The snapshot may lack its access
 * list: Apache writes the lists first, so a node created meanwhile may refer to one that is
 * missing. */
static void txn_create_again(struct txn *t, struct node *n, const struct change *c)
{
    struct node *parent = n->parent;
    txn_redo_set_acl(t, n, c->acl);
    if (c->version > parent->stat.cversion)
        parent->stat.cversion = c->version;
    if (t->head.zxid > parent->stat.pzxid)
        parent->stat.pzxid = t->head.zxid;
    clave__tree_changed(t->tree, parent);
}

static struct acl *txn_redo_acl(struct txn *t, struct jvec entries)
{
    if (entries.count < 0)
        return clave__acl_ref(t->tree->acls.open);
    return clave__acls_take(&t->tree->acls, entries, ACL_NEW_KEY);
}

static int64_t txn_redo_owner(const struct txn *t, const struct change_record *r)
{
    if (r->kind->type == OP_CREATE_CONTAINER)
        return OWNER_CONTAINER;
    if (r->kind->type == OP_CREATE_TTL)
        return clave__owner_of_ttl(r->ttl_ms);
    return r->ephemeral ? t->head.client : 0;
}

static clave_err txn_redo_new_node(struct txn *t, struct change *c)
{
    c->parent = clave__tree_find_parent(t->tree, c->path);
    c->node = clave__tree_find(t->tree, c->path);
    if (c->node)
        txn_create_again(t, c->node, c);
    if (c->node || !c->parent)
        return CLAVE_OK;
    if (c->version == -1 &&
        c->parent->stat.cversion < INT32_MAX) /* the record has none before ZooKeeper 3.3 */
        c->version = c->parent->stat.cversion + 1;
    return clave__txn_make(t);
}

/* Implementations of txn_kind.replay. */
static clave_err txn_redo_create(struct txn *t, const struct change_record *r)
{
    if (r->path.n <= 1)
        return CLAVE_EPROTO;
    struct change *c = clave__txn_add(t, r->kind->type, r->path);
    if (!c)
        return CLAVE_ENOMEM;
    c->data = r->data;
    c->acl = txn_redo_acl(t, r->acl);
    c->owner = txn_redo_owner(t, r);
    c->version = r->version;
    clave_err err = c->acl ? txn_redo_new_node(t, c) : CLAVE_ENOMEM;
    clave__txn_end(t);
    return err;
}

/* Sets the data of a node; for a reconfig, that node is /zookeeper/config. */
static clave_err txn_redo_set(struct txn *t, const struct change_record *r)
{
    bool sets_acl = r->kind->type == OP_SET_ACL;
    struct change *c = clave__txn_add(t, sets_acl ? OP_SET_ACL : OP_SET_DATA, r->path);
    if (!c)
        return CLAVE_ENOMEM;
    c->data = r->data;
    c->acl = sets_acl ? txn_redo_acl(t, r->acl) : NULL;
    c->version = r->version;
    c->node = clave__tree_find(t->tree, r->path);
    clave_err err = sets_acl && !c->acl ? CLAVE_ENOMEM : CLAVE_OK;
    if (err == CLAVE_OK && c->node)
        err = clave__txn_make(t);
    clave__txn_end(t);
    return err;
}

/* Deletes what the session owns that was not in the record's list. */
clave_err clave__txn_redo_end_of_session(struct txn *t)
{
    clave_err err = CLAVE_OK;
    for (struct owner *o; err == CLAVE_OK;) {
        o = clave__tree_find_owner(t->tree, t->head.client);
        if (!o || list_empty(&o->nodes))
            break;
        struct node *n = &LIST_ENTRY(o->nodes.next, struct owned_node, link)->node;
        err = txn_redo_delete_of(t, OP_DELETE, clave__node_path_bytes(n));
    }
    return err;
}

/* ---- the kinds ------------------------------------------------------------------------------- */

enum { NEW_NODE = TXN_PATH | TXN_DATA | TXN_ACL | TXN_PARENT_CVERSION };

/* The most frequent ones come first. */
static const struct txn_kind kinds[] = {
    {OP_CREATE, "create", NEW_NODE | TXN_EPHEMERAL, txn_redo_create},
    {OP_SET_DATA, "setData", TXN_PATH | TXN_DATA | TXN_VERSION, txn_redo_set},
    {OP_DELETE, "delete", TXN_PATH, txn_redo_delete},
    {OP_CREATE2, "create2", NEW_NODE | TXN_EPHEMERAL, txn_redo_create},
    {OP_CHECK, "check", TXN_PATH | TXN_VERSION, NULL},
    {OP_MULTI, "multi", 0, NULL},
    {OP_ERROR, "error", TXN_ERR, NULL},
    {OP_CREATE_SESSION, "createSession", 0, NULL},
    {OP_CLOSE_SESSION, "closeSession", 0, NULL},
    {OP_SET_ACL, "setACL", TXN_PATH | TXN_ACL | TXN_VERSION, txn_redo_set},
    {OP_CREATE_CONTAINER, "createContainer", NEW_NODE, txn_redo_create},
    {OP_DELETE_CONTAINER, "deleteContainer", TXN_PATH, txn_redo_delete},
    {OP_CREATE_TTL, "createTTL", NEW_NODE | TXN_TTL, txn_redo_create},
    {OP_RECONFIG, "reconfig", TXN_PATH | TXN_DATA | TXN_VERSION, txn_redo_set},
};

static const struct txn_kind *txn_kind(int32_t type)
{
    static const struct txn_kind never_recorded = {0, "unknown", 0, NULL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type)
            return &kinds[i];
    return &never_recorded;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void txn_put_change(struct jwriter *w, const struct change *c)
{
    unsigned has = txn_kind(c->type)->fields;
    assert(has != 0); /* a kind without fields cannot be read back */
    if (has & TXN_PATH)
        clave__jput_bytes(w, c->path);
    if (has & TXN_DATA)
        clave__jput_bytes(w, c->data);
    if (has & TXN_ACL)
        clave__jput_vec(w, clave__acl_entries(c->acl));
    if (has & TXN_EPHEMERAL)
        clave__jput_bool(w, c->owner != 0);
    if (has & (TXN_PARENT_CVERSION | TXN_VERSION))
        clave__jput_int(w, c->version);
    if (has & TXN_TTL)
        clave__jput_long(w, clave__owner_ttl_ms(c->owner));
    if (has & TXN_ERR)
        clave__jput_int(w, c->err);
}

/* Releases before 3.8.2 cannot read a create2 inside a multi. */
static int32_t txn_type_in_multi(const struct change *c)
{
    return c->type == OP_CREATE2 ? OP_CREATE : c->type;
}

static void txn_put_multi(struct jwriter *w, const struct txn *t)
{
    clave__jput_int(w, (int32_t)t->count);
    for (size_t i = 0; i < t->count; i++) {
        clave__jput_int(w, txn_type_in_multi(&t->changes[i]));
        size_t at = clave__buf_len(w->b);
        clave__jput_int(w, 0);
        txn_put_change(w, &t->changes[i]);
        clave__jput_int_at(w, at, (int32_t)(clave__buf_len(w->b) - at - 4));
    }
}

static void txn_put_paths(struct jwriter *w, const struct txn *t)
{
    clave__jput_int(w, (int32_t)t->count);
    for (size_t i = 0; i < t->count; i++)
        clave__jput_bytes(w, t->changes[i].path);
}

void clave__txn_write(struct jwriter *w, const struct txn *t)
{
    clave__jput_long(w, t->head.client);
    clave__jput_int(w, t->head.cxid);
    clave__jput_long(w, t->head.zxid);
    clave__jput_long(w, t->head.time);
    clave__jput_int(w, t->head.type);
    switch (t->head.type) {
    case OP_CREATE_SESSION:
        clave__jput_int(w, t->timeout_ms);
        break;
    case OP_CLOSE_SESSION:
        txn_put_paths(w, t);
        break;
    case OP_ERROR:
        clave__jput_int(w, t->err);
        break;
    case OP_MULTI:
        txn_put_multi(w, t);
        break;
    default:
        assert(t->count == 1);
        txn_put_change(w, &t->changes[0]);
        break;
    }
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns false if the bytes are cut short, or no such change is ever recorded. */
static bool txn_get_change(struct jreader *r, int32_t type, struct change_record *c)
{
    const struct txn_kind *kind = txn_kind(type);
    unsigned has = kind->fields;
    *c = (struct change_record){.kind = kind, .version = -1};
    if (has & TXN_PATH)
        c->path = clave__jget_bytes(r);
    if (has & TXN_DATA)
        c->data = clave__jget_bytes(r);
    if (has & TXN_ACL)
        c->acl = clave__wire_get_acls(r);
    if (has & TXN_EPHEMERAL)
        c->ephemeral = clave__jget_bool(r);
    if (has & TXN_VERSION || (has & TXN_PARENT_CVERSION && r->n >= 4))
        c->version = clave__jget_int(r);
    if (has & TXN_TTL)
        c->ttl_ms = clave__jget_long(r);
    if (has & TXN_ERR)
        c->err = clave__jget_int(r);
    return has != 0 && !r->bad;
}

/* Reads one operation of a multi. */
static bool txn_get_op(struct jreader *r, struct change_record *c)
{
    int32_t type = clave__jget_int(r);
    struct jbytes raw = clave__jget_bytes(r);
    struct jreader sub = clave__jreader(raw.p, raw.n > 0 ? (size_t)raw.n : 0);
    return !r->bad && txn_get_change(&sub, type, c);
}

static bool txn_get_multi(struct jreader *r, struct txn_record *t)
{
    struct change_record c;
    int32_t count = clave__jget_count(r, 8);
    t->body = *r;
    for (; t->changes < count; t->changes++) {
        if (!txn_get_op(r, &c))
            return false;
        t->failed = t->failed || c.kind->type == OP_ERROR;
    }
    t->body.n -= r->n;
    return !r->bad;
}

/* Reads the list of paths in a closeSession, which was introduced in 3.6. */
static void txn_get_paths(struct jreader *r, struct txn_record *t)
{
    struct jreader ahead = *r;
    struct jvec paths = clave__jget_strings(&ahead);
    if (ahead.bad)
        return;
    *r = ahead;
    t->changes = paths.count > 0 ? paths.count : 0;
    t->body = clave__jvec_reader(paths);
}

static bool txn_get_body(struct jreader *r, struct txn_record *t)
{
    switch (t->head.type) {
    case OP_CREATE_SESSION:
        t->timeout_ms = clave__jget_int(r);
        return !r->bad;
    case OP_CLOSE_SESSION:
        txn_get_paths(r, t);
        return true;
    case OP_ERROR:
        t->err = clave__jget_int(r);
        return !r->bad;
    case OP_MULTI:
        return txn_get_multi(r, t);
    default: {
        struct change_record c;
        t->body = *r;
        t->changes = 1;
        if (!txn_get_change(r, t->head.type, &c))
            return false;
        t->body.n -= r->n;
        return true;
    }
    }
}

bool clave__txn_record_read(struct txn_record *t, const void *p, size_t n)
{
    struct jreader r = clave__jreader(p, n);
    *t = (struct txn_record){.head.client = clave__jget_long(&r)};
    t->head.cxid = clave__jget_int(&r);
    t->head.zxid = clave__jget_long(&r);
    t->head.time = clave__jget_long(&r);
    t->head.type = clave__jget_int(&r);
    t->kind = txn_kind(t->head.type);
    if (r.bad || !txn_get_body(&r, t))
        return false;
    if (r.n < 12 || clave__jget_int(&r) != TXN_DIGEST_VERSION)
        return true;
    t->has_digest = true;
    t->digest = (uint64_t)clave__jget_long(&r);
    return true;
}

bool clave__txn_record_next(const struct txn_record *t, struct jreader *at,
                            struct change_record *out)
{
    if (at->n == 0)
        return false;
    if (t->head.type == OP_MULTI)
        return txn_get_op(at, out);
    if (t->head.type != OP_CLOSE_SESSION)
        return txn_get_change(at, t->head.type, out);
    *out = (struct change_record){.kind = txn_kind(OP_DELETE), .path = clave__jget_bytes(at)};
    return true;
}
