/* record_request.c - bodies of requests: the client writes them, the server reads them. A new
 * opcode needs a case in clave__wire_known_op, in a get_ and in a put_ function. */
#include <string.h>

#include "wire/record.h"

bool clave__wire_known_op(int32_t op)
{
    switch (op) {
    case OP_CREATE:
    case OP_DELETE:
    case OP_EXISTS:
    case OP_GET_DATA:
    case OP_SET_DATA:
    case OP_GET_ACL:
    case OP_SET_ACL:
    case OP_GET_CHILDREN:
    case OP_SYNC:
    case OP_PING:
    case OP_GET_CHILDREN2:
    case OP_CHECK:
    case OP_MULTI:
    case OP_CREATE2:
    case OP_RECONFIG:
    case OP_CHECK_WATCHES:
    case OP_REMOVE_WATCHES:
    case OP_CREATE_CONTAINER:
    case OP_DELETE_CONTAINER:
    case OP_CREATE_TTL:
    case OP_MULTI_READ:
    case OP_AUTH:
    case OP_SET_WATCHES:
    case OP_SASL:
    case OP_GET_EPHEMERALS:
    case OP_GET_ALL_CHILDREN_NUMBER:
    case OP_SET_WATCHES2:
    case OP_ADD_WATCH:
    case OP_WHO_AM_I:
    case OP_CLOSE_SESSION:
        return true;
    default:
        return false;
    }
}

static struct wire_create get_create(struct jreader *r, bool ttl)
{
    struct wire_create m;
    m.path = clave__jget_bytes(r);
    m.data = clave__jget_bytes(r);
    m.acl = clave__wire_get_acls(r);
    m.flags = clave__jget_int(r);
    m.ttl_ms = ttl ? clave__jget_long(r) : 0;
    return m;
}

static void put_create(struct jwriter *w, const struct wire_create *m, bool ttl)
{
    clave__jput_bytes(w, m->path);
    clave__jput_bytes(w, m->data);
    clave__jput_vec(w, m->acl);
    clave__jput_int(w, m->flags);
    if (ttl)
        clave__jput_long(w, m->ttl_ms);
}

static struct wire_set_watches get_set_watches(struct jreader *r, bool five)
{
    struct wire_set_watches m = {0};
    m.relative_zxid = clave__jget_long(r);
    m.data = clave__jget_strings(r);
    m.exist = clave__jget_strings(r);
    m.child = clave__jget_strings(r);
    if (five) {
        m.persistent = clave__jget_strings(r);
        m.persistent_recursive = clave__jget_strings(r);
    }
    return m;
}

static void put_set_watches(struct jwriter *w, const struct wire_set_watches *m, bool five)
{
    clave__jput_long(w, m->relative_zxid);
    clave__jput_vec(w, m->data);
    clave__jput_vec(w, m->exist);
    clave__jput_vec(w, m->child);
    if (five) {
        clave__jput_vec(w, m->persistent);
        clave__jput_vec(w, m->persistent_recursive);
    }
}

/* Up to 3.8 the rest of the frame is the path's bytes; from 3.9 on the path is a buffer. */
static struct jbytes get_delete_container(struct jreader *r)
{
    struct jreader peek = *r;
    struct jbytes path = clave__jget_bytes(&peek);
    if (!peek.bad && path.n >= 0 && peek.n == 0) {
        *r = peek;
        return path;
    }
    path = clave__jbytes_n(r->p, r->n);
    r->p += r->n;
    r->n = 0;
    return path;
}

/* The ops of a multi run up to the MultiHeader with done set. */
static struct wire_ops get_ops(struct jreader *r)
{
    struct wire_ops ops = {.count = 0, .p = r->p};
    struct wire_op op;
    while (clave__wire_get_op(r, &op))
        ops.count++;
    ops.n = r->bad ? 0 : (size_t)(r->p - ops.p);
    return ops;
}

static void record_request_put_ops(struct jwriter *w, const struct wire_ops *ops)
{
    struct jreader r = clave__wire_ops_reader(ops);
    struct wire_op op;
    while (clave__wire_get_op(&r, &op))
        clave__wire_put_op(w, &op);
    clave__wire_put_ops_end(w);
}

static void get_simple(struct jreader *r, int32_t op, union wire_body *b)
{
    switch (op) {
    case OP_EXISTS:
    case OP_GET_DATA:
    case OP_GET_CHILDREN:
    case OP_GET_CHILDREN2:
        b->read.path = clave__jget_bytes(r);
        b->read.watch = clave__jget_bool(r);
        break;
    case OP_DELETE:
    case OP_CHECK:
        b->check.path = clave__jget_bytes(r);
        b->check.version = clave__jget_int(r);
        break;
    case OP_CHECK_WATCHES:
    case OP_REMOVE_WATCHES:
    case OP_ADD_WATCH:
        b->typed.path = clave__jget_bytes(r);
        b->typed.type = clave__jget_int(r);
        break;
    case OP_GET_ACL:
    case OP_SYNC:
    case OP_SASL:
    case OP_GET_EPHEMERALS:
    case OP_GET_ALL_CHILDREN_NUMBER:
        b->path = clave__jget_bytes(r);
        break;
    default: /* no body, or an unknown op */
        break;
    }
}

