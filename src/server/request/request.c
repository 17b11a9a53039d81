/* request.c - decodes each frame of a connection that has a session and dispatches it by the table
 * below, in which a new opcode is one line. conn.c calls it for every frame after the handshake.
 *
 * Most requests are answered in read.c and write.c. Answered here are pings; auth, sasl and whoAmI,
 * whose answers show nothing of the tree; and multi and multiRead, which are made up of other
 * requests of the table.
 *
 * What must stay true: where authentication is required, a client that has not authenticated
 * changes nothing that belongs to others and keeps no session alive. A multi makes all of its
 * changes or none, each operation sees the ones before it, and the whole is one transaction of the
 * log. */
#include <assert.h>

#include "server/connection/conn.h"
#include "server/request/request.h"

/* ---- authentication -------------------------------------------------------------------------- */

static void auth_op_add(struct server_conn *c, const struct wire_request *q,
                        const struct request_op *op)
{
    (void)op;
    const struct wire_auth *m = &q->body.auth;
    clave_err err =
        q->malformed ? CLAVE_EAUTHFAILED : clave__identities_add(&c->who, m->scheme, m->auth);
    if (err == CLAVE_ENOMEM) {
        clave__conn_cut_without_memory(c);
        return;
    }
    clave__identities_note_super(&c->who, clave__jbytes(c->s->access.super_digest));
    if (c->state == CONN_RESUMING && clave__conn_is_known(c) && !clave__conn_take_up(c))
        return;
    clave__conn_reply_as_apache(c, q->xid, 0, err);
    if (err == CLAVE_OK)
        return;
    clave__conn_log(c, CLAVE_LOG_WARN, "%s is closed: authentication failed", c->peer.text);
    clave__conn_close(c);
}

/* Refuses SASL, which this server does not have. Apache without JAAS answers with no token and no
 * error, which makes kazoo start over again and again until its session expires. So we give
 * Apache's answer to a wrong password instead, at which every client gives up immediately. The
 * empty token is there for the Java client, which reads one whatever the error is. */
static void auth_op_sasl(struct server_conn *c, const struct wire_request *q,
                         const struct request_op *op)
{
    (void)op;
    struct message m = clave__message_begin(c, SHOWS_NOTHING);
    clave__message_header(&m, q->xid, 0, CLAVE_EAUTHFAILED);
    clave__jput_bytes(&m.w, JBYTES_NULL);
    clave__message_end(&m, true);
    clave__conn_log(c, CLAVE_LOG_WARN,
                    "%s is closed: it authenticates with SASL, which this server does not have",
                    c->peer.text);
    clave__conn_close(c);
}

static void auth_op_who_am_i(struct server_conn *c, const struct wire_request *q,
                             const struct request_op *op)
{
    (void)op;
    struct message m = clave__message_begin(c, SHOWS_NOTHING);
    clave__message_header(&m, q->xid, m.zxid, CLAVE_OK);
    clave__identities_put(&m.w, &c->who);
    clave__message_end(&m, true);
}

/* ---- multi: writes, all or nothing ----------------------------------------------------------- */

/* The line of the table for an opcode. Never NULL: the line of an unknown opcode is empty. */
static const struct request_op *request_op_of(int32_t op);

static bool multi_all_may_be_in(const struct wire_ops *ops, unsigned flag)
{
    struct jreader r = clave__wire_ops_reader(ops);
    struct wire_op op;
    while (clave__wire_get_op(&r, &op))
        if (!(clave__opcode(op.op)->flags & flag))
            return false;
    return true;
}

/* Writes the result of the newest change, with the Stat as it is now, before later operations
 * change it. */
static void multi_put_made(struct jwriter *w, int32_t op, const struct change *c)
{
    assert(c->state == CHANGE_DONE || c->type == OP_CHECK);
    /* Apache answers every create that returns a Stat like a create2. */
    if (clave__opcode(op)->effect == EFFECT_CREATE && op != OP_CREATE)
        op = OP_CREATE2;
    clave__wire_put_result_header(w, op, CLAVE_OK);
    clave__write_put_reply(w, op, c);
}

/* Makes the changes of all operations in order, with their results in s->results. *done counts the
 * ones that succeeded. */
static clave_err multi_make_all(struct server_conn *c, const struct wire_ops *ops, int32_t *done)
{
    struct server *s = c->s;
    struct jreader r = clave__wire_ops_reader(ops);
    struct jwriter w = clave__jwriter(&s->scratch.results);
    struct wire_op op;
    clave__buf_clear(&s->scratch.results);
    for (*done = 0; clave__wire_get_op(&r, &op); ++*done) {
        clave_err err = request_op_of(op.op)->act(c, op.op, &op.body);
        if (err != CLAVE_OK)
            return err;
        assert(s->txn.count == (size_t)*done + 1); /* each operation makes one change */
        multi_put_made(&w, op.op, &s->txn.changes[s->txn.count - 1]);
    }
    clave__wire_put_ops_end(&w);
    return w.err == CLAVE_OK ? CLAVE_OK : CLAVE_ENOMEM;
}

