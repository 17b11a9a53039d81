/* write.c - requests that change something: the checks of each op in ZooKeeper's order (create.c
 * has those of creates), then one transaction, its events and the reply. The table in request.c
 * refers to them, container_ttl.c and end_session.c use its transactions. As in ZooKeeper, a
 * request that fails takes a zxid and is logged too. */
#include "server/request/write.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "server/request/audit.h"
#include "server/request/quota.h"

/* ---- transactions ---------------------------------------------------------------------------- */

void clave__write_begin(struct server *s, int64_t client, int32_t cxid, int32_t type)
{
    struct txn_head head = {client, cxid, s->last_zxid + 1, s->wall, type};
    clave__txn_begin(&s->txn, &head);
}

struct event_delivery {
    int64_t zxid;
    const struct acl *acl;
};

/* An event reveals that a node exists, so only clients that may read the node get it. */
static void write_send_event(void *arg, struct watcher *w, const struct watch_event *ev)
{
    const struct event_delivery *t = arg;
    struct server_conn *c = LIST_ENTRY(w, struct server_conn, watcher);
    if (clave__conn_is_open(c) && clave__acl_allows(t->acl, &c->who, PERM_READ))
        clave__conn_send_event(c, t->zxid, t->zxid, ev);
}

static void write_fire(struct server *s, int32_t type, const struct node *n)
{
    struct event_delivery t = {s->txn.head.zxid, n->acl};
    struct watch_event ev = {type, clave__node_path_bytes(n), ++s->event_number};
    if (ev.path.n == 0)
        ev.path = clave__jbytes("/");
    clave__watch_fire(&s->watches, &ev, write_send_event, &t);
}

/* setACL and check fire no events. */
static void write_fire_change(struct server *s, const struct change *c)
{
    switch (clave__opcode(c->type)->effect) {
    case EFFECT_CREATE:
        write_fire(s, EVENT_CREATED, c->node);
        write_fire(s, EVENT_CHILDREN_CHANGED, c->parent);
        break;
    case EFFECT_DELETE:
        write_fire(s, EVENT_DELETED, c->node);
        write_fire(s, EVENT_CHILDREN_CHANGED, c->parent);
        break;
    case EFFECT_SET_DATA:
        write_fire(s, EVENT_DATA_CHANGED, c->node);
        break;
    }
}

/* The server itself ends a session that expires: no request of a client has its number. */
static enum server_gone write_how_gone(const struct txn_head *head, const struct node *n)
{
    if (head->type == OP_CLOSE_SESSION)
        return head->cxid == 0 ? GONE_SESSION_EXPIRED : GONE_SESSION_CLOSED;
    return n->stat.owner == head->client ? GONE_DELETED : GONE_DELETED_BY_OTHER;
}

static void write_tell_gone(const struct server *s)
{
    const struct txn *t = &s->txn;
    for (size_t i = 0; i < t->count; i++) {
        const struct change *c = &t->changes[i];
        if (c->state == CHANGE_DONE && clave__opcode(c->type)->effect == EFFECT_DELETE &&
            clave__owner_kind(c->node->stat.owner) == NODE_EPHEMERAL)
            s->driver.node_gone(s->driver.node_gone_arg, c->node->stat.czxid,
                                write_how_gone(&t->head, c->node));
    }
}

clave_err clave__write_commit(struct server *s)
{
    s->turn.looks += s->txn.count * LOOKS_A_CHANGE;
    clave_err err = clave__txn_log_append(s);
    if (err != CLAVE_OK) {
        clave__txn_undo(&s->txn);
        clave__txn_end(&s->txn);
        return err;
    }
    clave__quota_note(s);
    for (size_t i = 0; i < s->txn.count && s->watches.count > 0; i++)
        if (s->txn.changes[i].state == CHANGE_DONE)
            write_fire_change(s, &s->txn.changes[i]);
    if (s->driver.node_gone)
        write_tell_gone(s);
    return CLAVE_OK;
}

