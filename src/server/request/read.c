/* read.c - requests that do not change the tree: exists, getData, getChildren, getACL, sync and so
 * on, and those that set, check and remove watches. The table in request.c dispatches to them;
 * multiRead is there, the table of watches in tree/watch.c.
 *
 * A reply waits until the newest transaction that it can show is durable, and for nothing else
 * (conn.h): reading what is on the disk does not wait for another client's write. The reply to a
 * sync waits for everything before it.
 *
 * What must stay true: clave__visible_zxid_at may return a zxid that is too new, which merely
 * delays an answer, but never one that is too old, which would show what a power cut may undo. */
#include "server/request/request.h"

#include <assert.h>
#include <string.h>

#include "base/path.h"
#include "server/connection/conn.h"

/* ---- what an answer has to wait for ---------------------------------------------------------- */

/* The newest transaction that "there is no such node" can show. Deleting a node leaves the zxid in
 * its parent's pzxid; if the parent is gone as well, that of the parent's own deletion is in the
 * grandparent, and so on. */
static int64_t visible_by_absence(const struct server *s, struct jbytes path)
{
    enum { MOST_STEPS = 8 }; /* each step hashes the path */
    const struct node *living = NULL;
    for (int left = MOST_STEPS; !living && left > 0; left--) {
        path.n = (int32_t)clave__path_parent_len(path.p, (size_t)path.n);
        living = clave__tree_find(&s->tree, path);
    }
    return living ? living->stat.pzxid : s->last_zxid;
}

/* True for nodes with figures of quotas. The server updates those without a transaction, so they
 * carry no zxid of the update. */
static bool visible_is_of_quota(const struct node *n)
{
    static const char quota[] = "/zookeeper/quota/";
    enum { LEN = sizeof quota - 1 };
    return n->path_len > LEN && memcmp(clave__node_path(n), quota, LEN) == 0;
}

int64_t clave__visible_zxid_at(const struct server *s, struct jbytes path, const struct node *n)
{
    if (s->last_zxid == s->txn_log.durable_zxid || path.n < 0)
        return SHOWS_NOTHING;
    if (!n)
        return visible_by_absence(s, path);
    if (visible_is_of_quota(n))
        return s->last_zxid;
    /* A setACL leaves no zxid in its node, and any of them may be the reason why this client is
     * shown a node or not. */
    int64_t newest = s->tree.acl_zxid;
    newest = n->stat.mzxid > newest ? n->stat.mzxid : newest;
    return n->stat.pzxid > newest ? n->stat.pzxid : newest;
}

/* ---- finding --------------------------------------------------------------------------------- */

clave_err clave__read_find(const struct server_conn *c, const struct request_op *op,
                           struct jbytes path, struct node **out)
{
    *out = NULL;
    if (path.n < 0)
        return CLAVE_EMARSHALLING;
    *out = clave__tree_find(&c->s->tree, path);
    if (!*out)
        return CLAVE_ENONODE;
    return clave__acl_allows((*out)->acl, &c->who, op->perms) ? CLAVE_OK : CLAVE_ENOAUTH;
}

/* Adds a watch. One that is already set costs nothing, so the limits do not apply to it. Exceeding
 * a limit is answered with BADARGUMENTS: QUOTAEXCEEDED would say more, but clients older than 3.7,
 * and kazoo up to 2.8, fail on error codes that they do not know. */
static clave_err conn_add_watch(struct server_conn *c, struct jbytes path, unsigned marks)
{
    struct server *s = c->s;
    bool room = s->watches.count < s->refused.limits[LIMIT_WATCHES].most &&
                c->watcher.count < s->refused.limits[LIMIT_CONNECTION_WATCHES].most;
    if (!room && clave__watch_marks(&s->watches, &c->watcher, path, marks) != marks &&
        (!clave__client_limit_allows(c, LIMIT_CONNECTION_WATCHES, c->watcher.count + 1) ||
         !clave__client_limit_allows(c, LIMIT_WATCHES, s->watches.count + 1)))
        return CLAVE_EBADARGS;
    if (path.n > 0 && !clave__client_limit_allows(c, LIMIT_PATH, (size_t)path.n))
        return CLAVE_EBADARGS;
    return clave__watch_add(&s->watches, &c->watcher, path, marks);
}

