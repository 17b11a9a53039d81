/* request.c - decodes a frame of a connection with a session and answers it by the table of
 * request.h; also the requests that concern the connection itself (auth, sasl, whoAmI). conn.c
 * calls it for every frame after the handshake. A new opcode is a line in the table here. */
#include "server/request/read.h"

#include <assert.h>

#include "server/connection/slow_requests.h"
#include "server/request/write.h"
#include "server/request/zookeeper_sessions.h"

/* ---- the connection itself ------------------------------------------------------------------- */

/* A header with Apache's zxid for an answer that shows nothing. */
static void request_reply_as_apache(struct server_conn *c, int32_t xid, int64_t zxid, clave_err err)
{
    struct message m = clave__message_begin(c, SHOWS_NOTHING);
    clave__message_header(&m, xid, zxid, err);
    clave__message_end(&m, true);
}

static void request_authenticate(struct server_conn *c, const struct wire_request *q,
                                 const struct request_op *op)
{
    (void)op;
    const struct wire_auth *m = &q->body.auth;
    clave_err err =
        q->malformed ? CLAVE_EAUTHFAILED : clave__identities_add(&c->who, m->scheme, m->auth);
    if (err == CLAVE_ENOMEM) {
        clave__conn_cut(c);
        return;
    }
    clave__identities_note_super(&c->who, clave__jbytes(c->s->access.super_digest));
    if (c->state == CONN_RESUMING && clave__conn_is_known(c) && !clave__conn_take_up(c))
        return;
    request_reply_as_apache(c, q->xid, 0, err);
    if (err == CLAVE_OK)
        return;
    clave__conn_log(c, CLAVE_LOG_WARN, "%s is closed: authentication failed", c->peer.text);
    clave__conn_close(c);
}

/* There is no SASL. Apache without JAAS answers with no token and no error, at which kazoo begins
 * again and again until its session expires. This is Apache's answer to a wrong password, which
 * ends every client's attempt at once. The empty token is for Java's client: it reads one whatever
 * the error is. */
static void request_refuse_sasl(struct server_conn *c, const struct wire_request *q,
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

static void request_who_am_i(struct server_conn *c, const struct wire_request *q,
                             const struct request_op *op)
{
    (void)op;
    struct message m = clave__message_begin(c, SHOWS_NOTHING);
    clave__message_header(&m, q->xid, m.zxid, CLAVE_OK);
    clave__identities_put(&m.w, &c->who);
    clave__message_end(&m, true);
}

static void request_answer_ping(struct server_conn *c, const struct wire_request *q,
                                const struct request_op *op)
{
    (void)q;
    (void)op;
    clave__conn_reply(c, XID_PING, SHOWS_NOTHING, CLAVE_OK);
}

/* As Apache does: answers, then closes. */
static void server_request_refuse(struct server_conn *c, const struct wire_request *q)
{
    clave__conn_log(c, CLAVE_LOG_WARN, "%s is closed: unknown request type %d", c->peer.text,
                    (int)q->op);
    request_reply_as_apache(c, q->xid, -1, CLAVE_EUNIMPLEMENTED);
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
    [AT + OP_CHECK] = {.act = clave__write_check}, /* in a multi only */
    [AT + OP_MULTI] = {.answer = clave__conn_multi},

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
    [AT + OP_MULTI_READ] = {.answer = clave__conn_multi_read},

    [AT + OP_SET_WATCHES] = {.answer = clave__conn_watch, .act = clave__watch_op_set},
    [AT + OP_SET_WATCHES2] = {.answer = clave__conn_watch, .act = clave__watch_op_set},
    [AT + OP_ADD_WATCH] = {.answer = clave__conn_watch, .act = clave__watch_op_add},
    [AT + OP_CHECK_WATCHES] = {.answer = clave__conn_watch, .act = clave__watch_op_check},
    [AT + OP_REMOVE_WATCHES] = {.answer = clave__conn_watch, .act = clave__watch_op_remove},

    [AT + OP_PING] = {.answer = request_answer_ping},
    [AT + OP_AUTH] = {.answer = request_authenticate},
    [AT + OP_SASL] = {.answer = request_refuse_sasl},
    [AT + OP_WHO_AM_I] = {.answer = request_who_am_i},
    [AT + OP_CLOSE_SESSION] = {.answer = clave__conn_close_session},
};

const struct request_op *clave__request_op(int32_t op)
{
    static const struct request_op none;
    size_t at = clave__opcode_place(op);
    return at < sizeof request_ops / sizeof *request_ops ? &request_ops[at] : &none;
}

/* What harms nobody before the client has authenticated. The session that it made on this
 * connection it may keep, and end while it holds nothing. If it is RESUMING, a ping does not keep
 * the session, so no answer may say that it goes on. */
static bool request_is_harmless(const struct server_conn *c, int32_t op)
{
    if (op == OP_AUTH)
        return true;
    return c->state == CONN_SERVING &&
           (op == OP_SASL || op == OP_PING ||
            (op == OP_CLOSE_SESSION && !clave__tree_find_owner(&c->s->tree, c->session->id)));
}

/* As Apache with enforce.auth.enabled, which however refuses a ping and closeSession, too. What
 * comes before the client has authenticated is answered with an error, and is the last. */
static bool request_is_let_in(struct server_conn *c, const struct wire_request *q)
{
    if (clave__conn_is_known(c)) /* the rule may have been switched off just now */
        return c->state == CONN_SERVING || clave__conn_take_up(c);
    if (request_is_harmless(c, q->op))
        return true;
    struct server *s = c->s;
    if (clave__refusals_note(&s->refused.strange, s->now))
        clave__conn_log(
            c, CLAVE_LOG_WARN,
            "%s is closed, and %llu before it: it has not authenticated (--require-auth %s)",
            c->peer.text, (unsigned long long)s->refused.strange.count - 1, s->access.require_auth);
    request_reply_as_apache(c, q->xid, 0, CLAVE_ESASLREQUIRED);
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
    if (q.xid >= 0) /* the client's last real request, as Apache shows it */
        c->last_xid = q.xid;
    if (q.op >= 0 && (size_t)q.op < sizeof s->counts.requests / sizeof *s->counts.requests)
        s->counts.requests[q.op]++;
    const struct request_op *op = clave__request_op(q.op);
    if (!request_is_let_in(c, &q))
        return;
    /* As in Apache, packets that only authenticate are no sign of life; nor is what is refused. */
    if (q.op != OP_AUTH && q.op != OP_SASL)
        clave__session_heard(&s->sessions, c->session);
    if (c->who.is_super && clave__session_nodes_answer(c, &q))
        ; /* answered */
    else if (op->answer)
        op->answer(c, &q, op);
    else
        server_request_refuse(c, &q);
    if (s->limits.slow_ms > 0)
        clave__slow_requests_note(c, work, p, n);
}
