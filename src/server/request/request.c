/* request.c - decodes a frame of a connection with a session and answers it by the table of
 * request.h. conn.c calls it for every frame after the handshake. A new opcode is a line in the
 * table here. */
#include "server/request/read.h"

#include <assert.h>

#include "server/connection/slow_requests.h"
#include "server/request/auth_ops.h"
#include "server/request/write.h"
#include "server/request/zookeeper_sessions.h"

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
    [AT + OP_AUTH] = {.answer = clave__auth_op_add},
    [AT + OP_SASL] = {.answer = clave__auth_op_sasl},
    [AT + OP_WHO_AM_I] = {.answer = clave__auth_op_who_am_i},
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
