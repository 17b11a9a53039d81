/* txn.c - applies the changes of a transaction to the tree and undoes them; see txn.h. Requests
 * (request.c), container_ttl.c and recovery (txn_record.c) all change the tree through
 * this file. */
#include "server/store/txn.h"

#include <assert.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

/* The capacity that is kept between transactions. */
enum { KEEP_CHANGES = 64 };

static bool txn_is_create(int32_t type)
{
    return type == OP_CREATE || type == OP_CREATE2 || type == OP_CREATE_CONTAINER ||
           type == OP_CREATE_TTL;
}

static bool txn_is_delete(int32_t type)
{
    return type == OP_DELETE || type == OP_DELETE_CONTAINER;
}

/* True if change i is the last to have affected its node, in the order in which changes were made
 * or, in an undo, undone. */
static bool txn_is_last_of_node(const struct txn *t, size_t i)
{
    const struct change *c = &t->changes[i];
    for (size_t k = 0; k < t->count; k++) {
        bool later = c->state == CHANGE_UNDONE ? k < i : k > i;
        if (later && t->changes[k].node == c->node && t->changes[k].state == c->state)
            return false;
    }
    return true;
}

/* Checks that each node is in the tree exactly if the last change to affect it left it there. */
static void txn_check(const struct txn *t)
{
    CHECK(t->count <= t->cap && (t->cap == 1) == (t->changes == &t->one));
    if (!clave__check_is_due(t->count))
        return;
    for (size_t i = 0; i < t->count; i++) {
        const struct change *c = &t->changes[i];
        if (c->state == CHANGE_NONE || !txn_is_last_of_node(t, i))
            continue;
        bool gone = c->state == CHANGE_DONE ? txn_is_delete(c->type) : txn_is_create(c->type);
        CHECK(gone == (!c->node->parent && c->node != t->tree->root));
    }
}

void clave__txn_init(struct txn *t, struct tree *tree)
{
    *t = (struct txn){.tree = tree};
    t->changes = &t->one;
    t->cap = 1;
}

void clave__txn_fini(struct txn *t)
{
    clave__txn_end(t);
    if (t->changes != &t->one)
        clave__mem_free(t->tree->mem, t->changes);
    t->changes = &t->one;
    t->cap = 1;
}

void clave__txn_begin(struct txn *t, const struct txn_head *head)
{
    assert(t->count == 0); /* the previous transaction has ended */
    t->head = *head;
    t->timeout_ms = 0;
    t->err = 0;
}

bool clave__txn_reserve(struct txn *t, size_t cap)
{
    if (cap <= t->cap)
        return true;
    struct change *grown = clave__mem_alloc(t->tree->mem, cap * sizeof *grown);
    if (!grown)
        return false;
    memcpy(grown, t->changes, t->count * sizeof *grown);
    if (t->changes != &t->one)
        clave__mem_free(t->tree->mem, t->changes);
    t->changes = grown;
    t->cap = cap;
    return true;
}