void clave__wire_get_body(struct jreader *r, int32_t op, union wire_body *b)
{
    memset(b, 0, sizeof *b);
    switch (op) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        b->create = get_create(r, op == OP_CREATE_TTL);
        break;
    case OP_SET_DATA:
        b->set.path = clave__jget_bytes(r);
        b->set.data = clave__jget_bytes(r);
        b->set.version = clave__jget_int(r);
        break;
    case OP_SET_ACL:
        b->set_acl.path = clave__jget_bytes(r);
        b->set_acl.acl = clave__wire_get_acls(r);
        b->set_acl.version = clave__jget_int(r);
        break;
    case OP_AUTH:
        b->auth.type = clave__jget_int(r);
        b->auth.scheme = clave__jget_bytes(r);
        b->auth.auth = clave__jget_bytes(r);
        break;
    case OP_SET_WATCHES:
    case OP_SET_WATCHES2:
        b->watches = get_set_watches(r, op == OP_SET_WATCHES2);
        break;
    case OP_RECONFIG:
        b->reconfig.joining = clave__jget_bytes(r);
        b->reconfig.leaving = clave__jget_bytes(r);
        b->reconfig.members = clave__jget_bytes(r);
        b->reconfig.config_id = clave__jget_long(r);
        break;
    case OP_DELETE_CONTAINER:
        b->path = get_delete_container(r);
        break;
    case OP_MULTI:
    case OP_MULTI_READ:
        b->multi = get_ops(r);
        break;
    default:
        get_simple(r, op, b);
    }
}

static void put_simple(struct jwriter *w, int32_t op, const union wire_body *b)
{
    switch (op) {
    case OP_EXISTS:
    case OP_GET_DATA:
    case OP_GET_CHILDREN:
    case OP_GET_CHILDREN2:
        clave__jput_bytes(w, b->read.path);
        clave__jput_bool(w, b->read.watch);
        break;
    case OP_DELETE:
    case OP_CHECK:
        clave__jput_bytes(w, b->check.path);
        clave__jput_int(w, b->check.version);
        break;
    case OP_CHECK_WATCHES:
    case OP_REMOVE_WATCHES:
    case OP_ADD_WATCH:
        clave__jput_bytes(w, b->typed.path);
        clave__jput_int(w, b->typed.type);
        break;
    case OP_GET_ACL:
    case OP_SYNC:
    case OP_SASL:
    case OP_GET_EPHEMERALS:
    case OP_GET_ALL_CHILDREN_NUMBER:
    case OP_DELETE_CONTAINER:
        clave__jput_bytes(w, b->path);
        break;
    default:
        break;
    }
}

void clave__wire_put_body(struct jwriter *w, int32_t op, const union wire_body *b)
{
    switch (op) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        put_create(w, &b->create, op == OP_CREATE_TTL);
        break;
    case OP_SET_DATA:
        clave__jput_bytes(w, b->set.path);
        clave__jput_bytes(w, b->set.data);
        clave__jput_int(w, b->set.version);
        break;
    case OP_SET_ACL:
        clave__jput_bytes(w, b->set_acl.path);
        clave__jput_vec(w, b->set_acl.acl);
        clave__jput_int(w, b->set_acl.version);
        break;
    case OP_AUTH:
        clave__jput_int(w, b->auth.type);
        clave__jput_bytes(w, b->auth.scheme);
        clave__jput_bytes(w, b->auth.auth);
        break;
    case OP_SET_WATCHES:
    case OP_SET_WATCHES2:
        put_set_watches(w, &b->watches, op == OP_SET_WATCHES2);
        break;
    case OP_RECONFIG:
        clave__jput_bytes(w, b->reconfig.joining);
        clave__jput_bytes(w, b->reconfig.leaving);
        clave__jput_bytes(w, b->reconfig.members);
        clave__jput_long(w, b->reconfig.config_id);
        break;
    case OP_MULTI:
    case OP_MULTI_READ:
        record_request_put_ops(w, &b->multi);
        break;
    default:
        put_simple(w, op, b);
    }
}

struct wire_request clave__wire_get_request(struct jreader *r)
{
    struct wire_request q;
    q.xid = clave__jget_int(r);
    q.op = clave__jget_int(r);
    clave__wire_get_body(r, q.op, &q.body);
    return q;
}

void clave__wire_put_request(struct jwriter *w, const struct wire_request *q)
{
    clave__wire_put_request_header(w, q->xid, q->op);
    clave__wire_put_body(w, q->op, &q->body);
}
