/* end_session.c - closing and expiry of a session: one transaction that removes everything it owns.
 * request.c calls it for closeSession, server.c when a session's time has passed. The session
 * leaves the table only after the transaction has been logged. */
#include "server/request/audit.h"
#include "server/request/write.h"

/* An ephemeral node has no children, except in data written by others (TTL nodes from before 3.5.4,
 * for instance): its children go with it. */
static struct node *end_session_lowest_of(struct node *n)
{
    while (!list_empty(&n->children))
        n = LIST_ENTRY(n->children.next, struct node, sibling);
    return n;
}

static clave_err end_session_delete_owned(struct server *s, int64_t id)
{
    const struct owner *o = clave__tree_find_owner(&s->tree, id);
    if (o && !clave__txn_reserve(&s->txn, o->refs))
        return CLAVE_ENOMEM;
    while (o && !list_empty(&o->nodes)) {
        struct node *n =
            end_session_lowest_of(&LIST_ENTRY(o->nodes.next, struct owned_node, link)->node);
        struct change *c = clave__txn_add(&s->txn, OP_DELETE, clave__node_path_bytes(n));
        if (!c)
            return CLAVE_ENOMEM;
        c->node = n;
        clave__txn_make(&s->txn);
    }
    return CLAVE_OK;
}

static clave_err end_session(struct server *s, int64_t id, int32_t cxid, enum session_end how)
{
    clave__write_begin(s, id, cxid, OP_CLOSE_SESSION);
    clave_err err = end_session_delete_owned(s, id);
    err = err == CLAVE_OK ? clave__write_commit(s) : clave__write_fail(s, err);
    if (err != CLAVE_OK)
        return err;
    clave__audit_ephemerals(s, id);
    clave__txn_end(&s->txn);
    struct session *session = clave__sessions_find(&s->sessions, id);
    if (session && session->conn)
        session->conn->session = NULL;
    if (session && id != SESSION_OF_RESTORE)
        s->sessions.ends[session->barred ? SESSION_BARRED : how]++;
    if (session)
        clave__sessions_remove(&s->sessions, session);
    return CLAVE_OK;
}

void clave__conn_close_session(struct server_conn *c, const struct wire_request *q,
                               const struct request_op *op)
{
    (void)op;
    if (end_session(c->s, c->session->id, q->xid, SESSION_CLOSED) != CLAVE_OK) {
        clave__conn_cut(c);
        return;
    }
    clave__conn_reply(c, q->xid, c->s->last_zxid, CLAVE_OK);
    clave__conn_close(c);
}

clave_err clave__session_expire(struct server *s, int64_t id)
{
    const struct session *session = clave__sessions_find(&s->sessions, id);
    struct server_conn *c = session ? session->conn : NULL;
    clave_err err = end_session(s, id, 0, SESSION_EXPIRED);
    if (err != CLAVE_OK)
        return err;
    s->counts.sessions_expired++;
    if (id == SESSION_OF_RESTORE)
        clave__log(&s->log, CLAVE_LOG_INFO,
                   "the wait after the restore is over: ephemeral nodes are created again");
    else
        clave__log_about(&s->log, CLAVE_LOG_INFO, &(struct log_about){.session = id},
                         "session 0x%llx has expired", (unsigned long long)id);
    if (c)
        clave__conn_cut(c);
    return CLAVE_OK;
}
