/* session.c - sessions from the handshake to their end. conn.c passes in the first frame of a
 * connection, whose client then gets a new session, resumes the one it had, or is refused.
 * closeSession and expiry (server.c) end a session with a single transaction that removes
 * everything it owns. session_tracker.c decides when a session expires.
 *
 * What must stay true: a new session is logged before its id leaves the server. Resuming a session
 * logs nothing, so it never gets a longer timeout than the one in the log. An existing session
 * changes only for a client that clave__conn_is_known: passwords are derived from ids, so anyone
 * can compute them. A session leaves the table only after the transaction that ends it has been
 * logged. */
#include <assert.h>
#include <string.h>

#include "server/connection/conn.h"
#include "server/request/request.h"

/* ---- the response ---------------------------------------------------------------------------- */

static void connect_respond(struct server_conn *c, const struct wire_connect_request *q,
                            int64_t shows)
{
    uint8_t passwd[WIRE_PASSWORD_LEN] = {0};
    struct wire_connect_response r = {
        .timeout_ms = c->told_ms, .session_id = c->told_id, .has_read_only = q->has_read_only};
    if (c->told_id)
        clave__session_password(c->told_id, passwd);
    r.passwd = clave__jbytes_n(passwd, sizeof passwd);
    struct message m = clave__message_begin(c, shows);
    clave__wire_put_connect_response(&m.w, &r);
    clave__message_end(&m, false);
}

static void connect_attach(struct server_conn *c, struct session *session)
{
    assert(clave__conn_is_open(c) && !c->session && c->told_id == session->id);
    session->timeout_ms = c->told_ms;
    *clave__session_taken_by(session) = c->handshake;
    c->session = session;
    clave__session_attach(&c->s->sessions, session, c);
    c->state = CONN_SERVING;
    list_remove(&c->in_sessionless);
    clave__session_heard(&c->s->sessions, session);
}

/* Records which session the answer will name. From now on longer frames are allowed. */
static void connect_tell(struct server_conn *c, const struct session *session, int32_t timeout_ms)
{
    assert(c->told_id == 0); /* there is one handshake per connection */
    c->told_id = session->id;
    c->told_ms = timeout_ms;
    c->handshake = ++c->s->sessions.handshakes;
    c->frames.max_frame = c->s->limits.max_frame;
}

/* ---- a new session --------------------------------------------------------------------------- */

static clave_err connect_create_session(struct server *s, int32_t timeout_ms, struct session **out)
{
    int64_t id = clave__sessions_new_id(&s->sessions);
    clave_err err = clave__sessions_add(&s->sessions, id, timeout_ms, out);
    if (err != CLAVE_OK)
        return err;
    clave__write_begin(s, id, 0, OP_CREATE_SESSION);
    s->txn.timeout_ms = timeout_ms;
    err = clave__txn_log_append(s);
    clave__txn_end(&s->txn);
    if (err != CLAVE_OK)
        clave__sessions_remove(&s->sessions, *out);
    return err;
}

static bool connect_has_room_for_session(struct server_conn *c)
{
    const struct sessions *t = &c->s->sessions;
    return clave__client_limit_allows(c, LIMIT_SESSIONS, t->table.count + 1) &&
           clave__client_limit_allows(c, LIMIT_DISCONNECTED,
                                      clave__sessions_detached(t, &c->peer) + 1);
}

static void connect_open_session(struct server_conn *c, const struct wire_connect_request *q,
                                 int32_t timeout_ms)
{
    struct session *session;
    if (!connect_has_room_for_session(c) ||
        connect_create_session(c->s, timeout_ms, &session) != CLAVE_OK) {
        clave__conn_cut(c);
        return;
    }
    connect_tell(c, session, timeout_ms);
    connect_attach(c, session);
    clave__conn_log(c, CLAVE_LOG_DEBUG, "session 0x%llx of %s, %d ms",
                    (unsigned long long)session->id, c->peer.text, (int)timeout_ms);
    connect_respond(c, q, c->s->last_zxid);
}

/* ---- resuming a session ---------------------------------------------------------------------- */

static bool connect_is_password_of(int64_t id, struct jbytes passwd)
{
    uint8_t right[WIRE_PASSWORD_LEN];
    clave__session_password(id, right);
    return clave__jbytes_eq(passwd, clave__jbytes_n(right, sizeof right));
}

bool clave__conn_is_known(const struct server_conn *c)
{
    const char *schemes = c->s->access.require_auth;
    return !*schemes || c->peer.is_gate || clave__identities_have_scheme(&c->who, schemes);
}

/* True if the client has since resumed the session with a later handshake. It then relies on this:
 * whatever it sent on this connection and was not done by then never will be. */
static bool connect_is_superseded(const struct server_conn *c, struct session *session)
{
    return (int32_t)(*clave__session_taken_by(session) - c->handshake) > 0;
}

