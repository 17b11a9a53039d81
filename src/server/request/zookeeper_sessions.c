/* zookeeper_sessions.c - sessions as nodes, so that operators can list and end them; see request.h.
 * request.c calls it for each request of a super user.
 *
 * Ending a session must not let another client own what its holder still believes to hold. So the
 * session's connection is cut and nobody can resume it, but its nodes stay until it expires, as if
 * the holder could not reach the server. */
#include "server/request/request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char top[] = "/zookeeper/sessions";

/* ---- names ----------------------------------------------------------------------------------- */

/* SESSION_NODE_NOW is "0x.../now", which exists only to be deleted. */
enum session_node_kind {
    SESSION_NODE_NONE, /* any other path below `top` */
    SESSION_NODE_TOP,
    SESSION_NODE,
    SESSION_NODE_NOW
};

struct session_node {
    enum session_node_kind kind;
    struct session *session; /* of the last two kinds */
};

static bool zookeeper_sessions_parse(const char **p, const char *end, int64_t *id)
{
    uint64_t v = 0;
    int digits = 0;
    if (end - *p < 3 || memcmp(*p, "0x", 2) != 0)
        return false;
    for (*p += 2; *p < end && digits <= 16; ++*p, digits++) {
        const char *at = memchr("0123456789abcdef", **p, 16);
        if (!at)
            break;
        v = v << 4 | (uint64_t)(at - "0123456789abcdef");
    }
    *id = (int64_t)v;
    return digits > 0 && digits <= 16;
}

static bool zookeeper_sessions_begin(struct jbytes path)
{
    const int32_t n = sizeof top - 1;
    return path.n >= n && memcmp(path.p, top, (size_t)n) == 0 && (path.n == n || path.p[n] == '/');
}

static struct session_node zookeeper_sessions_find(const struct server *s, struct jbytes path)
{
    assert(zookeeper_sessions_begin(path));
    struct session_node found = {SESSION_NODE_NONE, NULL};
    const char *p = path.p + sizeof top - 1, *end = path.p + path.n;
    int64_t id;
    if (p == end) {
        found.kind = SESSION_NODE_TOP;
        return found;
    }
    p++;
    if (!zookeeper_sessions_parse(&p, end, &id))
        return found;
    found.session = clave__sessions_find(&s->sessions, id);
    if (found.session && p == end)
        found.kind = SESSION_NODE;
    else if (found.session && end - p == 4 && memcmp(p, "/now", 4) == 0)
        found.kind = SESSION_NODE_NOW;
    return found;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void zookeeper_sessions_put_names(struct jwriter *w, const struct server *s,
                                         const struct session_node *n)
{
    const struct map *table = &s->sessions.table;
    char name[24];
    clave__jput_int(w, n->kind == SESSION_NODE_TOP ? (int32_t)table->count : 0);
    if (n->kind != SESSION_NODE_TOP)
        return;
    for (struct map_node *at = NULL;
         !clave__jwriter_is_full(w) && (at = clave__map_next(table, at));) {
        snprintf(name, sizeof name, "0x%" PRIx64,
                 (uint64_t)MAP_ENTRY(at, struct session, in_table)->id);
        clave__jput_str(w, name);
    }
}

/* Writes one "name=value" line per property. */
static void zookeeper_sessions_put_data(struct jwriter *w, const struct server *s,
                                        const struct session_node *n)
{
    char text[300] = "";
    if (n->kind == SESSION_NODE) {
        const struct owner *o = clave__tree_find_owner(&s->tree, n->session->id);
        bool restore = n->session == s->sessions.of_restore; /* it belongs to nobody */
        snprintf(text, sizeof text,
                 "timeout_ms=%d\nexpires_in_ms=%" PRId64 "\nconnection=%s\nephemerals=%zu"
                 "\nending=%s\nrestore=%s\n",
                 (int)n->session->timeout_ms,
                 clave__session_expires(&s->sessions, n->session) - s->now,
                 n->session->conn ? n->session->conn->peer.text : "", o ? o->refs : 0,
                 n->session->barred && !restore ? "true" : "false", restore ? "true" : "false");
    }
    clave__jput_str(w, text);
}

static void zookeeper_sessions_show(struct server_conn *c, const struct wire_request *q,
                                    const struct session_node *n)
{
    const struct wire_stat none = {.czxid = 0};
    unsigned parts = clave__opcode(q->op)->reply;
    if (n->kind != SESSION_NODE_TOP && n->kind != SESSION_NODE) {
        clave__conn_reply(c, q->xid, c->s->last_zxid, CLAVE_ENONODE);
        return;
    }
    struct message m = clave__message_begin(c, c->s->last_zxid);
    clave__message_header(&m, q->xid, m.zxid, CLAVE_OK);
    if (parts & REPLY_DATA)
        zookeeper_sessions_put_data(&m.w, c->s, n);
    if (parts & REPLY_NAMES)
        zookeeper_sessions_put_names(&m.w, c->s, n);
    if (parts & REPLY_STAT)
        clave__wire_put_stat(&m.w, &none);
    clave__message_bound(&m);
    clave__message_end(&m, true);
}

/* ---- ending ---------------------------------------------------------------------------------- */

static clave_err zookeeper_sessions_end(struct server_conn *c, const struct session_node *n)
{
    struct server *s = c->s;
    struct session *session = n->session;
    assert(c->session); /* requests come from connections with a session */
    if (n->kind == SESSION_NODE_NONE)
        return CLAVE_ENONODE;
    if (n->kind == SESSION_NODE_TOP || session == c->session)
        return CLAVE_EBADARGS;
    bool now = n->kind == SESSION_NODE_NOW;
    clave__log(&s->log, CLAVE_LOG_WARN,
               "session 0x%" PRIx64 " is ended by %s, session 0x%" PRIx64
               ": its nodes are removed %s",
               (uint64_t)session->id, c->peer.text, (uint64_t)c->session->id,
               now ? "at once, whatever its client believes" : "when its time is over");
    session->barred = true;
    if (now)
        return clave__session_expire(s, session->id);
    if (session->conn)
        clave__conn_cut(session->conn);
    return CLAVE_OK;
}

bool clave__session_nodes_answer(struct server_conn *c, const struct wire_request *q)
{
    unsigned reads = REPLY_DATA | REPLY_NAMES | REPLY_STAT;
    bool deletes = q->op == OP_DELETE;
    bool shows = (clave__opcode(q->op)->flags & (OPCODE_WATCH_ANY | OPCODE_WATCH_ABSENT)) &&
                 (clave__opcode(q->op)->reply & reads);
    if (q->malformed || !(deletes || shows) || !zookeeper_sessions_begin(q->body.path))
        return false;
    struct session_node n = zookeeper_sessions_find(c->s, q->body.path);
    if (shows) {
        zookeeper_sessions_show(c, q, &n);
        return true;
    }
    clave_err err = zookeeper_sessions_end(c, &n);
    if (err == CLAVE_ENOMEM) {
        clave__conn_cut_without_memory(c);
        return true;
    }
    clave__audit_end_session(c, q->body.path, err);
    clave__conn_reply(c, q->xid, c->s->last_zxid, err);
    return true;
}