clave_err clave__write_fail(struct server *s, clave_err why)
{
    assert(why != CLAVE_OK);
    s->turn.looks += s->txn.count * LOOKS_A_CHANGE;
    clave__txn_undo(&s->txn);
    clave__txn_end(&s->txn);
    if (why == CLAVE_ENOMEM)
        return why;
    s->txn.head.type = OP_ERROR;
    s->txn.err = why;
    return clave__txn_log_append(s);
}

/* ---- checks ---------------------------------------------------------------------------------- */

clave_err clave__write_check_shape(struct jbytes path)
{
    if (path.n < 0)
        return CLAVE_EMARSHALLING;
    size_t n = (size_t)path.n;
    if (n == 0 || memchr(path.p, '\0', n) || !memchr(path.p, '/', n))
        return CLAVE_EBADARGS;
    return CLAVE_OK;
}

/* A null path is a bad argument here, but a malformed request in clave__write_check_shape: Apache
 * checks the two in a different order. */
clave_err clave__write_check_path(struct jbytes path)
{
    if (path.n < 0)
        return CLAVE_EBADARGS;
    return clave__path_fault(path.p, (size_t)path.n, false) ? CLAVE_EBADARGS : CLAVE_OK;
}

static bool write_is_special(struct jbytes path)
{
    static const char *const special[] = {"/", "/zookeeper", "/zookeeper/quota",
                                          "/zookeeper/config"};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (clave__jbytes_eq(path, clave__jbytes(special[i])))
            return true;
    return false;
}

clave_err clave__write_check_access(const struct node *n, const struct server_conn *c, int32_t perm)
{
    return clave__acl_allows(n->acl, &c->who, perm) ? CLAVE_OK : CLAVE_ENOAUTH;
}

/* -1 matches any version; any other must be the node's. */
static clave_err write_check_version(int32_t expected, int32_t version)
{
    return expected == -1 || expected == version ? CLAVE_OK : CLAVE_EBADVERSION;
}

static int32_t write_next_version(int32_t version)
{
    return (int32_t)((uint32_t)version + 1);
}

clave_err clave__write_add_change(struct server *s, int32_t type, struct jbytes path,
                                  struct node *n, struct change **out)
{
    struct change *c = clave__txn_add(&s->txn, type, path);
    if (!c)
        return CLAVE_ENOMEM;
    c->node = n;
    *out = c;
    return CLAVE_OK;
}

/* ---- all but create (create.c) --------------------------------------------------------------- */

static clave_err write_find_child(const struct server *s, const struct server_conn *c,
                                  struct jbytes path, struct node **out)
{
    clave_err err = clave__write_check_shape(path);
    if (err != CLAVE_OK)
        return err;
    if (write_is_special(path))
        return CLAVE_EBADARGS;
    const struct node *parent = clave__tree_find_parent(&s->tree, path);
    if (!parent)
        return CLAVE_ENONODE;
    err = clave__write_check_access(parent, c, PERM_DELETE);
    if (err != CLAVE_OK)
        return err;
    *out = clave__tree_find(&s->tree, path);
    return *out ? CLAVE_OK : CLAVE_ENONODE;
}

clave_err clave__write_delete(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_path_version *m = &body->check;
    struct node *n;
    struct change *change;
    clave_err err = write_find_child(s, c, m->path, &n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.version);
    if (err == CLAVE_OK && n->stat.num_children > 0)
        err = CLAVE_ENOTEMPTY;
    if (err == CLAVE_OK)
        err = clave__write_add_change(s, op, m->path, n, &change);
    return err == CLAVE_OK ? clave__txn_make(&s->txn) : err;
}

/* deleteContainer is meant for the server itself. A client that sends it may do no more than with
 * delete, and may not delete ephemeral nodes. */
clave_err clave__write_delete_container(struct server_conn *c, int32_t op,
                                        const union wire_body *body)
{
    struct server *s = c->s;
    struct node *n;
    struct change *change;
    clave_err err = write_find_child(s, c, body->path, &n);
    if (err == CLAVE_OK && n->stat.num_children > 0)
        err = CLAVE_ENOTEMPTY;
    if (err == CLAVE_OK && clave__owner_kind(n->stat.owner) == NODE_EPHEMERAL)
        err = CLAVE_EBADVERSION;
    if (err == CLAVE_OK)
        err = clave__write_add_change(s, op, body->path, n, &change);
    return err == CLAVE_OK ? clave__txn_make(&s->txn) : err;
}