bool clave__conn_take_up(struct server_conn *c)
{
    assert(c->state == CONN_RESUMING);
    struct session *session = clave__sessions_find(&c->s->sessions, c->told_id);
    bool ended = !session || session->barred;
    if (ended || connect_is_superseded(c, session)) {
        clave__conn_log(c, CLAVE_LOG_INFO, "%s is closed: session 0x%llx %s", c->peer.text,
                        (unsigned long long)c->told_id,
                        ended ? "has ended before it authenticated"
                              : "has gone on with another connection since");
        clave__conn_close(c);
        return false;
    }
    if (session->conn)
        clave__conn_cut(session->conn);
    connect_attach(c, session);
    return true;
}

/* The reason why the client may not resume the session, as the beginning of a log message; NULL if
 * it may. */
static const char *connect_resume_fault(struct session *session, bool known, struct jbytes passwd)
{
    if (!session)
        return "there is no";
    if (session->barred)
        return "an operator has ended";
    if (!connect_is_password_of(session->id, passwd))
        return "wrong password for";
    if (!known && !clave__session_lend(session))
        return "nobody has authenticated in time for";
    return NULL;
}

/* Resumes a session. Nothing is logged, so the disk keeps the original timeout. Unlike in Apache,
 * the session therefore never gets a longer one: the client would rely on it, but a restarted
 * server would go by the one in the log. */
static void connect_resume_session(struct server_conn *c, const struct wire_connect_request *q,
                                   int32_t timeout_ms)
{
    struct session *session = clave__sessions_find(&c->s->sessions, q->session_id);
    bool known = clave__conn_is_known(c);
    /* Apache closes the older connection before it looks at the password. */
    if (known && session && session->conn)
        clave__conn_cut(session->conn);
    const char *fault = connect_resume_fault(session, known, q->passwd);
    if (fault) {
        clave__log_about(&c->s->log, CLAVE_LOG_INFO,
                         &(struct log_about){.connection = c->peer.text, .session = q->session_id},
                         "refused %s: %s session 0x%llx", c->peer.text, fault,
                         (unsigned long long)q->session_id);
        connect_respond(c, q, c->s->last_zxid); /* the session may have just ended, in a transaction
                                                   that is not durable yet */
        clave__conn_close(c);
        return;
    }
    /* A client that has yet to authenticate borrows the session, and the loan runs for the
     * session's present timeout. */
    int32_t most = known ? session->logged_timeout_ms : session->timeout_ms;
    connect_tell(c, session, timeout_ms < most ? timeout_ms : most);
    if (known)
        connect_attach(c, session);
    else
        c->state = CONN_RESUMING;
    connect_respond(c, q, SHOWS_NOTHING); /* the client already knew that the session existed */
}

/* As in Apache: the client has seen the state of another server, or state that this server has
 * lost. */
static void connect_refuse_newer(struct server_conn *c, int64_t seen)
{
    struct server *s = c->s;
    if (clave__refusals_note(&s->refused.newer, s->now))
        clave__conn_log(
            c, CLAVE_LOG_WARN,
            "refused %s, and %llu before it: it has seen zxid 0x%llx, the newest here is "
            "0x%llx. Either it was connected to another server, or the files here are an "
            "older copy: then fencing tokens will repeat, so stop, and make the directory "
            "with 'clave data restore'",
            c->peer.text, (unsigned long long)s->refused.newer.count - 1, (unsigned long long)seen,
            (unsigned long long)s->last_zxid);
    clave__conn_close(c);
}

static int32_t connect_negotiate(const struct server *s, int32_t asked_ms)
{
    if (asked_ms < s->limits.min_session_ms)
        return s->limits.min_session_ms;
    return asked_ms > s->limits.max_session_ms ? s->limits.max_session_ms : asked_ms;
}

void clave__conn_connect(struct server_conn *c, const uint8_t *p, size_t n)
{
    assert(c->state == CONN_NEW && !c->session);
    struct server *s = c->s;
    struct jreader r = clave__jreader(p, n);
    struct wire_connect_request q = clave__wire_get_connect_request(&r);
    s->counts.packets_received++;
    s->counts.connect_requests++;
    c->received++;
    if (r.bad) {
        clave__conn_log(c, CLAVE_LOG_WARN, "%s is closed: its first frame is not a ConnectRequest",
                        c->peer.text);
        clave__conn_close(c);
        return;
    }
    if (q.last_zxid_seen > s->last_zxid) {
        connect_refuse_newer(c, q.last_zxid_seen);
        return;
    }
    int32_t timeout_ms = connect_negotiate(s, q.timeout_ms);
    if (q.session_id == 0)
        connect_open_session(c, &q, timeout_ms);
    else
        connect_resume_session(c, &q, timeout_ms);
}

/* ---- the end of a session -------------------------------------------------------------------- */

/* The deepest node below n, or n itself. An ephemeral node has no children except in data written
 * by other software (TTL nodes from before 3.5.4, for instance); then its children go with it. */
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
        clave__conn_cut_without_memory(c);
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