/* Sets the watch that the request asks for, if its outcome allows one. */
static clave_err read_watch(struct server_conn *c, const struct wire_request *q, clave_err found)
{
    unsigned flags = clave__opcode(q->op)->flags;
    bool wanted = (flags & OPCODE_WATCH_ANY) && q->body.read.watch;
    bool absent = found == CLAVE_ENONODE && (flags & OPCODE_WATCH_ABSENT);
    if (!wanted || (found != CLAVE_OK && !absent))
        return CLAVE_OK;
    return conn_add_watch(c, q->body.read.path,
                          flags & OPCODE_WATCH_CHILD ? WATCH_CHILD : WATCH_DATA);
}

/* ---- what a reply contains of a node --------------------------------------------------------- */

void clave__read_exists(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__node_put_stat(w, n);
}

void clave__read_data(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__jput_bytes(w, clave__node_data(n));
    clave__node_put_stat(w, n);
}

void clave__read_children(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__jput_int(w, n->stat.num_children);
    for (struct list *e = n->children.next; e != &n->children && !clave__jwriter_is_full(w);
         e = e->next)
        clave__jput_bytes(w, clave__node_name(LIST_ENTRY(e, struct node, sibling)));
}

void clave__read_children2(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    clave__read_children(w, c, n);
    clave__node_put_stat(w, n);
}

void clave__read_acl(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    if (clave__acl_allows(n->acl, &c->who, PERM_ADMIN))
        clave__jput_vec(w, clave__acl_entries(n->acl));
    else
        clave__acl_put_masked(w, n->acl);
    clave__node_put_stat(w, n);
}

void clave__read_number_below(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__jput_int(w, clave__node_below(n));
}

/* ---- answers --------------------------------------------------------------------------------- */

/* As in Apache, exists is the only read that checks the path's bytes. */
static bool read_is_bad_path(const struct wire_request *q)
{
    struct jbytes path = q->body.path;
    return q->op == OP_EXISTS && path.n > 0 && memchr(path.p, '\0', (size_t)path.n);
}

static int64_t read_shows(const struct server *s, const struct request_op *op,
                          const struct wire_request *q, const struct node *n, clave_err err)
{
    if (err == CLAVE_EMARSHALLING || err == CLAVE_EBADARGS)
        return SHOWS_NOTHING;
    return op->shows_others ? s->last_zxid : clave__visible_zxid_at(s, q->body.path, n);
}

void clave__conn_read(struct server_conn *c, const struct wire_request *q,
                      const struct request_op *op)
{
    struct node *n = NULL;
    clave_err err = CLAVE_EMARSHALLING;
    if (!q->malformed && read_is_bad_path(q))
        err = CLAVE_EBADARGS;
    else if (!q->malformed)
        err = clave__read_find(c, op, q->body.path, &n);
    clave_err watched = q->malformed ? CLAVE_OK : read_watch(c, q, err);
    if (watched == CLAVE_ENOMEM) {
        clave__conn_cut_without_memory(c);
        return;
    }
    if (watched != CLAVE_OK)
        err = watched;
    struct message m = clave__message_begin(c, read_shows(c->s, op, q, n, err));
    clave__message_header(&m, q->xid, m.zxid, err);
    if (err == CLAVE_OK)
        op->show(&m.w, c, n);
    clave__message_bound(&m);
    clave__message_end(&m, true);
}

/* By the time this reply leaves, everything before it is durable. */
void clave__conn_sync(struct server_conn *c, const struct wire_request *q,
                      const struct request_op *op)
{
    (void)op;
    struct message m = clave__message_begin(c, c->s->last_zxid);
    clave__message_header(&m, q->xid, m.zxid, q->malformed ? CLAVE_EMARSHALLING : CLAVE_OK);
    if (!q->malformed)
        clave__jput_bytes(&m.w, q->body.path);
    clave__message_end(&m, true);
}

static bool read_is_blank(struct jbytes s)
{
    for (int32_t i = 0; i < s.n; i++)
        if (s.p[i] != ' ')
            return false;
    return true;
}