/* Finds the node, if it exists and the connection has this permission. */
static clave_err write_find_node(const struct server *s, const struct server_conn *c,
                                 struct jbytes path, int32_t perm, struct node **out)
{
    *out = clave__tree_find(&s->tree, path);
    return *out ? clave__write_check_access(*out, c, perm) : CLAVE_ENONODE;
}

clave_err clave__write_set_data(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_set_data *m = &body->set;
    struct node *n;
    struct change *change;
    clave_err err = clave__write_check_path(m->path);
    if (err == CLAVE_OK)
        err = write_find_node(s, c, m->path, PERM_WRITE, &n);
    if (err == CLAVE_OK && s->limits.enforce_quota)
        err = clave__quota_check(s, m->path, 0, n->data_len, m->data.n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.version);
    if (err == CLAVE_OK)
        err = clave__write_add_change(s, op, m->path, n, &change);
    if (err != CLAVE_OK)
        return err;
    change->data = m->data;
    change->version = write_next_version(n->stat.version);
    return clave__txn_make(&s->txn);
}

clave_err clave__write_set_acl(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_set_acl *m = &body->set_acl;
    struct node *n;
    struct jvec acl;
    struct change *change;
    clave_err err = clave__write_check_path(m->path);
    if (err == CLAVE_OK)
        err = clave__acl_fix_up(m->acl, &c->who, &s->scratch.request, &acl);
    if (err == CLAVE_OK)
        err = write_find_node(s, c, m->path, PERM_ADMIN, &n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.aversion);
    if (err == CLAVE_OK)
        err = clave__write_add_change(s, op, m->path, n, &change);
    if (err != CLAVE_OK)
        return err;
    change->version = write_next_version(n->stat.aversion);
    change->acl = clave__acls_take(&s->tree.acls, acl, ACL_NEW_KEY);
    return change->acl ? clave__txn_make(&s->txn) : CLAVE_ENOMEM;
}

clave_err clave__write_check(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_path_version *m = &body->check;
    struct node *n;
    struct change *change;
    clave_err err = clave__write_check_path(m->path);
    if (err == CLAVE_OK)
        err = write_find_node(s, c, m->path, PERM_READ, &n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.version);
    if (err == CLAVE_OK)
        err = clave__write_add_change(s, op, m->path, n, &change);
    if (err == CLAVE_OK)
        change->version = write_next_version(n->stat.version); /* as in Apache's log */
    return err;
}

/* ---- a request ------------------------------------------------------------------------------- */

void clave__write_put_reply(struct jwriter *w, int32_t op, const struct change *c)
{
    unsigned parts = clave__opcode(op)->reply;
    assert(!(parts & REPLY_STAT) || c->state == CHANGE_DONE); /* else it has no node */
    if (parts & REPLY_PATH)
        clave__jput_bytes(w, c->path);
    if (parts & REPLY_STAT)
        clave__node_put_stat(w, c->node);
}

void clave__conn_write(struct server_conn *c, const struct wire_request *q,
                       const struct request_op *op)
{
    struct server *s = c->s;
    struct txn *t = &s->txn;
    clave__write_begin(s, c->session->id, q->xid, q->op);
    clave_err err = q->malformed ? CLAVE_EMARSHALLING : op->act(c, q->op, &q->body);
    if (err == CLAVE_OK)
        t->head.type = t->changes[0].type; /* it is logged as the change that it makes */
    clave_err logged = err == CLAVE_OK ? clave__write_commit(s) : clave__write_fail(s, err);
    if (logged != CLAVE_OK) {
        clave__conn_cut(c);
        return;
    }
    if (!q->malformed)
        clave__audit_write(c, q->op, &q->body, err == CLAVE_OK ? &t->changes[0] : NULL);
    struct message m = clave__message_begin(c, s->last_zxid);
    clave__message_header(&m, q->xid, m.zxid, err);
    if (err == CLAVE_OK)
        clave__write_put_reply(&m.w, q->op, &t->changes[0]);
    clave__message_end(&m, true);
    clave__txn_end(t);
}
