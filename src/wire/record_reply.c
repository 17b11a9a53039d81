/* record_reply.c - bodies of successful replies: the server writes them, the client reads them.
 * They consist of the parts that the table in opcode.c names, in the order of enum reply_part. */
#include "wire/record_internal.h"

#include <assert.h>

static struct jvec reply_get_ids(struct jreader *r)
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

/* The reply to a multi is made of replies. */
static struct wire_ops reply_get_results(struct jreader *r);
static void reply_put_results(struct jwriter *w, const struct wire_ops *ops);

struct wire_reply clave__wire_get_reply(struct jreader *r, int32_t op)
{
    struct wire_reply m = {.path = JBYTES_NULL, .data = JBYTES_NULL};
    unsigned parts = clave__opcode(op)->reply;
    if (parts & REPLY_PATH)
        m.path = clave__jget_bytes(r);
    if (parts & REPLY_DATA)
        m.data = clave__jget_bytes(r);
    if (parts & REPLY_ACL)
        m.acl = clave__wire_get_acls(r);
    if (parts & REPLY_NAMES)
        m.names = clave__jget_strings(r);
    if (parts & REPLY_IDS)
        m.ids = reply_get_ids(r);
    if (parts & REPLY_NUMBER)
        m.number = clave__jget_int(r);
    if (parts & REPLY_RESULTS)
        m.results = reply_get_results(r);
    if (parts & REPLY_STAT)
        m.stat = clave__wire_get_stat(r);
    return m;
}

void clave__wire_put_reply(struct jwriter *w, int32_t op, const struct wire_reply *m)
{
    unsigned parts = clave__opcode(op)->reply;
    if (parts & REPLY_PATH)
        clave__jput_bytes(w, m->path);
    if (parts & REPLY_DATA)
        clave__jput_bytes(w, m->data);
    if (parts & REPLY_ACL)
        clave__jput_vec(w, m->acl);
    if (parts & REPLY_NAMES)
        clave__jput_vec(w, m->names);
    if (parts & REPLY_IDS)
        clave__jput_vec(w, m->ids);
    if (parts & REPLY_NUMBER)
        clave__jput_int(w, m->number);
    if (parts & REPLY_RESULTS)
        reply_put_results(w, &m->results);
    if (parts & REPLY_STAT)
        clave__wire_put_stat(w, &m->stat);
}

/* ---- the results of a multi ------------------------------------------------------------------ */

bool clave__wire_get_result(struct jreader *r, struct wire_result *res)
{
    struct multi_header h = clave__multi_get_header(r);
    if (r->bad || h.done)
        return false;
    if (h.type != OP_ERROR && !clave__multi_may_have(h.type)) {
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
    assert(op == OP_ERROR || clave__multi_may_have(op));
    clave__multi_put_header(w, op, false, err);
    if (op == OP_ERROR)
        clave__jput_int(w, err);
}

void clave__wire_put_result(struct jwriter *w, const struct wire_result *res)
{
    clave__wire_put_result_header(w, res->op, res->err);
    clave__wire_put_reply(w, res->op, &res->reply);
}

static struct wire_ops reply_get_results(struct jreader *r)
{
    struct wire_ops ops = {.count = 0, .p = r->p};
    struct wire_result res;
    while (clave__wire_get_result(r, &res))
        ops.count++;
    ops.n = r->bad ? 0 : (size_t)(r->p - ops.p);
    return ops;
}

static void reply_put_results(struct jwriter *w, const struct wire_ops *ops)
{
    struct jreader r = clave__wire_ops_reader(ops);
    struct wire_result res;
    while (clave__wire_get_result(&r, &res))
        clave__wire_put_result(w, &res);
    clave__wire_put_ops_end(w);
}