/* The prefix is matched as text, not by path component; an empty prefix and "/" match
 * everything. */
static void read_put_ephemerals(struct jwriter *w, const struct server_conn *c,
                                struct jbytes prefix)
{
    const struct owner *o = clave__tree_find_owner(&c->s->tree, c->session->id);
    size_t at = clave__buf_len(w->b);
    size_t len = read_is_blank(prefix) ? 0 : (size_t)prefix.n;
    int32_t count = 0;
    clave__jput_int(w, 0);
    for (struct list *e = o ? o->nodes.next : NULL;
         e && e != &o->nodes && !clave__jwriter_is_full(w); e = e->next) {
        const struct node *n = &LIST_ENTRY(e, struct owned_node, link)->node;
        if (len > 0 && (n->path_len < len || memcmp(clave__node_path(n), prefix.p, len) != 0))
            continue;
        clave__jput_bytes(w, clave__node_path_bytes(n));
        count++;
    }
    clave__jput_int_at(w, at, count);
}

void clave__conn_ephemerals(struct server_conn *c, const struct wire_request *q,
                            const struct request_op *op)
{
    (void)op;
    struct message m = clave__message_begin(c, c->s->last_zxid);
    clave__message_header(&m, q->xid, m.zxid, q->malformed ? CLAVE_EMARSHALLING : CLAVE_OK);
    if (!q->malformed)
        read_put_ephemerals(&m.w, c, q->body.path);
    clave__message_bound(&m);
    clave__message_end(&m, true);
}

/* ---- setWatches: catching up on missed events ------------------------------------------------ */

/* One kind of watch in a setWatches: for each path, the client gets the event that it missed while
 * it was disconnected or, if there was none, its watch again. */
struct catch_up {
    struct server_conn *c;
    int64_t since; /* the newest zxid that the client has seen */
    unsigned mark;
    int32_t (*missed)(const struct node *n, int64_t since); /* the type of event missed; 0: none */
};

static int32_t watch_missed_by_data(const struct node *n, int64_t since)
{
    if (!n)
        return EVENT_DELETED;
    return n->stat.mzxid > since ? EVENT_DATA_CHANGED : 0;
}

static int32_t watch_missed_by_exist(const struct node *n, int64_t since)
{
    (void)since;
    return n ? EVENT_CREATED : 0;
}

static int32_t watch_missed_by_child(const struct node *n, int64_t since)
{
    if (!n)
        return EVENT_DELETED;
    return n->stat.pzxid > since ? EVENT_CHILDREN_CHANGED : 0;
}

/* Sets a persistent watch again; it does not report past events. */
static int32_t watch_missed_by_persistent(const struct node *n, int64_t since)
{
    (void)n;
    (void)since;
    return 0;
}

static clave_err watch_catch_up_paths(const struct catch_up *u, struct jvec paths)
{
    assert(u->mark != 0 && u->missed);
    struct server *s = u->c->s;
    struct jreader r = clave__jvec_reader(paths);
    for (int32_t i = 0; i < paths.count; i++) {
        s->turn.looks += LOOKS_A_READ;
        struct jbytes path = clave__jget_bytes(&r);
        if (path.n < 0)
            return CLAVE_EMARSHALLING;
        const struct node *n = clave__tree_find(&s->tree, path);
        int32_t type = u->missed(n, u->since);
        struct watch_event ev = {.type = type, .path = path};
        clave_err err = CLAVE_OK;
        if (type != 0)
            clave__conn_send_event(u->c, clave__visible_zxid_at(s, path, n), -1, &ev);
        else
            err = conn_add_watch(u->c, path, u->mark);
        if (err != CLAVE_OK)
            return err;
    }
    return CLAVE_OK;
}

