/* txn_record.c - transactions in the format of Apache's log, written (by log.c) and replayed.
 * Replaying must accept a tree that is ahead of the log, because Apache's snapshots are fuzzy: a
 * change may already be there. */
#include "server/store/txn.h"

/* ---- writing --------------------------------------------------------------------------------- */

static void put_change(struct jwriter *w, const struct change *c)
{
    switch (c->type) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        clave__jput_bytes(w, c->path);
        clave__jput_bytes(w, c->data);
        clave__jput_vec(w, clave__acl_entries(c->acl));
        if (c->type == OP_CREATE || c->type == OP_CREATE2)
            clave__jput_bool(w, c->owner != 0);
        clave__jput_int(w, c->version);
        if (c->type == OP_CREATE_TTL)
            clave__jput_long(w, clave__owner_ttl_ms(c->owner));
        break;
    case OP_DELETE:
    case OP_DELETE_CONTAINER:
        clave__jput_bytes(w, c->path);
        break;
    case OP_SET_DATA:
        clave__jput_bytes(w, c->path);
        clave__jput_bytes(w, c->data);
        clave__jput_int(w, c->version);
        break;
    case OP_SET_ACL:
        clave__jput_bytes(w, c->path);
        clave__jput_vec(w, clave__acl_entries(c->acl));
        clave__jput_int(w, c->version);
        break;
    case OP_CHECK:
        clave__jput_bytes(w, c->path);
        clave__jput_int(w, c->version);
        break;
    default: /* error */
        clave__jput_int(w, c->err);
        break;
    }
}

/* Releases before 3.8.2 cannot read a create2 in a multi. */
static int32_t type_in_multi(const struct change *c)
{
    return c->type == OP_CREATE2 ? OP_CREATE : c->type;
}

static void put_multi(struct jwriter *w, const struct txn *t)
{
    clave__jput_int(w, (int32_t)t->count);
    for (size_t i = 0; i < t->count; i++) {
        clave__jput_int(w, type_in_multi(&t->changes[i]));
        size_t at = clave__buf_len(w->b);
        clave__jput_int(w, 0);
        put_change(w, &t->changes[i]);
        clave__jput_int_at(w, at, (int32_t)(clave__buf_len(w->b) - at - 4));
    }
}

static void put_paths(struct jwriter *w, const struct txn *t)
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
        put_paths(w, t);
        break;
    case OP_ERROR:
        clave__jput_int(w, t->err);
        break;
    case OP_MULTI:
        put_multi(w, t);
        break;
    default:
        put_change(w, &t->changes[0]);
        break;
    }
}

/* ---- replaying ------------------------------------------------------------------------------- */

/* Makes a change that will not be undone. */
static clave_err make_for_good(struct txn *t)
{
    clave_err err = clave__txn_make(t);
    clave__txn_end(t);
    return err;
}

/* A snapshot taken while writes continued may contain children of a node that the log has
 * yet to delete; the log creates them again later. */
static void drop_children(struct txn *t, struct node *top)
{
    while (!list_empty(&top->children)) {
        struct node *n = LIST_ENTRY(top->children.next, struct node, sibling);
        while (!list_empty(&n->children))
            n = LIST_ENTRY(n->children.next, struct node, sibling);
        clave__tree_unlink(t->tree, n);
        clave__tree_free_node(t->tree, n);
    }
}

static clave_err replay_delete(struct txn *t, int32_t type, struct jbytes path)
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
    drop_children(t, n);
    struct change *c = clave__txn_add(t, type, path);
    if (!c)
        return CLAVE_ENOMEM;
    c->node = n;
    return make_for_good(t);
}

static void txn_record_set_acl(struct txn *t, struct node *n, struct acl *acl)
{
    struct acl *old = n->acl;
    n->acl = clave__acl_ref(acl);
    clave__acls_drop(&t->tree->acls, old);
}

/* The snapshot already has the node. It may lack its list: Apache writes the lists first,
 * so a node created meanwhile may refer to a missing one. */
static void create_again(struct txn *t, struct node *n, const struct change *c)
{
    struct node *parent = n->parent;
    txn_record_set_acl(t, n, c->acl);
    if (c->version > parent->stat.cversion)
        parent->stat.cversion = c->version;
    if (t->head.zxid > parent->stat.pzxid)
        parent->stat.pzxid = t->head.zxid;
    clave__tree_changed(t->tree, parent);
}

static clave_err replay_create(struct txn *t, struct change *c)
{
    if (c->path.n <= 1)
        return CLAVE_EPROTO;
    c->parent = clave__tree_find_parent(t->tree, c->path);
    c->node = clave__tree_find(t->tree, c->path);
    if (c->node)
        create_again(t, c->node, c);
    if (c->node || !c->parent)
        return CLAVE_OK;
    if (c->version == -1 && c->parent->stat.cversion < INT32_MAX) /* before ZooKeeper 3.3 */
        c->version = c->parent->stat.cversion + 1;
    return clave__txn_make(t);
}

static struct acl *get_acl(struct txn *t, struct jreader *r)
{
    struct jvec entries = clave__wire_get_acls(r);
    if (entries.count < 0)
        return clave__acl_ref(t->tree->acls.open);
    return clave__acls_take(&t->tree->acls, entries, ACL_NEW_KEY);
}