struct change *clave__txn_add(struct txn *t, int32_t type, struct jbytes path)
{
    if (t->count == t->cap && !clave__txn_reserve(t, t->cap < 8 ? 8 : t->cap * 2))
        return NULL;
    struct change *c = &t->changes[t->count++];
    *c = (struct change){.type = type, .path = path};
    return c;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Raises the parent's cversion and pzxid after a child was created or deleted. Neither goes down,
 * since a snapshot may be ahead of the transaction that is replayed. When a transaction deletes
 * many nodes below one parent, only the first of them changes it. */
static void txn_raise_parent(struct txn *t, struct node *parent, int32_t cversion)
{
    if (cversion <= parent->stat.cversion && t->head.zxid <= parent->stat.pzxid)
        return;
    clave__tree_before_change(t->tree, parent);
    if (cversion > parent->stat.cversion)
        parent->stat.cversion = cversion;
    if (t->head.zxid > parent->stat.pzxid)
        parent->stat.pzxid = t->head.zxid;
    clave__tree_changed(t->tree, parent);
}

static clave_err txn_make_create(struct txn *t, struct change *c)
{
    assert(c->parent && !c->node);
    struct node *parent = c->parent;
    struct node_spec spec = {
        .path = c->path,
        .data = c->data,
        .acl = c->acl ? c->acl : t->tree->acls.open,
        .stat = {.czxid = t->head.zxid,
                 .mzxid = t->head.zxid,
                 .pzxid = t->head.zxid,
                 .ctime = t->head.time,
                 .mtime = t->head.time,
                 .owner = c->owner},
    };
    struct node *n = clave__tree_new_node(t->tree, &spec);
    if (!n)
        return CLAVE_ENOMEM;
    c->before = parent->stat;
    c->node = n;
    clave__tree_link(t->tree, parent, n);
    txn_raise_parent(t, parent, c->version);
    return CLAVE_OK;
}

static void txn_make_delete(struct txn *t, struct change *c)
{
    assert(c->node && c->node != t->tree->root);
    struct node *parent = c->parent = c->node->parent;
    c->before = parent->stat;
    clave__tree_unlink(t->tree, c->node);
    txn_raise_parent(t, parent, parent->stat.cversion);
}

static clave_err txn_make_set_data(struct txn *t, struct change *c)
{
    assert(c->node && !c->other_data);
    struct node *n = c->node;
    clave_err err = clave__tree_copy_data(t->tree, c->data, &c->other_data);
    if (err != CLAVE_OK)
        return err;
    c->before = n->stat;
    c->other_len = c->data.n;
    clave__tree_swap_data(t->tree, n, &c->other_data, &c->other_len);
    n->stat.version = c->version;
    n->stat.mzxid = t->head.zxid;
    n->stat.mtime = t->head.time;
    clave__tree_changed(t->tree, n);
    return CLAVE_OK;
}

static void txn_make_set_acl(struct txn *t, struct change *c)
{
    assert(c->node && c->acl && !c->other_acl);
    struct node *n = c->node;
    clave__tree_before_change(t->tree, n);
    c->before = n->stat;
    c->other_acl = n->acl;
    n->acl = clave__acl_ref(c->acl);
    n->stat.aversion = c->version;
    t->tree->acl_zxid = t->head.zxid;
    clave__tree_changed(t->tree, n);
}

clave_err clave__txn_make(struct txn *t)
{
    struct change *c = &t->changes[t->count - 1];
    assert(c->state == CHANGE_NONE);
    txn_check(t);
    clave_err err = CLAVE_OK;
    switch (c->type) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        err = txn_make_create(t, c);
        break;
    case OP_DELETE:
    case OP_DELETE_CONTAINER:
        txn_make_delete(t, c);
        break;
    case OP_SET_DATA:
        err = txn_make_set_data(t, c);
        break;
    case OP_SET_ACL:
        txn_make_set_acl(t, c);
        break;
    default: /* check and error change nothing */
        return CLAVE_OK;
    }
    if (err == CLAVE_OK)
        c->state = CHANGE_DONE;
    txn_check(t);
    return err;
}

/* ---- undoing --------------------------------------------------------------------------------- */

/* Restores everything except the number of children, which linking takes care of. */
static void txn_restore_stat(struct txn *t, struct node *n, const struct node_stat *before)
{
    int32_t num_children = n->stat.num_children;
    n->stat = *before;
    n->stat.num_children = num_children;
    clave__tree_changed(t->tree, n);
}

static void txn_undo(struct txn *t, struct change *c)
{
    switch (c->type) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        clave__tree_unlink(t->tree, c->node);
        txn_restore_stat(t, c->parent, &c->before);
        break;
    case OP_DELETE:
    case OP_DELETE_CONTAINER:
        clave__tree_link(t->tree, c->parent, c->node);
        txn_restore_stat(t, c->parent, &c->before);
        break;
    case OP_SET_DATA:
        clave__tree_swap_data(t->tree, c->node, &c->other_data, &c->other_len);
        txn_restore_stat(t, c->node, &c->before);
        break;
    default: { /* setACL */
        assert(c->type == OP_SET_ACL);
        struct acl *own = c->node->acl;
        c->node->acl = c->other_acl;
        c->other_acl = own;
        txn_restore_stat(t, c->node, &c->before);
    }
    }
    c->state = CHANGE_UNDONE;
}

void clave__txn_undo(struct txn *t)
{
    for (size_t i = t->count; i-- > 0;)
        if (t->changes[i].state == CHANGE_DONE)
            txn_undo(t, &t->changes[i]);
    txn_check(t);
}

/* Drops what a change holds. A node that is no longer in the tree is freed by the newest change
 * that refers to it. */
static void txn_end_change(struct txn *t, struct change *c)
{
    if (c->other_data)
        clave__tree_free_data(t->tree, c->node, c->other_data);
    clave__acls_drop(&t->tree->acls, c->other_acl);
    clave__acls_drop(&t->tree->acls, c->acl);
    if ((txn_is_delete(c->type) && c->state == CHANGE_DONE) ||
        (txn_is_create(c->type) && c->state == CHANGE_UNDONE))
        clave__tree_free_node(t->tree, c->node);
}

void clave__txn_end(struct txn *t)
{
    txn_check(t);
    /* The old data of a setData may lie inside the allocation of a node that a later change
     * deletes. Going through the changes in the order in which they were made, each node is freed
     * last. */
    for (size_t i = 0; i < t->count; i++)
        if (t->changes[i].state != CHANGE_UNDONE)
            txn_end_change(t, &t->changes[i]);
    for (size_t i = t->count; i-- > 0;)
        if (t->changes[i].state == CHANGE_UNDONE)
            txn_end_change(t, &t->changes[i]);
    t->count = 0;
    if (t->cap > KEEP_CHANGES) {
        clave__mem_free(t->tree->mem, t->changes);
        t->changes = &t->one;
        t->cap = 1;
    }
}
