/* txn_redo.c - makes the changes of recorded transactions; see txn_redo.h. The table of
 * txn_record.c refers to those of each kind. Invariant: replaying accepts a tree that is ahead of
 * the log, because Apache's snapshots are fuzzy: a change may already be there. */
#include "server/store/txn_redo.h"

#include <assert.h>

/* Makes a change that will not be undone. */
static clave_err txn_make_for_good(struct txn *t)
{
    assert(t->count == 1);
    clave_err err = clave__txn_make(t);
    clave__txn_end(t);
    return err;
}

/* A snapshot taken while writes continued may contain children of a node that the log has
 * yet to delete; the log creates them again later. */
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

clave_err clave__txn_redo_delete(struct txn *t, const struct change_record *r)
{
    return txn_redo_delete_of(t, r->kind->type, r->path);
}

static void txn_redo_set_acl(struct txn *t, struct node *n, struct acl *acl)
{
    struct acl *old = n->acl;
    n->acl = clave__acl_ref(acl);
    clave__acls_drop(&t->tree->acls, old);
}

/* The snapshot already has the node. It may lack its list: Apache writes the lists first,
 * so a node created meanwhile may refer to a missing one. */
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
    if (c->version == -1 && c->parent->stat.cversion < INT32_MAX) /* before ZooKeeper 3.3 */
        c->version = c->parent->stat.cversion + 1;
    return clave__txn_make(t);
}

clave_err clave__txn_redo_create(struct txn *t, const struct change_record *r)
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

/* A reconfig sets the data of /zookeeper/config. */
clave_err clave__txn_redo_set(struct txn *t, const struct change_record *r)
{
    bool sets_acl = r->kind->type == OP_SET_ACL;
    struct change *c = clave__txn_add(t, sets_acl ? OP_SET_ACL : OP_SET_DATA, r->path);
    if (!c)
        return CLAVE_ENOMEM;
    c->data = r->data;
    c->acl = sets_acl ? txn_redo_acl(t, r->acl) : NULL;
    c->version = r->version;
    c->node = clave__tree_find(t->tree, r->path);
    clave_err err = sets_acl && !c->acl ? CLAVE_ENOMEM : c->node ? clave__txn_make(t) : CLAVE_OK;
    clave__txn_end(t);
    return err;
}

/* What the session owns that was not in the list. */
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
