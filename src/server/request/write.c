/* write.c - requests that change something: the checks of each operation in ZooKeeper's order, then
 * one transaction, its watch events and the reply. The table in request.c dispatches to them; a
 * multi, also there, makes several in one transaction. container_ttl.c and session.c use the same
 * functions for changes that the server makes on its own.
 *
 * A write is checked against the tree as it is, applied at once in s->txn (store/txn.h) and logged;
 * only then do watches fire. As in ZooKeeper, a request that fails also takes a zxid and is logged.
 *
 * What must stay true: a change that could not be logged is undone before anything else happens, so
 * the tree, the log and its digests agree. A client whose request fails for lack of memory is
 * disconnected, never told something untrue. */
#include "server/request/request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "server/connection/conn.h"

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

/* Sends an event to a watcher. It would reveal that the node exists, so it goes only to clients
 * that may read the node. */
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

/* How an ephemeral node came to be removed. Cxid 0 marks a session that the server itself ended
 * because it expired: requests of clients have other numbers. */
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

/* Checks whether the path looks like a path at all (EMARSHALLING, EBADARGS). Apache's order is this
 * check, then whether it is a valid path (EBADARGS), then permissions (ENOAUTH). */
static clave_err write_check_shape(struct jbytes path)
{
    if (path.n < 0)
        return CLAVE_EMARSHALLING;
    size_t n = (size_t)path.n;
    if (n == 0 || memchr(path.p, '\0', n) || !memchr(path.p, '/', n))
        return CLAVE_EBADARGS;
    return CLAVE_OK;
}

/* Checks that the path is valid. Here a null path is a bad argument, while write_check_shape takes
 * it for a malformed request: operations of Apache make the two checks in different orders. */
static clave_err write_check_path(struct jbytes path)
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

static clave_err write_check_access(const struct node *n, const struct server_conn *c, int32_t perm)
{
    return clave__acl_allows(n->acl, &c->who, perm) ? CLAVE_OK : CLAVE_ENOAUTH;
}

/* Version -1 matches every node; any other must equal the node's. */
static clave_err write_check_version(int32_t expected, int32_t version)
{
    return expected == -1 || expected == version ? CLAVE_OK : CLAVE_EBADVERSION;
}

static int32_t write_next_version(int32_t version)
{
    return (int32_t)((uint32_t)version + 1);
}

/* Adds a change of node n to s->txn without making it yet. ENOMEM. */
static clave_err write_add_change(struct server *s, int32_t type, struct jbytes path,
                                  struct node *n, struct change **out)
{
    struct change *c = clave__txn_add(&s->txn, type, path);
    if (!c)
        return CLAVE_ENOMEM;
    c->node = n;
    *out = c;
    return CLAVE_OK;
}

/* ---- create -----------------------------------------------------------------------------------
 */

/* With this many sequence numbers left below a parent, the log says so, once. */
enum { FEW_NUMBERS = 10000000 };

static bool create_is_sequential(int32_t mode)
{
    return mode == MODE_PERSISTENT_SEQUENTIAL || mode == MODE_EPHEMERAL_SEQUENTIAL ||
           mode == MODE_PERSISTENT_SEQUENTIAL_TTL;
}

static bool create_has_ttl(int32_t mode)
{
    return mode == MODE_PERSISTENT_TTL || mode == MODE_PERSISTENT_SEQUENTIAL_TTL;
}

/* The opcode and the mode must agree on whether the node has a TTL. */
static clave_err create_check_mode(const struct server *s, int32_t op, const struct wire_create *m)
{
    if (m->flags < MODE_PERSISTENT || m->flags > MODE_PERSISTENT_SEQUENTIAL_TTL)
        return CLAVE_EBADARGS;
    if (create_has_ttl(m->flags) && !s->limits.extended_types)
        return CLAVE_EUNIMPLEMENTED;
    if (create_has_ttl(m->flags) != (op == OP_CREATE_TTL))
        return CLAVE_EBADARGS;
    bool in_range = m->ttl_ms > 0 && m->ttl_ms <= OWNER_MOST_TTL_MS;
    return op == OP_CREATE_TTL && !in_range ? CLAVE_EBADARGS : CLAVE_OK;
}

/* Only the opcode createContainer makes a container; with any other, the mode CONTAINER makes a
 * plain node. */
static int64_t create_owner_of(const struct server_conn *c, int32_t op, const struct wire_create *m)
{
    int32_t mode = m->flags;
    if (op == OP_CREATE_CONTAINER)
        return OWNER_CONTAINER;
    if (op == OP_CREATE_TTL)
        return clave__owner_of_ttl(m->ttl_ms);
    return mode == MODE_EPHEMERAL || mode == MODE_EPHEMERAL_SEQUENTIAL ? c->session->id : 0;
}

