/* record_multi.c - the ops of a multi and their results. Each follows a
 * MultiHeader {type, done, err}; the header with done set ends the list. */
#include <string.h>

#include "wire/record.h"

struct multi_header {
    int32_t type;
    bool done;
    int32_t err;
};

static struct multi_header record_multi_get_header(struct jreader *r)
{
    struct multi_header h;
    h.type = clave__jget_int(r);
    h.done = clave__jget_bool(r);
    h.err = clave__jget_int(r);
    return h;
}

static void put_header(struct jwriter *w, int32_t type, bool done, int32_t err)
{
    clave__jput_int(w, type);
    clave__jput_bool(w, done);
    clave__jput_int(w, err);
}

struct jreader clave__wire_ops_reader(const struct wire_ops *ops)
{
    return clave__jreader(ops->p, ops->n);
}

/* The ops a multi or a multiRead may contain. The end of any other op's body is
 * unknown here, so such an op makes the whole list bad. */
static bool op_allowed(int32_t op)
{
    switch (op) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
    case OP_DELETE:
    case OP_SET_DATA:
    case OP_CHECK:
    case OP_GET_DATA:
    case OP_GET_CHILDREN:
    case OP_EXISTS: /* the server answers it with an error of its own, not as a broken frame */
        return true;
    default:
        return false;
    }
}

bool clave__wire_get_op(struct jreader *r, struct wire_op *op)
{
    struct multi_header h = record_multi_get_header(r);
    if (r->bad || h.done)
        return false;
    if (!op_allowed(h.type)) {
        r->bad = true;
        return false;
    }
    op->op = h.type;
    clave__wire_get_body(r, h.type, &op->body);
    return !r->bad;
}

void clave__wire_put_op(struct jwriter *w, const struct wire_op *op)
{
    put_header(w, op->op, false, -1);
    clave__wire_put_body(w, op->op, &op->body);
}

bool clave__wire_get_result(struct jreader *r, struct wire_result *res)
{
    struct multi_header h = record_multi_get_header(r);
    if (r->bad || h.done)
        return false;
    memset(res, 0, sizeof *res);
    res->op = h.type;
    res->err = h.err;
    res->path = res->data = JBYTES_NULL;
    switch (h.type) {
    case OP_CREATE:
        res->path = clave__jget_bytes(r);
        break;
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        res->path = clave__jget_bytes(r);
        res->stat = clave__wire_get_stat(r);
        break;
    case OP_DELETE:
    case OP_CHECK:
        break;
    case OP_SET_DATA:
        res->stat = clave__wire_get_stat(r);
        break;
    case OP_GET_CHILDREN:
        res->names = clave__jget_strings(r);
        break;
    case OP_GET_DATA:
        res->data = clave__jget_bytes(r);
        res->stat = clave__wire_get_stat(r);
        break;
    case OP_ERROR:
        res->err = clave__jget_int(r);
        break;
    default:
        r->bad = true;
    }
    return !r->bad;
}

void clave__wire_put_result(struct jwriter *w, const struct wire_result *res)
{
    put_header(w, res->op, false, res->err);
    switch (res->op) {
    case OP_CREATE:
        clave__jput_bytes(w, res->path);
        break;
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
        clave__jput_bytes(w, res->path);
        clave__wire_put_stat(w, &res->stat);
        break;
    case OP_SET_DATA:
        clave__wire_put_stat(w, &res->stat);
        break;
    case OP_GET_CHILDREN:
        clave__jput_vec(w, res->names);
        break;
    case OP_GET_DATA:
        clave__jput_bytes(w, res->data);
        clave__wire_put_stat(w, &res->stat);
        break;
    case OP_ERROR:
        clave__jput_int(w, res->err);
        break;
    default: /* delete, check: only the header */
        break;
    }
}

void clave__wire_put_ops_end(struct jwriter *w)
{
    put_header(w, -1, true, -1);
}
