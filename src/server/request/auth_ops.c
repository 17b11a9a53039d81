/* auth_ops.c - auth, sasl and whoAmI: requests about who the client is. The table in request.c
 * refers to them. Invariant: an answer of theirs shows nothing of the tree. */
#include "server/request/auth_ops.h"

void clave__auth_op_add(struct server_conn *c, const struct wire_request *q,
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
    clave__conn_reply_as_apache(c, q->xid, 0, err);
    if (err == CLAVE_OK)
        return;
    clave__conn_log(c, CLAVE_LOG_WARN, "%s is closed: authentication failed", c->peer.text);
    clave__conn_close(c);
}

/* There is no SASL. Apache without JAAS answers with no token and no error, at which kazoo begins
 * again and again until its session expires. This is Apache's answer to a wrong password, which
 * ends every client's attempt at once. The empty token is for Java's client: it reads one whatever
 * the error is. */
void clave__auth_op_sasl(struct server_conn *c, const struct wire_request *q,
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

void clave__auth_op_who_am_i(struct server_conn *c, const struct wire_request *q,
                             const struct request_op *op)
{
    (void)op;
    struct message m = clave__message_begin(c, SHOWS_NOTHING);
    clave__message_header(&m, q->xid, m.zxid, CLAVE_OK);
    clave__identities_put(&m.w, &c->who);
    clave__message_end(&m, true);
}