/* True if the parent has a sequence number left. When Apache runs out it hands out the last number
 * again and again, and two nodes with the same number are two holders of one lock. */
static bool create_has_number(struct server_conn *c, const struct node *parent)
{
    if (parent->stat.cversion == INT32_MAX - FEW_NUMBERS)
        clave__log(&c->s->log, CLAVE_LOG_WARN,
                   "%d sequence numbers are left below %.*s: continue below another node",
                   FEW_NUMBERS, (int)parent->path_len, clave__node_path(parent));
    return clave__client_limit_allows(c, LIMIT_SEQUENCE,
                                      (size_t)(uint32_t)parent->stat.cversion + 1);
}

/* Appends the sequence number: the parent's stored cversion, which counts how many children were
 * ever created. */
static clave_err create_append_sequence(struct server *s, const struct node *parent,
                                        struct jbytes *path)
{
    char digits[16];
    int n = snprintf(digits, sizeof digits, "%010d", (int)parent->stat.cversion);
    clave__buf_clear(&s->scratch.name);
    clave_err err = clave__buf_append(&s->scratch.name, path->p, (size_t)path->n);
    if (err == CLAVE_OK)
        err = clave__buf_append(&s->scratch.name, digits, (size_t)n);
    if (err != CLAVE_OK)
        return CLAVE_ENOMEM;
    *path = clave__jbytes_n(clave__buf_bytes(&s->scratch.name), clave__buf_len(&s->scratch.name));
    return CLAVE_OK;
}

/* Checks the lengths of name and path, and the depth. A path with fewer bytes than the depth allows
 * nodes cannot be too deep, so it is not counted. */
static clave_err create_check_size(struct server_conn *c, struct jbytes path)
{
    const struct limit_state *limits = c->s->refused.limits;
    size_t n = (size_t)path.n, parent = clave__path_parent_len(path.p, n), depth = 0;
    if (!clave__client_limit_allows(c, LIMIT_NAME, n - parent - (parent > 1 ? 1 : 0)))
        return CLAVE_EBADARGS;
    for (size_t i = 0; n > limits[LIMIT_DEPTH].most && i < n; i++)
        depth += path.p[i] == '/';
    bool fits = clave__client_limit_allows(c, LIMIT_PATH, n) &&
                clave__client_limit_allows(c, LIMIT_DEPTH, depth);
    return fits ? CLAVE_OK : CLAVE_EBADARGS;
}

/* Checks whether a node may be created at this path. */
static clave_err create_check_place(struct server_conn *c, const struct node *parent,
                                    struct jbytes path)
{
    const struct server *s = c->s;
    clave_err err = write_check_path(path);
    if (err == CLAVE_OK)
        err = create_check_size(c, path);
    if (err != CLAVE_OK)
        return err;
    if (clave__tree_find(&s->tree, path))
        return CLAVE_ENODEEXISTS;
    if (clave__owner_kind(parent->stat.owner) == NODE_EPHEMERAL)
        return CLAVE_ENOCHILDREN;
    return CLAVE_OK;
}

/* After a restore, ephemeral nodes are refused for a while with OperationTimeout, an error at which
 * Curator and kazoo try again. */
static clave_err create_check_owner(const struct server *s, int64_t owner)
{
    bool refused = s->sessions.of_restore && clave__owner_kind(owner) == NODE_EPHEMERAL;
    return refused ? CLAVE_EOPTIMEOUT : CLAVE_OK;
}

static clave_err create_node(struct server *s, struct change *c, const struct wire_create *m,
                             struct jvec acl)
{
    int32_t cversion = c->parent->stat.cversion;
    c->data = m->data;
    /* cversion stays at its maximum, as in Apache. */
    c->version = cversion < INT32_MAX ? cversion + 1 : cversion;
    c->acl = clave__acls_take(&s->tree.acls, acl, ACL_NEW_KEY);
    clave_err err = c->acl ? clave__txn_make(&s->txn) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        c->path =
            clave__node_path_bytes(c->node); /* the node's own copy, which outlives the request */
    return err;
}