/* Undoes everything and records the failure as Apache does: code 0 for the operations before the
 * one that failed, its own error for that one, and -2 for those after it. */
static clave_err multi_record_failure(struct server_conn *c, int32_t count, int32_t done,
                                      clave_err why)
{
    assert(why != CLAVE_OK && done < count);
    struct server *s = c->s;
    struct jwriter w = clave__jwriter(&s->scratch.results);
    clave__txn_undo(&s->txn);
    clave__buf_clear(&s->scratch.results);
    for (int32_t i = 0; i < count; i++) {
        clave_err err = i < done ? CLAVE_OK : CLAVE_ERUNTIME;
        if (i == done)
            err = why;
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

/* Writes an audit line for each operation; each has made one change. */
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

/* Answers a multi that was malformed, which counts as a single failed request. */
static void refuse_multi(struct server_conn *c, const struct wire_request *q,
                         const struct request_op *op)
{
    struct wire_request refused = {.xid = q->xid, .op = q->op, .malformed = true};
    clave__conn_write(c, &refused, op);
}

static void conn_multi(struct server_conn *c, const struct wire_request *q,
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
        clave__conn_cut_without_memory(c);
    clave__txn_end(&s->txn);
    clave__buf_trim(&s->scratch.results, 0);
}

/* ---- multiRead ------------------------------------------------------------------------------- */

static void multi_put_read(struct jwriter *w, const struct server_conn *c,
                           const struct wire_op *part)
{
    struct node *n;
    const struct request_op *op = request_op_of(part->op);
    clave_err err = clave__read_find(c, op, part->body.path, &n);
    clave__wire_put_result_header(w, err == CLAVE_OK ? part->op : OP_ERROR, err);
    if (err == CLAVE_OK)
        op->show(w, c, n);
}

/* The newest transaction that any part of the answer shows. It has to be known before the results
 * are written, because the header comes first. */
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

/* Each read in a multiRead has an error of its own; their watch flags are ignored. */
static void conn_multi_read(struct server_conn *c, const struct wire_request *q,
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

static void request_answer_ping(struct server_conn *c, const struct wire_request *q,
                                const struct request_op *op)
{
    (void)q;
    (void)op;
    clave__conn_reply(c, XID_PING, SHOWS_NOTHING, CLAVE_OK);
}

/* Answers an unknown opcode, then closes the connection, as Apache does. */
static void server_request_refuse(struct server_conn *c, const struct wire_request *q)
{
    clave__conn_log(c, CLAVE_LOG_WARN, "%s is closed: unknown request type %d", c->peer.text,
                    (int)q->op);
    clave__conn_reply_as_apache(c, q->xid, -1, CLAVE_EUNIMPLEMENTED);
    clave__conn_close(c);
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { AT = -OPCODE_FIRST, READ = PERM_READ };

static const struct request_op request_ops[] = {
    [AT + OP_CREATE] = {.answer = clave__conn_write, .act = clave__write_create},
    [AT + OP_CREATE2] = {.answer = clave__conn_write, .act = clave__write_create},
    [AT + OP_CREATE_CONTAINER] = {.answer = clave__conn_write, .act = clave__write_create},
    [AT + OP_CREATE_TTL] = {.answer = clave__conn_write, .act = clave__write_create},
    [AT + OP_DELETE] = {.answer = clave__conn_write, .act = clave__write_delete},
    [AT +
        OP_DELETE_CONTAINER] = {.answer = clave__conn_write, .act = clave__write_delete_container},
    [AT + OP_SET_DATA] = {.answer = clave__conn_write, .act = clave__write_set_data},
    [AT + OP_SET_ACL] = {.answer = clave__conn_write, .act = clave__write_set_acl},
    [AT + OP_RECONFIG] = {.answer = clave__conn_write, .act = clave__write_reconfig},
    [AT + OP_CHECK] = {.act = clave__write_check}, /* only inside a multi */
    [AT + OP_MULTI] = {.answer = conn_multi},

    [AT + OP_EXISTS] = {.answer = clave__conn_read, .show = clave__read_exists, .perms = READ},
    [AT + OP_GET_DATA] = {.answer = clave__conn_read, .show = clave__read_data, .perms = READ},
    [AT + OP_GET_CHILDREN] = {.answer = clave__conn_read,
                              .show = clave__read_children,
                              .perms = READ},
    [AT + OP_GET_CHILDREN2] = {.answer = clave__conn_read,
                               .show = clave__read_children2,
                               .perms = READ},
    [AT + OP_GET_ACL] = {.answer = clave__conn_read,
                         .show = clave__read_acl,
                         .perms = READ | PERM_ADMIN},
    [AT + OP_GET_ALL_CHILDREN_NUMBER] = {.answer = clave__conn_read,
                                         .show = clave__read_number_below,
                                         .perms = READ,
                                         .shows_others = true},
    [AT + OP_GET_EPHEMERALS] = {.answer = clave__conn_ephemerals},
    [AT + OP_SYNC] = {.answer = clave__conn_sync},
    [AT + OP_MULTI_READ] = {.answer = conn_multi_read},

    [AT + OP_SET_WATCHES] = {.answer = clave__conn_watch, .act = clave__watch_op_set},
    [AT + OP_SET_WATCHES2] = {.answer = clave__conn_watch, .act = clave__watch_op_set},
    [AT + OP_ADD_WATCH] = {.answer = clave__conn_watch, .act = clave__watch_op_add},
    [AT + OP_CHECK_WATCHES] = {.answer = clave__conn_watch, .act = clave__watch_op_check},
    [AT + OP_REMOVE_WATCHES] = {.answer = clave__conn_watch, .act = clave__watch_op_remove},

    [AT + OP_PING] = {.answer = request_answer_ping},
    [AT + OP_AUTH] = {.answer = auth_op_add},
    [AT + OP_SASL] = {.answer = auth_op_sasl},
    [AT + OP_WHO_AM_I] = {.answer = auth_op_who_am_i},
    [AT + OP_CLOSE_SESSION] = {.answer = clave__conn_close_session},
};

static const struct request_op *request_op_of(int32_t op)
{
    static const struct request_op none;
    size_t at = clave__opcode_place(op);
    return at < sizeof request_ops / sizeof *request_ops ? &request_ops[at] : &none;
}

/* True for requests that a client may make before it has authenticated, since they harm nobody. It
 * may keep the session that it created on this connection, and close it while it owns no nodes. But
 * a RESUMING client may not ping: the ping would not keep its session alive, so no answer may
 * suggest that the session continues. */
static bool request_is_harmless(const struct server_conn *c, int32_t op)
{
    if (op == OP_AUTH)
        return true;
    return c->state == CONN_SERVING &&
           (op == OP_SASL || op == OP_PING ||
            (op == OP_CLOSE_SESSION && !clave__tree_find_owner(&c->s->tree, c->session->id)));
}

/* Enforces --require-auth. As in Apache with enforce.auth.enabled, except that Apache refuses pings
 * and closeSession too. Any other request from a client that has not authenticated is answered with
 * an error, after which the connection closes. */
static bool request_is_let_in(struct server_conn *c, const struct wire_request *q)
{
    if (clave__conn_is_known(c)) /* also true if authentication has just stopped being required */
        return c->state == CONN_SERVING || clave__conn_take_up(c);
    if (request_is_harmless(c, q->op))
        return true;
    struct server *s = c->s;
    if (clave__refusals_note(&s->refused.strange, s->now))
        clave__conn_log(
            c, CLAVE_LOG_WARN,
            "%s is closed, and %llu before it: it has not authenticated (--require-auth %s)",
            c->peer.text, (unsigned long long)s->refused.strange.count - 1, s->access.require_auth);
    clave__conn_reply_as_apache(c, q->xid, 0, CLAVE_ESASLREQUIRED);
    clave__conn_close(c);
    return false;
}

/* ---- a frame --------------------------------------------------------------------------------- */

void clave__conn_request(struct server_conn *c, const uint8_t *p, size_t n)
{
    assert(c->state == CONN_RESUMING || c->state == CONN_SERVING);
    enum { HEADER = 8 };
    struct server *s = c->s;
    const uint64_t work = s->counts.bytes_written;
    struct jreader r = clave__jreader(p, n);
    if (n < HEADER) {
        clave__conn_log(c, CLAVE_LOG_WARN, "%s is closed: it sent a request without a header",
                        c->peer.text);
        clave__conn_close(c);
        return;
    }
    struct wire_request q = clave__wire_get_request(&r);
    s->counts.packets_received++;
    c->received++;
    c->last_op = q.op;
    if (q.xid >= 0) /* this is the client's last real request, which Apache shows as well */
        c->last_xid = q.xid;
    if (q.op >= 0 && (size_t)q.op < sizeof s->counts.requests / sizeof *s->counts.requests)
        s->counts.requests[q.op]++;
    const struct request_op *op = request_op_of(q.op);
    if (!request_is_let_in(c, &q))
        return;
    /* As in Apache, packets that only authenticate do not count as a sign of life. Neither do
     * requests that are refused. */
    if (q.op != OP_AUTH && q.op != OP_SASL)
        clave__session_heard(&s->sessions, c->session);
    if (c->who.is_super && clave__session_nodes_answer(c, &q))
        ; /* already answered */
    else if (op->answer)
        op->answer(c, &q, op);
    else
        server_request_refuse(c, &q);
    if (s->limits.slow_ms > 0)
        clave__slow_requests_note(c, work, p, n);
}
