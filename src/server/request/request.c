/* request.c - decodes a frame of a connection with a session and dispatches it by opcode; also
 * answers the requests that concern the connection itself (auth, sasl, whoAmI). conn.c calls it for
 * every frame after the handshake. A new opcode needs a case in dispatch(). */
#include "server/request/read.h"
#include "server/request/write.h"

/* ---- the connection itself ------------------------------------------------------------------- */

static void authenticate(struct server_conn *c, const struct wire_request *q, bool malformed)
{
    const struct wire_auth *m = &q->body.auth;
    clave_err err =
        malformed ? CLAVE_EAUTHFAILED : clave__identities_add(&c->who, m->scheme, m->auth);
    if (err == CLAVE_ENOMEM) {
        clave__conn_cut(c);
        return;
    }
    clave__identities_note_super(&c->who, clave__jbytes(c->s->super_digest));
    clave__conn_reply(c, q->xid, 0, err);
    if (err == CLAVE_OK)
        return;
    clave__log(&c->s->log, CLAVE_LOG_WARN, "%s is closed: authentication failed", c->peer.text);
    clave__conn_close(c);
}

/* There is no SASL: answers with no token and no error. */
static void answer_sasl(struct server_conn *c, int32_t xid)
{
    struct message m = clave__message_begin(c);
    clave__message_header(&m, xid, 0, CLAVE_OK);
    clave__jput_bytes(&m.w, JBYTES_NULL);
    clave__message_end(&m, true);
}

static void who_am_i(struct server_conn *c, int32_t xid)
{
    struct message m = clave__message_begin(c);
    clave__message_header(&m, xid, c->s->last_zxid, CLAVE_OK);
    clave__identities_put(&m.w, &c->who);
    clave__message_end(&m, true);
}

/* As Apache does: answers, then closes. */
static void server_request_refuse(struct server_conn *c, int32_t xid, int32_t op)
{
    clave__log(&c->s->log, CLAVE_LOG_WARN, "%s is closed: unknown request type %d", c->peer.text,
               (int)op);
    clave__conn_reply(c, xid, -1, CLAVE_EUNIMPLEMENTED);
    clave__conn_close(c);
}

/* ---- dispatch -------------------------------------------------------------------------------- */

static void dispatch(struct server_conn *c, const struct wire_request *q, bool malformed)
{
    switch (q->op) {
    case OP_CREATE:
    case OP_CREATE2:
    case OP_CREATE_CONTAINER:
    case OP_CREATE_TTL:
    case OP_DELETE:
    case OP_DELETE_CONTAINER:
    case OP_SET_DATA:
    case OP_SET_ACL:
    case OP_RECONFIG:
        clave__conn_write(c, q, malformed);
        break;
    case OP_MULTI:
        clave__conn_multi(c, q, malformed);
        break;
    case OP_EXISTS:
    case OP_GET_DATA:
    case OP_GET_CHILDREN:
    case OP_GET_CHILDREN2:
    case OP_GET_ACL:
    case OP_GET_ALL_CHILDREN_NUMBER:
    case OP_GET_EPHEMERALS:
    case OP_SYNC:
        clave__conn_read(c, q, malformed);
        break;
    case OP_MULTI_READ:
        clave__conn_multi_read(c, q, malformed);
        break;
    case OP_SET_WATCHES:
    case OP_SET_WATCHES2:
    case OP_ADD_WATCH:
    case OP_CHECK_WATCHES:
    case OP_REMOVE_WATCHES:
        clave__conn_watch(c, q, malformed);
        break;
    case OP_PING:
        clave__conn_reply(c, XID_PING, c->s->last_zxid, CLAVE_OK);
        break;
    case OP_AUTH:
        authenticate(c, q, malformed);
        break;
    case OP_SASL:
        answer_sasl(c, q->xid);
        break;
    case OP_WHO_AM_I:
        who_am_i(c, q->xid);
        break;
    case OP_CLOSE_SESSION:
        clave__conn_close_session(c, q->xid);
        break;
    default: /* also check outside a multi, and createSession */
        server_request_refuse(c, q->xid, q->op);
        break;
    }
}

void clave__conn_request(struct server_conn *c, const uint8_t *p, size_t n)
{
    enum { HEADER = 8 };
    struct server *s = c->s;
    struct jreader r = clave__jreader(p, n);
    if (n < HEADER) {
        clave__log(&s->log, CLAVE_LOG_WARN, "%s is closed: it sent a request without a header",
                   c->peer.text);
        clave__conn_close(c);
        return;
    }
    struct wire_request q = clave__wire_get_request(&r);
    s->packets_received++;
    c->received++;
    c->last_op = q.op;
    c->last_xid = q.xid;
    if (q.op >= 0 && (size_t)q.op < sizeof s->requests / sizeof *s->requests)
        s->requests[q.op]++;
    /* As in Apache, an auth packet alone is not a sign of life. */
    if (q.op != OP_AUTH)
        clave__session_touch(&s->sessions, c->session);
    dispatch(c, &q, r.bad);
}