clave_err clave__write_create(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_create *m = &body->create;
    struct jbytes path = m->path;
    struct jvec acl;
    struct change *change;
    int64_t owner = create_owner_of(c, op, m);
    clave_err err = create_check_mode(s, op, m);
    if (err == CLAVE_OK)
        err = write_check_shape(path);
    if (err == CLAVE_OK)
        err = clave__acl_fix_up(m->acl, &c->who, &s->scratch.request, &acl);
    if (err != CLAVE_OK)
        return err;
    struct node *parent = clave__tree_find_parent(&s->tree, path);
    if (!parent)
        return CLAVE_ENONODE;
    err = write_check_access(parent, c, PERM_CREATE);
    if (err == CLAVE_OK && create_is_sequential(m->flags))
        err = create_has_number(c, parent) ? create_append_sequence(s, parent, &path)
                                           : CLAVE_EBADARGS;
    if (err == CLAVE_OK)
        err = create_check_place(c, parent, path);
    if (err == CLAVE_OK && s->limits.enforce_quota)
        err = clave__quota_check(s, path, 1, 0, m->data.n);
    if (err == CLAVE_OK)
        err = create_check_owner(s, owner);
    if (err == CLAVE_OK)
        err = write_add_change(s, op, path, NULL, &change);
    if (err != CLAVE_OK)
        return err;
    change->parent = parent;
    change->owner = owner;
    return create_node(s, change, m, acl);
}

/* Refuses a reconfig: this server is not an ensemble. */
clave_err clave__write_reconfig(struct server_conn *c, int32_t op, const union wire_body *body)
{
    (void)c;
    (void)op;
    (void)body;
    return CLAVE_ERECONFIGDISABLED;
}

/* ---- delete, setData, setACL, check ---------------------------------------------------------- */

static clave_err write_find_child(const struct server *s, const struct server_conn *c,
                                  struct jbytes path, struct node **out)
{
    clave_err err = write_check_shape(path);
    if (err != CLAVE_OK)
        return err;
    if (write_is_special(path))
        return CLAVE_EBADARGS;
    const struct node *parent = clave__tree_find_parent(&s->tree, path);
    if (!parent)
        return CLAVE_ENONODE;
    err = write_check_access(parent, c, PERM_DELETE);
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
        err = write_add_change(s, op, m->path, n, &change);
    return err == CLAVE_OK ? clave__txn_make(&s->txn) : err;
}

/* deleteContainer is meant for the server itself. A client may send it, but can do no more with it
 * than with delete, and cannot delete ephemeral nodes. */
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
        err = write_add_change(s, op, body->path, n, &change);
    return err == CLAVE_OK ? clave__txn_make(&s->txn) : err;
}

/* Finds the node; checks that it exists and that the connection has the given permission on it. */
static clave_err write_find_node(const struct server *s, const struct server_conn *c,
                                 struct jbytes path, int32_t perm, struct node **out)
{
    *out = clave__tree_find(&s->tree, path);
    return *out ? write_check_access(*out, c, perm) : CLAVE_ENONODE;
}

clave_err clave__write_set_data(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_set_data *m = &body->set;
    struct node *n;
    struct change *change;
    clave_err err = write_check_path(m->path);
    if (err == CLAVE_OK)
        err = write_find_node(s, c, m->path, PERM_WRITE, &n);
    if (err == CLAVE_OK && s->limits.enforce_quota)
        err = clave__quota_check(s, m->path, 0, n->data_len, m->data.n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.version);
    if (err == CLAVE_OK)
        err = write_add_change(s, op, m->path, n, &change);
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
    clave_err err = write_check_path(m->path);
    if (err == CLAVE_OK)
        err = clave__acl_fix_up(m->acl, &c->who, &s->scratch.request, &acl);
    if (err == CLAVE_OK)
        err = write_find_node(s, c, m->path, PERM_ADMIN, &n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.aversion);
    if (err == CLAVE_OK)
        err = write_add_change(s, op, m->path, n, &change);
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
    clave_err err = write_check_path(m->path);
    if (err == CLAVE_OK)
        err = write_find_node(s, c, m->path, PERM_READ, &n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.version);
    if (err == CLAVE_OK)
        err = write_add_change(s, op, m->path, n, &change);
    if (err == CLAVE_OK)
        change->version =
            write_next_version(n->stat.version); /* the resulting one, as in Apache's log */
    return err;
}

/* ---- a write outside a multi ----------------------------------------------------------------- */

void clave__write_put_reply(struct jwriter *w, int32_t op, const struct change *c)
{
    unsigned parts = clave__opcode(op)->reply;
    assert(!(parts & REPLY_STAT) || c->state == CHANGE_DONE); /* otherwise there is no node */
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
        t->head.type = t->changes[0].type; /* logged with the type of its change */
    clave_err logged = err == CLAVE_OK ? clave__write_commit(s) : clave__write_fail(s, err);
    if (logged != CLAVE_OK) {
        clave__conn_cut_without_memory(c);
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
