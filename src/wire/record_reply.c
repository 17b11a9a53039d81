/* record_reply.c - bodies of successful replies: the server writes them, the client reads them. A
 * new opcode whose reply has a body needs a case in both functions. */
#include "wire/record.h"

static struct jvec get_ids(struct jreader *r)
{
    enum { LEAST = 8 }; /* two empty strings */
    struct jvec v = {.count = clave__jget_count(r, LEAST), .p = r->p};
    for (int32_t i = 0; i < v.count && !r->bad; i++) {
        clave__jget_bytes(r);
        clave__jget_bytes(r);
    }
    if (r->bad)
        return (struct jvec){0, NULL, 0};
    v.n = (size_t)(r->p - v.p);
    return v;
}

static struct wire_ops get_results(struct jreader *r)
{
    struct wire_ops ops = {.count = 0, .p = r->p};
    struct wire_result res;
    while (clave__wire_get_result(r, &res))
        ops.count++;
    ops.n = r->bad ? 0 : (size_t)(r->p - ops.p);
    return ops;
}

static void put_results(struct jwriter *w, const struct wire_ops *ops)
{
    struct jreader r = clave__wire_ops_reader(ops);
    struct wire_result res;
    while (clave__wire_get_result(&r, &res))
        clave__wire_put_result(w, &res);
    clave__wire_put_ops_end(w);
}

struct wire_reply clave__wire_get_reply(struct jreader *r, int32_t op)
{
    struct wire_reply m = {.path = JBYTES_NULL, .data = JBYTES_NULL};
    switch (op) {
    case OP_CREATE:
    case OP_SYNC:
        m.path = clave__jget_bytes(r);
        break;
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        m.path = clave__jget_bytes(r);
        m.stat = clave__wire_get_stat(r);
        break;
    case OP_EXISTS:
    case OP_SET_DATA:
    case OP_SET_ACL:
        m.stat = clave__wire_get_stat(r);
        break;
    case OP_GET_DATA:
    case OP_RECONFIG:
        m.data = clave__jget_bytes(r);
        m.stat = clave__wire_get_stat(r);
        break;
    case OP_GET_ACL:
        m.acl = clave__wire_get_acls(r);
        m.stat = clave__wire_get_stat(r);
        break;
    case OP_GET_CHILDREN:
    case OP_GET_EPHEMERALS:
        m.names = clave__jget_strings(r);
        break;
    case OP_GET_CHILDREN2:
        m.names = clave__jget_strings(r);
        m.stat = clave__wire_get_stat(r);
        break;
    case OP_GET_ALL_CHILDREN_NUMBER:
    case OP_ADD_WATCH:
        m.number = clave__jget_int(r);
        break;
    case OP_SASL:
        m.data = clave__jget_bytes(r);
        break;
    case OP_WHO_AM_I:
        m.ids = get_ids(r);
        break;
    case OP_MULTI:
    case OP_MULTI_READ:
        m.results = get_results(r);
        break;
    default: /* only the header */
        break;
    }
    return m;
}

void clave__wire_put_reply(struct jwriter *w, int32_t op, const struct wire_reply *m)
{
    switch (op) {
    case OP_CREATE:
    case OP_SYNC:
        clave__jput_bytes(w, m->path);
        break;
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        clave__jput_bytes(w, m->path);
        clave__wire_put_stat(w, &m->stat);
        break;
    case OP_EXISTS:
    case OP_SET_DATA:
    case OP_SET_ACL:
        clave__wire_put_stat(w, &m->stat);
        break;
    case OP_GET_DATA:
    case OP_RECONFIG:
        clave__jput_bytes(w, m->data);
        clave__wire_put_stat(w, &m->stat);
        break;
    case OP_GET_ACL:
        clave__jput_vec(w, m->acl);
        clave__wire_put_stat(w, &m->stat);
        break;
    case OP_GET_CHILDREN:
    case OP_GET_EPHEMERALS:
        clave__jput_vec(w, m->names);
        break;
    case OP_GET_CHILDREN2:
        clave__jput_vec(w, m->names);
        clave__wire_put_stat(w, &m->stat);
        break;
    case OP_GET_ALL_CHILDREN_NUMBER:
    case OP_ADD_WATCH:
        clave__jput_int(w, m->number);
        break;
    case OP_SASL:
        clave__jput_bytes(w, m->data);
        break;
    case OP_WHO_AM_I:
        clave__jput_vec(w, m->ids);
        break;
    case OP_MULTI:
    case OP_MULTI_READ:
        put_results(w, &m->results);
        break;
    default:
        break;
    }
}
