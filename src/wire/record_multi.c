/* record_multi.c - the ops of a multi and their results. Each follows a
 * MultiHeader {type, done, err}; the header with done set ends the list. */
#include "wire/record_internal.h"

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

/* ---- ops ------------------------------------------------------------------------------------- */

struct jreader clave__wire_ops_reader(const struct wire_ops *ops)
{
    return clave__jreader(ops->p, ops->n);
}

/* Of any other opcode the end of the body is unknown here: it makes the whole list bad. */
static bool may_be_part(int32_t op)
{
    return clave__opcode(op)->flags & (OPCODE_IN_MULTI | OPCODE_IN_MULTI_READ);
}

bool clave__wire_get_op(struct jreader *r, struct wire_op *op)
{
    struct multi_header h = record_multi_get_header(r);
    if (r->bad || h.done)
        return false;
    if (!may_be_part(h.type)) {
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

/* The ops run up to the MultiHeader with done set. */
static void body_get_ops(struct jreader *r, union wire_body *b)
{
    struct wire_ops ops = {.count = 0, .p = r->p};
    struct wire_op op;
    while (clave__wire_get_op(r, &op))
        ops.count++;
    ops.n = r->bad ? 0 : (size_t)(r->p - ops.p);
    b->multi = ops;
}

static void body_put_ops(struct jwriter *w, const union wire_body *b)
{
    struct jreader r = clave__wire_ops_reader(&b->multi);
    struct wire_op op;
    while (clave__wire_get_op(&r, &op))
        clave__wire_put_op(w, &op);
    clave__wire_put_ops_end(w);
}

const struct body_format clave__body_ops = {body_get_ops, body_put_ops};

/* ---- results --------------------------------------------------------------------------------- */

bool clave__wire_get_result(struct jreader *r, struct wire_result *res)
{
    struct multi_header h = record_multi_get_header(r);
    if (r->bad || h.done)
        return false;
    if (h.type != OP_ERROR && !may_be_part(h.type)) {
        r->bad = true;
        return false;
    }
    res->op = h.type;
    res->err = h.err;
    res->reply = clave__wire_get_reply(r, h.type);
    if (h.type == OP_ERROR)
        res->err = clave__jget_int(r);
    return !r->bad;
}

void clave__wire_put_result_header(struct jwriter *w, int32_t op, int32_t err)
{
    put_header(w, op, false, err);
    if (op == OP_ERROR)
        clave__jput_int(w, err);
}

void clave__wire_put_result(struct jwriter *w, const struct wire_result *res)
{
    clave__wire_put_result_header(w, res->op, res->err);
    clave__wire_put_reply(w, res->op, &res->reply);
}

void clave__wire_put_ops_end(struct jwriter *w)
{
    put_header(w, -1, true, -1);
}

struct wire_ops clave__wire_get_results(struct jreader *r)
{
    struct wire_ops ops = {.count = 0, .p = r->p};
    struct wire_result res;
    while (clave__wire_get_result(r, &res))
        ops.count++;
    ops.n = r->bad ? 0 : (size_t)(r->p - ops.p);
    return ops;
}

void clave__wire_put_results(struct jwriter *w, const struct wire_ops *ops)
{
    struct jreader r = clave__wire_ops_reader(ops);
    struct wire_result res;
    while (clave__wire_get_result(&r, &res))
        clave__wire_put_result(w, &res);
    clave__wire_put_ops_end(w);
}
