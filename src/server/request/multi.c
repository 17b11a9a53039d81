/* multi.c - multi: several writes in one transaction, all or nothing; multiRead: several reads in
 * one request. The table in request.c refers to them, and has the ops they consist of. */
#include "server/request/audit.h"

#include <assert.h>

#include "server/request/read.h"
#include "server/request/write.h"

/* ---- writes ---------------------------------------------------------------------------------- */

static bool multi_all_may_be_in(const struct wire_ops *ops, unsigned flag)
{
    struct jreader r = clave__wire_ops_reader(ops);
    struct wire_op op;
    while (clave__wire_get_op(&r, &op))
        if (!(clave__opcode(op.op)->flags & flag))
            return false;
    return true;
}

/* Writes the result of the newest change; its Stat is that of this moment, before later ops. */
static void multi_put_made(struct jwriter *w, int32_t op, const struct change *c)
{
    assert(c->state == CHANGE_DONE || c->type == OP_CHECK);
    /* Apache answers every create with a Stat as a create2. */
    if (clave__opcode(op)->effect == EFFECT_CREATE && op != OP_CREATE)
        op = OP_CREATE2;
    clave__wire_put_result_header(w, op, CLAVE_OK);
    clave__write_put_reply(w, op, c);
}

/* Makes one op after another, with their results in s->results; *done counts those made. */
static clave_err multi_make_all(struct server_conn *c, const struct wire_ops *ops, int32_t *done)
{
    struct server *s = c->s;
    struct jreader r = clave__wire_ops_reader(ops);
    struct jwriter w = clave__jwriter(&s->scratch.results);
    struct wire_op op;
    clave__buf_clear(&s->scratch.results);
    for (*done = 0; clave__wire_get_op(&r, &op); ++*done) {
        clave_err err = clave__request_op(op.op)->act(c, op.op, &op.body);
        if (err != CLAVE_OK)
            return err;
        assert(s->txn.count == (size_t)*done + 1); /* each op makes one change */
        multi_put_made(&w, op.op, &s->txn.changes[s->txn.count - 1]);
    }
    clave__wire_put_ops_end(&w);
    return w.err == CLAVE_OK ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Undoes everything and records the failure as Apache does: the ops before the one that failed with
 * 0, that one with its code, those after it with -2. */
static clave_err multi_record_failure(struct server_conn *c, int32_t count, int32_t done,
                                      clave_err why)
{
    assert(why != CLAVE_OK && done < count);
    struct server *s = c->s;
    struct jwriter w = clave__jwriter(&s->scratch.results);
    clave__txn_undo(&s->txn);
    clave__buf_clear(&s->scratch.results);
    for (int32_t i = 0; i < count; i++) {
        clave_err err = i < done ? CLAVE_OK : i == done ? why : CLAVE_ERUNTIME;
        clave__wire_put_result_header(&w, OP_ERROR, err);
        if (i < done)
            continue;
        struct change *change = clave__txn_add(&s->txn, OP_ERROR, JBYTES_NULL);
        if (!change)
            return CLAVE_ENOMEM;
        change->err = err;
    }
    clave__wire_put_ops_end(&w);
    return w.err == CLAVE_OK ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Each op has made one change. */
static void multi_audit_all(struct server_conn *c, const struct wire_ops *ops)
{
    struct jreader r = clave__wire_ops_reader(ops);
    struct wire_op op;
    for (size_t i = 0; clave__wire_get_op(&r, &op); i++)
        clave__audit_write(c, op.op, &op.body, &c->s->txn.changes[i]);
}

static void multi_reply_with_results(struct server_conn *c, int32_t xid)
{
    struct buf *results = &c->s->scratch.results;
    struct message m = clave__message_begin(c, c->s->last_zxid);
    clave__message_header(&m, xid, m.zxid, CLAVE_OK);
    if (m.w.err == CLAVE_OK)
        m.w.err = clave__buf_append(m.w.b, clave__buf_bytes(results), clave__buf_len(results));
    clave__message_end(&m, true);
}

/* The whole request counts as one that could not be read. */
static void refuse_multi(struct server_conn *c, const struct wire_request *q,
                         const struct request_op *op)
{
    struct wire_request refused = {.xid = q->xid, .op = q->op, .malformed = true};
    clave__conn_write(c, &refused, op);
}

void clave__conn_multi(struct server_conn *c, const struct wire_request *q,
                       const struct request_op *op)
{
    struct server *s = c->s;
    const struct wire_ops *ops = &q->body.multi;
    int32_t done = 0;
    if (q->malformed || !multi_all_may_be_in(ops, OPCODE_IN_MULTI)) {
        refuse_multi(c, q, op);
        return;
    }
    clave__write_begin(s, c->session->id, q->xid, OP_MULTI);
    clave_err err = multi_make_all(c, ops, &done);
    if (err == CLAVE_EMARSHALLING) { /* a null path */
        clave__txn_undo(&s->txn);
        clave__txn_end(&s->txn);
        refuse_multi(c, q, op);
        return;
    }
    bool failed = err != CLAVE_OK;
    if (failed && err != CLAVE_ENOMEM)
        err = multi_record_failure(c, ops->count, done, err);
    err = err == CLAVE_OK ? clave__write_commit(s) : clave__write_fail(s, CLAVE_ENOMEM);
    if (err == CLAVE_OK && failed)
        clave__audit_failed_multi(c);
    else if (err == CLAVE_OK && s->audit.write)
        multi_audit_all(c, ops);
    if (err == CLAVE_OK)
        multi_reply_with_results(c, q->xid);
    else
        clave__conn_cut(c);
    clave__txn_end(&s->txn);
    clave__buf_trim(&s->scratch.results, 0);
}

/* ---- reads ----------------------------------------------------------------------------------- */

static void multi_put_read(struct jwriter *w, const struct server_conn *c,
                           const struct wire_op *part)
{
    struct node *n;
    const struct request_op *op = clave__request_op(part->op);
    clave_err err = clave__read_find(c, op, part->body.path, &n);
    clave__wire_put_result_header(w, err == CLAVE_OK ? part->op : OP_ERROR, err);
    if (err == CLAVE_OK)
        op->show(w, c, n);
}

/* Found before the results are written: the header comes first. */
static int64_t multi_newest_shown(const struct server *s, const struct wire_ops *ops)
{
    struct jreader r = clave__wire_ops_reader(ops);
    struct wire_op part;
    int64_t newest = SHOWS_NOTHING;
    while (newest < s->last_zxid && clave__wire_get_op(&r, &part)) {
        struct jbytes path = part.body.path;
        int64_t zxid = clave__visible_zxid_at(s, path, clave__tree_find(&s->tree, path));
        newest = zxid > newest ? zxid : newest;
    }
    return newest;
}

/* Each read has an error of its own. Their watch flags are ignored. */
void clave__conn_multi_read(struct server_conn *c, const struct wire_request *q,
                            const struct request_op *op)
{
    (void)op;
    struct wire_op part;
    if (q->malformed || !multi_all_may_be_in(&q->body.multi, OPCODE_IN_MULTI_READ)) {
        clave__conn_reply(c, q->xid, SHOWS_NOTHING, CLAVE_EMARSHALLING);
        return;
    }
    struct message m = clave__message_begin(c, multi_newest_shown(c->s, &q->body.multi));
    clave__message_header(&m, q->xid, m.zxid, CLAVE_OK);
    struct jreader r = clave__wire_ops_reader(&q->body.multi);
    while (clave__message_bound(&m) && clave__wire_get_op(&r, &part)) {
        multi_put_read(&m.w, c, &part);
        c->s->turn.looks += LOOKS_A_READ;
    }
    if (!m.refused)
        clave__wire_put_ops_end(&m.w);
    clave__message_end(&m, true);
}