clave_err clave__watch_op_set(struct server_conn *c, int32_t op, const union wire_body *body)
{
    const struct wire_set_watches *m = &body->watches;
    (void)op;
    const struct {
        struct jvec paths;
        unsigned mark;
        int32_t (*missed)(const struct node *n, int64_t since);
    } lists[] = {
        {m->data, WATCH_DATA, watch_missed_by_data},
        {m->exist, WATCH_DATA, watch_missed_by_exist},
        {m->child, WATCH_CHILD, watch_missed_by_child},
        {m->persistent, WATCH_PERSISTENT, watch_missed_by_persistent},
        {m->persistent_recursive, WATCH_RECURSIVE, watch_missed_by_persistent},
    };
    clave_err err = CLAVE_OK;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && err == CLAVE_OK; i++) {
        struct catch_up u = {c, m->relative_zxid, lists[i].mark, lists[i].missed};
        err = watch_catch_up_paths(&u, lists[i].paths);
    }
    /* Clients do not look at this answer, so failing to set a watch would mean an event that never
     * arrives. If a limit is exceeded, the client is therefore disconnected, as when memory runs
     * out. */
    return err == CLAVE_EBADARGS ? CLAVE_ENOMEM : err;
}

/* ---- addWatch, checkWatches, removeWatches --------------------------------------------------- */

clave_err clave__watch_op_add(struct server_conn *c, int32_t op, const union wire_body *body)
{
    static const unsigned marks[] = {WATCH_PERSISTENT, WATCH_RECURSIVE};
    static_assert(ADD_WATCH_PERSISTENT == 0 && ADD_WATCH_PERSISTENT_RECURSIVE == 1,
                  "the types are the indices");
    const struct wire_path_type *m = &body->typed;
    (void)op;
    if (m->path.n < 0)
        return CLAVE_EMARSHALLING;
    if (m->type != ADD_WATCH_PERSISTENT && m->type != ADD_WATCH_PERSISTENT_RECURSIVE)
        return CLAVE_EMARSHALLING;
    return conn_add_watch(c, m->path, marks[m->type]);
}

static unsigned watch_marks_of_type(int32_t type)
{
    switch (type) {
    case WATCHER_CHILDREN:
        return WATCH_CHILD;
    case WATCHER_DATA:
        return WATCH_DATA;
    case WATCHER_ANY:
        return WATCH_ALL;
    case WATCHER_PERSISTENT:
        return WATCH_PERSISTENT;
    case WATCHER_PERSISTENT_RECURSIVE:
        return WATCH_RECURSIVE;
    default:
        return 0;
    }
}

clave_err clave__watch_op_check(struct server_conn *c, int32_t op, const union wire_body *body)
{
    const struct wire_path_type *m = &body->typed;
    unsigned marks = watch_marks_of_type(m->type);
    (void)op;
    if (marks == 0 || m->path.n < 0)
        return CLAVE_EMARSHALLING;
    bool set = clave__watch_marks(&c->s->watches, &c->watcher, m->path, marks) != 0;
    return set ? CLAVE_OK : CLAVE_ENOWATCHER;
}

clave_err clave__watch_op_remove(struct server_conn *c, int32_t op, const union wire_body *body)
{
    const struct wire_path_type *m = &body->typed;
    unsigned marks = watch_marks_of_type(m->type);
    if (marks != 0 && m->path.n < 0)
        return CLAVE_ENOWATCHER;
    clave_err err = clave__watch_op_check(c, op, body);
    if (err == CLAVE_OK)
        clave__watch_remove(&c->s->watches, &c->watcher, m->path, marks);
    return err;
}

/* ---- the answer to a request about watches --------------------------------------------------- */

void clave__conn_watch(struct server_conn *c, const struct wire_request *q,
                       const struct request_op *op)
{
    static const struct wire_reply none;
    clave_err err = q->malformed ? CLAVE_EMARSHALLING : op->act(c, q->op, &q->body);
    if (err == CLAVE_ENOMEM) {
        clave__conn_cut_without_memory(c);
        return;
    }
    /* A power cut cannot undo watches, so this has nothing to wait for beyond the messages before
     * it. */
    struct message m = clave__message_begin(c, SHOWS_NOTHING);
    clave__message_header(&m, q->xid, m.zxid, err);
    if (err == CLAVE_OK)
        clave__wire_put_reply(&m.w, q->op,
                              &none); /* the reply to addWatch is an ErrorResponse with code OK */
    clave__message_end(&m, true);
}