static clave_err replay_new_node(struct txn *t, int32_t type, struct jreader *r)
{
    struct jbytes path = clave__jget_bytes(r);
    struct change *c = clave__txn_add(t, type, path);
    if (!c)
        return CLAVE_ENOMEM;
    c->data = clave__jget_bytes(r);
    c->acl = get_acl(t, r);
    bool listless = !c->acl;
    if (type == OP_CREATE_CONTAINER)
        c->owner = OWNER_CONTAINER;
    else if (type != OP_CREATE_TTL && clave__jget_bool(r))
        c->owner = t->head.client;
    c->version = r->n >= 4 ? clave__jget_int(r) : -1;
    if (type == OP_CREATE_TTL)
        c->owner = clave__owner_of_ttl(clave__jget_long(r));
    clave_err err = r->bad ? CLAVE_EPROTO : listless ? CLAVE_ENOMEM : replay_create(t, c);
    clave__txn_end(t);
    return err;
}

static clave_err replay_set(struct txn *t, int32_t type, struct jreader *r)
{
    struct jbytes path = clave__jget_bytes(r);
    struct change *c = clave__txn_add(t, type, path);
    if (!c)
        return CLAVE_ENOMEM;
    if (type == OP_SET_ACL)
        c->acl = get_acl(t, r);
    else
        c->data = clave__jget_bytes(r);
    bool listless = type == OP_SET_ACL && !c->acl;
    c->version = clave__jget_int(r);
    c->node = clave__tree_find(t->tree, path);
    clave_err err = r->bad     ? CLAVE_EPROTO
                    : listless ? CLAVE_ENOMEM
                    : c->node  ? clave__txn_make(t)
                               : CLAVE_OK;
    clave__txn_end(t);
    return err;
}

static clave_err replay_change(struct txn *t, int32_t type, struct jreader *r)
{
    switch (type) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        return replay_new_node(t, type, r);
    case OP_DELETE:
    case OP_DELETE_CONTAINER: {
        struct jbytes path = clave__jget_bytes(r);
        return r->bad ? CLAVE_EPROTO : replay_delete(t, type, path);
    }
    case OP_SET_DATA:
    case OP_RECONFIG: /* sets the data of /zookeeper/config */
        return replay_set(t, OP_SET_DATA, r);
    case OP_SET_ACL:
        return replay_set(t, type, r);
    case OP_CHECK:
        clave__jget_bytes(r);
        clave__jget_int(r);
        return r->bad ? CLAVE_EPROTO : CLAVE_OK;
    default:
        return CLAVE_EPROTO;
    }
}

/* A failed multi is on the disk too, with an error among its records: it changed nothing. */
static bool multi_failed(struct jreader r, int32_t count)
{
    bool failed = false;
    for (int32_t i = 0; i < count && !r.bad; i++) {
        failed = clave__jget_int(&r) == OP_ERROR || failed;
        clave__jget_bytes(&r);
    }
    return failed;
}

static clave_err replay_multi(struct txn *t, struct jreader *r)
{
    int32_t count = clave__jget_count(r, 8);
    bool failed = multi_failed(*r, count);
    clave_err err = CLAVE_OK;
    for (int32_t i = 0; i < count && err == CLAVE_OK; i++) {
        int32_t type = clave__jget_int(r);
        struct jbytes record = clave__jget_bytes(r);
        struct jreader sub = clave__jreader(record.p, record.n > 0 ? (size_t)record.n : 0);
        if (r->bad)
            return CLAVE_EPROTO;
        if (!failed)
            err = replay_change(t, type, &sub);
    }
    return r->bad ? CLAVE_EPROTO : err;
}

/* The list of paths was added in 3.6; anything else the session owns goes in any case. */
static clave_err replay_close(struct txn *t, struct jreader *r)
{
    struct jreader ahead = *r;
    struct jvec paths = clave__jget_strings(&ahead);
    struct jreader each = clave__jvec_reader(paths);
    clave_err err = CLAVE_OK;
    if (!ahead.bad)
        *r = ahead;
    for (int32_t i = 0; i < paths.count && err == CLAVE_OK; i++)
        err = replay_delete(t, OP_DELETE, clave__jget_bytes(&each));
    for (struct owner *o; err == CLAVE_OK;) {
        o = clave__tree_find_owner(t->tree, t->head.client);
        if (!o || list_empty(&o->nodes))
            break;
        struct node *n = &LIST_ENTRY(o->nodes.next, struct owned_node, link)->node;
        err = replay_delete(t, OP_DELETE, clave__node_path_bytes(n));
    }
    return err;
}

clave_err clave__txn_replay(struct txn *t, struct jreader *r)
{
    struct txn_head head;
    head.client = clave__jget_long(r);
    head.cxid = clave__jget_int(r);
    head.zxid = clave__jget_long(r);
    head.time = clave__jget_long(r);
    head.type = clave__jget_int(r);
    if (r->bad)
        return CLAVE_EPROTO;
    clave__txn_begin(t, &head);
    switch (head.type) {
    case OP_CREATE_SESSION:
        t->timeout_ms = clave__jget_int(r);
        return r->bad ? CLAVE_EPROTO : CLAVE_OK;
    case OP_CLOSE_SESSION:
        return replay_close(t, r);
    case OP_ERROR:
        t->err = clave__jget_int(r);
        return r->bad ? CLAVE_EPROTO : CLAVE_OK;
    case OP_MULTI:
        return replay_multi(t, r);
    default:
        return replay_change(t, head.type, r);
    }
}
