/* request.c - the requests of clients that have a session, but for the end of the session itself:
 * decodes each frame and dispatches it by the table at the end of this file, in which a new opcode
 * is one line. conn.c calls it for every frame after the handshake.
 *
 * A reply waits until the newest transaction that it can show is durable, and for nothing else
 * (conn.h): reading what is on the disk does not wait for another client's write. The reply to a
 * sync waits for everything before it.
 *
 * A write is checked against the tree as it is, in ZooKeeper's order of checks, applied at once in
 * s->txn (store/txn.h) and committed (transaction.c). A multi makes several in one transaction.
 *
 * What must stay true: visible_zxid_at may return a zxid that is too new, which merely delays an
 * answer, but never one that is too old, which would show what a power cut may undo. A client whose
 * request fails for lack of memory is disconnected, never told something untrue. Where
 * authentication is required, a client that has not authenticated changes nothing that belongs to
 * others and keeps no session alive. A multi makes all of its changes or none, each operation sees
 * the ones before it, and the whole is one transaction of the log. */
#include "server/request/request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "server/connection/conn.h"

struct request_op;

/* Answers a request. */
typedef void request_answer(struct server_conn *c, const struct wire_request *q,
                            const struct request_op *op);
/* Checks an operation, whose body has been decoded, and carries it out: a write makes its change in
 * s->txn, where it sees the changes of the operations before it. Returns a code of ZooKeeper's, or
 * ENOMEM. */
typedef clave_err request_act(struct server_conn *c, int32_t op, const union wire_body *body);
/* Writes the part of a reply that describes a node. */
typedef void request_show(struct jwriter *w, const struct server_conn *c, const struct node *n);

struct request_op {
    request_answer *answer; /* NULL: not a request in its own right */
    request_act *act;       /* for writes and requests about watches */
    request_show *show;     /* for reads of a single node */
    int32_t perms; /* for reads: permissions on the node, of which the client needs at least one */
    bool shows_others; /* for reads: the reply also shows nodes below that one */
};

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

/* The newest transaction that an answer about this path can reveal, be it about the node or about
 * its absence (n is NULL). */
static int64_t visible_zxid_at(const struct server *s, struct jbytes path, const struct node *n)
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

/* Finds a node, checking that it exists and that the client has the permission that `op` needs;
 * otherwise returns ZooKeeper's code. */
static clave_err read_find(const struct server_conn *c, const struct request_op *op,
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

static void read_exists(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__node_put_stat(w, n);
}

static void read_data(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__jput_bytes(w, clave__node_data(n));
    clave__node_put_stat(w, n);
}

static void read_children(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    (void)c;
    clave__jput_int(w, n->stat.num_children);
    for (struct list *e = n->children.next; e != &n->children && !clave__jwriter_is_full(w);
         e = e->next)
        clave__jput_bytes(w, clave__node_name(LIST_ENTRY(e, struct node, sibling)));
}

static void read_children2(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    read_children(w, c, n);
    clave__node_put_stat(w, n);
}

static void read_acl(struct jwriter *w, const struct server_conn *c, const struct node *n)
{
    if (clave__acl_allows(n->acl, &c->who, PERM_ADMIN))
        clave__jput_vec(w, clave__acl_entries(n->acl));
    else
        clave__acl_put_masked(w, n->acl);
    clave__node_put_stat(w, n);
}

static void read_number_below(struct jwriter *w, const struct server_conn *c, const struct node *n)
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
    return op->shows_others ? s->last_zxid : visible_zxid_at(s, q->body.path, n);
}

static void conn_read(struct server_conn *c, const struct wire_request *q,
                      const struct request_op *op)
{
    struct node *n = NULL;
    clave_err err = CLAVE_EMARSHALLING;
    if (!q->malformed && read_is_bad_path(q))
        err = CLAVE_EBADARGS;
    else if (!q->malformed)
        err = read_find(c, op, q->body.path, &n);
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
static void conn_sync(struct server_conn *c, const struct wire_request *q,
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

static void conn_ephemerals(struct server_conn *c, const struct wire_request *q,
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
            clave__conn_send_event(u->c, visible_zxid_at(s, path, n), -1, &ev);
        else
            err = conn_add_watch(u->c, path, u->mark);
        if (err != CLAVE_OK)
            return err;
    }
    return CLAVE_OK;
}

static clave_err watch_op_set(struct server_conn *c, int32_t op, const union wire_body *body)
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

static clave_err watch_op_add(struct server_conn *c, int32_t op, const union wire_body *body)
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

static clave_err watch_op_check(struct server_conn *c, int32_t op, const union wire_body *body)
{
    const struct wire_path_type *m = &body->typed;
    unsigned marks = watch_marks_of_type(m->type);
    (void)op;
    if (marks == 0 || m->path.n < 0)
        return CLAVE_EMARSHALLING;
    bool set = clave__watch_marks(&c->s->watches, &c->watcher, m->path, marks) != 0;
    return set ? CLAVE_OK : CLAVE_ENOWATCHER;
}

static clave_err watch_op_remove(struct server_conn *c, int32_t op, const union wire_body *body)
{
    const struct wire_path_type *m = &body->typed;
    unsigned marks = watch_marks_of_type(m->type);
    if (marks != 0 && m->path.n < 0)
        return CLAVE_ENOWATCHER;
    clave_err err = watch_op_check(c, op, body);
    if (err == CLAVE_OK)
        clave__watch_remove(&c->s->watches, &c->watcher, m->path, marks);
    return err;
}

/* ---- the answer to a request about watches --------------------------------------------------- */

static void conn_watch(struct server_conn *c, const struct wire_request *q,
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

/* ---- checks ---------------------------------------------------------------------------------- */

/* Checks whether the path looks like a path at all (EMARSHALLING, EBADARGS). Apache's order is this
 * check, then whether it is a valid path (EBADARGS), then permissions (ENOAUTH). */
static clave_err write_check_shape(struct jbytes path)
{
    if (path.n < 0)
        return CLAVE_EMARSHALLING;
    size_t n = (size_t)path.n;
    if (n == 0 || memchr(path.p, '\0', n) || !memchr(path.p, '/', n))
        return CLAVE_EBADARGS;
    return CLAVE_OK;
}

/* Checks that the path is valid. Here a null path is a bad argument, while write_check_shape takes
 * it for a malformed request: operations of Apache make the two checks in different orders. */
static clave_err write_check_path(struct jbytes path)
{
    if (path.n < 0)
        return CLAVE_EBADARGS;
    return clave__path_fault(path.p, (size_t)path.n, false) ? CLAVE_EBADARGS : CLAVE_OK;
}

static bool write_is_special(struct jbytes path)
{
    static const char *const special[] = {"/", "/zookeeper", "/zookeeper/quota",
                                          "/zookeeper/config"};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (clave__jbytes_eq(path, clave__jbytes(special[i])))
            return true;
    return false;
}

static clave_err write_check_access(const struct node *n, const struct server_conn *c, int32_t perm)
{
    return clave__acl_allows(n->acl, &c->who, perm) ? CLAVE_OK : CLAVE_ENOAUTH;
}

/* Version -1 matches every node; any other must equal the node's. */
static clave_err write_check_version(int32_t expected, int32_t version)
{
    return expected == -1 || expected == version ? CLAVE_OK : CLAVE_EBADVERSION;
}

static int32_t write_next_version(int32_t version)
{
    return (int32_t)((uint32_t)version + 1);
}

/* Adds a change of node n to s->txn without making it yet. ENOMEM. */
static clave_err write_add_change(struct server *s, int32_t type, struct jbytes path,
                                  struct node *n, struct change **out)
{
    struct change *c = clave__txn_add(&s->txn, type, path);
    if (!c)
        return CLAVE_ENOMEM;
    c->node = n;
    *out = c;
    return CLAVE_OK;
}

/* ---- create -----------------------------------------------------------------------------------
 */

/* With this many sequence numbers left below a parent, the log says so, once. */
enum { FEW_NUMBERS = 10000000 };

static bool create_is_sequential(int32_t mode)
{
    return mode == MODE_PERSISTENT_SEQUENTIAL || mode == MODE_EPHEMERAL_SEQUENTIAL ||
           mode == MODE_PERSISTENT_SEQUENTIAL_TTL;
}

static bool create_has_ttl(int32_t mode)
{
    return mode == MODE_PERSISTENT_TTL || mode == MODE_PERSISTENT_SEQUENTIAL_TTL;
}

/* The opcode and the mode must agree on whether the node has a TTL. */
static clave_err create_check_mode(const struct server *s, int32_t op, const struct wire_create *m)
{
    if (m->flags < MODE_PERSISTENT || m->flags > MODE_PERSISTENT_SEQUENTIAL_TTL)
        return CLAVE_EBADARGS;
    if (create_has_ttl(m->flags) && !s->limits.extended_types)
        return CLAVE_EUNIMPLEMENTED;
    if (create_has_ttl(m->flags) != (op == OP_CREATE_TTL))
        return CLAVE_EBADARGS;
    bool in_range = m->ttl_ms > 0 && m->ttl_ms <= OWNER_MOST_TTL_MS;
    return op == OP_CREATE_TTL && !in_range ? CLAVE_EBADARGS : CLAVE_OK;
}

/* Only the opcode createContainer makes a container; with any other, the mode CONTAINER makes a
 * plain node. */
static int64_t create_owner_of(const struct server_conn *c, int32_t op, const struct wire_create *m)
{
    int32_t mode = m->flags;
    if (op == OP_CREATE_CONTAINER)
        return OWNER_CONTAINER;
    if (op == OP_CREATE_TTL)
        return clave__owner_of_ttl(m->ttl_ms);
    return mode == MODE_EPHEMERAL || mode == MODE_EPHEMERAL_SEQUENTIAL ? c->session->id : 0;
}

/* True if the parent has a sequence number left. When Apache runs out it hands out the last number
 * again and again, and two nodes with the same number are two holders of one lock. */
static bool create_has_number(struct server_conn *c, const struct node *parent)
{
    if (parent->stat.cversion == INT32_MAX - FEW_NUMBERS)
        clave__log(&c->s->log, CLAVE_LOG_WARN,
                   "%d sequence numbers are left below %.*s: continue below another node",
                   FEW_NUMBERS, (int)parent->path_len, clave__node_path(parent));
    return clave__client_limit_allows(c, LIMIT_SEQUENCE,
                                      (size_t)(uint32_t)parent->stat.cversion + 1);
}

/* Appends the sequence number: the parent's stored cversion, which counts how many children were
 * ever created. */
static clave_err create_append_sequence(struct server *s, const struct node *parent,
                                        struct jbytes *path)
{
    char digits[16];
    int n = snprintf(digits, sizeof digits, "%010d", (int)parent->stat.cversion);
    clave__buf_clear(&s->scratch.name);
    clave_err err = clave__buf_append(&s->scratch.name, path->p, (size_t)path->n);
    if (err == CLAVE_OK)
        err = clave__buf_append(&s->scratch.name, digits, (size_t)n);
    if (err != CLAVE_OK)
        return CLAVE_ENOMEM;
    *path = clave__jbytes_n(clave__buf_bytes(&s->scratch.name), clave__buf_len(&s->scratch.name));
    return CLAVE_OK;
}

/* Checks the lengths of name and path, and the depth. A path with fewer bytes than the depth allows
 * nodes cannot be too deep, so it is not counted. */
static clave_err create_check_size(struct server_conn *c, struct jbytes path)
{
    const struct limit_state *limits = c->s->refused.limits;
    size_t n = (size_t)path.n, parent = clave__path_parent_len(path.p, n), depth = 0;
    if (!clave__client_limit_allows(c, LIMIT_NAME, n - parent - (parent > 1 ? 1 : 0)))
        return CLAVE_EBADARGS;
    for (size_t i = 0; n > limits[LIMIT_DEPTH].most && i < n; i++)
        depth += path.p[i] == '/';
    bool fits = clave__client_limit_allows(c, LIMIT_PATH, n) &&
                clave__client_limit_allows(c, LIMIT_DEPTH, depth);
    return fits ? CLAVE_OK : CLAVE_EBADARGS;
}

/* Checks whether a node may be created at this path. */
static clave_err create_check_place(struct server_conn *c, const struct node *parent,
                                    struct jbytes path)
{
    const struct server *s = c->s;
    clave_err err = write_check_path(path);
    if (err == CLAVE_OK)
        err = create_check_size(c, path);
    if (err != CLAVE_OK)
        return err;
    if (clave__tree_find(&s->tree, path))
        return CLAVE_ENODEEXISTS;
    if (clave__owner_kind(parent->stat.owner) == NODE_EPHEMERAL)
        return CLAVE_ENOCHILDREN;
    return CLAVE_OK;
}

/* After a restore, ephemeral nodes are refused for a while with OperationTimeout, an error at which
 * Curator and kazoo try again. */
static clave_err create_check_owner(const struct server *s, int64_t owner)
{
    bool refused = s->sessions.of_restore && clave__owner_kind(owner) == NODE_EPHEMERAL;
    return refused ? CLAVE_EOPTIMEOUT : CLAVE_OK;
}

static clave_err create_node(struct server *s, struct change *c, const struct wire_create *m,
                             struct jvec acl)
{
    int32_t cversion = c->parent->stat.cversion;
    c->data = m->data;
    /* cversion stays at its maximum, as in Apache. */
    c->version = cversion < INT32_MAX ? cversion + 1 : cversion;
    c->acl = clave__acls_take(&s->tree.acls, acl, ACL_NEW_KEY);
    clave_err err = c->acl ? clave__txn_make(&s->txn) : CLAVE_ENOMEM;
    if (err == CLAVE_OK)
        c->path =
            clave__node_path_bytes(c->node); /* the node's own copy, which outlives the request */
    return err;
}

static clave_err write_create(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_create *m = &body->create;
    struct jbytes path = m->path;
    struct jvec acl;
    struct change *change;
    int64_t owner = create_owner_of(c, op, m);
    clave_err err = create_check_mode(s, op, m);
    if (err == CLAVE_OK)
        err = write_check_shape(path);
    if (err == CLAVE_OK)
        err = clave__acl_fix_up(m->acl, &c->who, &s->scratch.request, &acl);
    if (err != CLAVE_OK)
        return err;
    struct node *parent = clave__tree_find_parent(&s->tree, path);
    if (!parent)
        return CLAVE_ENONODE;
    err = write_check_access(parent, c, PERM_CREATE);
    if (err == CLAVE_OK && create_is_sequential(m->flags))
        err = create_has_number(c, parent) ? create_append_sequence(s, parent, &path)
                                           : CLAVE_EBADARGS;
    if (err == CLAVE_OK)
        err = create_check_place(c, parent, path);
    if (err == CLAVE_OK && s->limits.enforce_quota)
        err = clave__quota_check(s, path, 1, 0, m->data.n);
    if (err == CLAVE_OK)
        err = create_check_owner(s, owner);
    if (err == CLAVE_OK)
        err = write_add_change(s, op, path, NULL, &change);
    if (err != CLAVE_OK)
        return err;
    change->parent = parent;
    change->owner = owner;
    return create_node(s, change, m, acl);
}

/* Refuses a reconfig: this server is not an ensemble. */
static clave_err write_reconfig(struct server_conn *c, int32_t op, const union wire_body *body)
{
    (void)c;
    (void)op;
    (void)body;
    return CLAVE_ERECONFIGDISABLED;
}

/* ---- delete, setData, setACL, check ---------------------------------------------------------- */

static clave_err write_find_child(const struct server *s, const struct server_conn *c,
                                  struct jbytes path, struct node **out)
{
    clave_err err = write_check_shape(path);
    if (err != CLAVE_OK)
        return err;
    if (write_is_special(path))
        return CLAVE_EBADARGS;
    const struct node *parent = clave__tree_find_parent(&s->tree, path);
    if (!parent)
        return CLAVE_ENONODE;
    err = write_check_access(parent, c, PERM_DELETE);
    if (err != CLAVE_OK)
        return err;
    *out = clave__tree_find(&s->tree, path);
    return *out ? CLAVE_OK : CLAVE_ENONODE;
}

static clave_err write_delete(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_path_version *m = &body->check;
    struct node *n;
    struct change *change;
    clave_err err = write_find_child(s, c, m->path, &n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.version);
    if (err == CLAVE_OK && n->stat.num_children > 0)
        err = CLAVE_ENOTEMPTY;
    if (err == CLAVE_OK)
        err = write_add_change(s, op, m->path, n, &change);
    return err == CLAVE_OK ? clave__txn_make(&s->txn) : err;
}

/* deleteContainer is meant for the server itself. A client may send it, but can do no more with it
 * than with delete, and cannot delete ephemeral nodes. */
static clave_err write_delete_container(struct server_conn *c, int32_t op,
                                        const union wire_body *body)
{
    struct server *s = c->s;
    struct node *n;
    struct change *change;
    clave_err err = write_find_child(s, c, body->path, &n);
    if (err == CLAVE_OK && n->stat.num_children > 0)
        err = CLAVE_ENOTEMPTY;
    if (err == CLAVE_OK && clave__owner_kind(n->stat.owner) == NODE_EPHEMERAL)
        err = CLAVE_EBADVERSION;
    if (err == CLAVE_OK)
        err = write_add_change(s, op, body->path, n, &change);
    return err == CLAVE_OK ? clave__txn_make(&s->txn) : err;
}

/* Finds the node; checks that it exists and that the connection has the given permission on it. */
static clave_err write_find_node(const struct server *s, const struct server_conn *c,
                                 struct jbytes path, int32_t perm, struct node **out)
{
    *out = clave__tree_find(&s->tree, path);
    return *out ? write_check_access(*out, c, perm) : CLAVE_ENONODE;
}

static clave_err write_set_data(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_set_data *m = &body->set;
    struct node *n;
    struct change *change;
    clave_err err = write_check_path(m->path);
    if (err == CLAVE_OK)
        err = write_find_node(s, c, m->path, PERM_WRITE, &n);
    if (err == CLAVE_OK && s->limits.enforce_quota)
        err = clave__quota_check(s, m->path, 0, n->data_len, m->data.n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.version);
    if (err == CLAVE_OK)
        err = write_add_change(s, op, m->path, n, &change);
    if (err != CLAVE_OK)
        return err;
    change->data = m->data;
    change->version = write_next_version(n->stat.version);
    return clave__txn_make(&s->txn);
}

static clave_err write_set_acl(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_set_acl *m = &body->set_acl;
    struct node *n;
    struct jvec acl;
    struct change *change;
    clave_err err = write_check_path(m->path);
    if (err == CLAVE_OK)
        err = clave__acl_fix_up(m->acl, &c->who, &s->scratch.request, &acl);
    if (err == CLAVE_OK)
        err = write_find_node(s, c, m->path, PERM_ADMIN, &n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.aversion);
    if (err == CLAVE_OK)
        err = write_add_change(s, op, m->path, n, &change);
    if (err != CLAVE_OK)
        return err;
    change->version = write_next_version(n->stat.aversion);
    change->acl = clave__acls_take(&s->tree.acls, acl, ACL_NEW_KEY);
    return change->acl ? clave__txn_make(&s->txn) : CLAVE_ENOMEM;
}

static clave_err write_check(struct server_conn *c, int32_t op, const union wire_body *body)
{
    struct server *s = c->s;
    const struct wire_path_version *m = &body->check;
    struct node *n;
    struct change *change;
    clave_err err = write_check_path(m->path);
    if (err == CLAVE_OK)
        err = write_find_node(s, c, m->path, PERM_READ, &n);
    if (err == CLAVE_OK)
        err = write_check_version(m->version, n->stat.version);
    if (err == CLAVE_OK)
        err = write_add_change(s, op, m->path, n, &change);
    if (err == CLAVE_OK)
        change->version =
            write_next_version(n->stat.version); /* the resulting one, as in Apache's log */
    return err;
}

/* ---- a write outside a multi ----------------------------------------------------------------- */

/* Writes the body of the reply to an operation that made this change, with the Stat as it is
 * now. */
static void write_put_reply(struct jwriter *w, int32_t op, const struct change *c)
{
    unsigned parts = clave__opcode(op)->reply;
    assert(!(parts & REPLY_STAT) || c->state == CHANGE_DONE); /* otherwise there is no node */
    if (parts & REPLY_PATH)
        clave__jput_bytes(w, c->path);
    if (parts & REPLY_STAT)
        clave__node_put_stat(w, c->node);
}

static void conn_write(struct server_conn *c, const struct wire_request *q,
                       const struct request_op *op)
{
    struct server *s = c->s;
    struct txn *t = &s->txn;
    clave__write_begin(s, c->session->id, q->xid, q->op);
    clave_err err = q->malformed ? CLAVE_EMARSHALLING : op->act(c, q->op, &q->body);
    if (err == CLAVE_OK)
        t->head.type = t->changes[0].type; /* logged with the type of its change */
    clave_err logged = err == CLAVE_OK ? clave__write_commit(s) : clave__write_fail(s, err);
    if (logged != CLAVE_OK) {
        clave__conn_cut_without_memory(c);
        return;
    }
    if (!q->malformed)
        clave__audit_write(c, q->op, &q->body, err == CLAVE_OK ? &t->changes[0] : NULL);
    struct message m = clave__message_begin(c, s->last_zxid);
    clave__message_header(&m, q->xid, m.zxid, err);
    if (err == CLAVE_OK)
        write_put_reply(&m.w, q->op, &t->changes[0]);
    clave__message_end(&m, true);
    clave__txn_end(t);
}

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
    write_put_reply(w, op, c);
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
    conn_write(c, &refused, op);
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
    clave_err err = read_find(c, op, part->body.path, &n);
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
        int64_t zxid = visible_zxid_at(s, path, clave__tree_find(&s->tree, path));
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
    [AT + OP_CREATE] = {.answer = conn_write, .act = write_create},
    [AT + OP_CREATE2] = {.answer = conn_write, .act = write_create},
    [AT + OP_CREATE_CONTAINER] = {.answer = conn_write, .act = write_create},
    [AT + OP_CREATE_TTL] = {.answer = conn_write, .act = write_create},
    [AT + OP_DELETE] = {.answer = conn_write, .act = write_delete},
    [AT + OP_DELETE_CONTAINER] = {.answer = conn_write, .act = write_delete_container},
    [AT + OP_SET_DATA] = {.answer = conn_write, .act = write_set_data},
    [AT + OP_SET_ACL] = {.answer = conn_write, .act = write_set_acl},
    [AT + OP_RECONFIG] = {.answer = conn_write, .act = write_reconfig},
    [AT + OP_CHECK] = {.act = write_check}, /* only inside a multi */
    [AT + OP_MULTI] = {.answer = conn_multi},

    [AT + OP_EXISTS] = {.answer = conn_read, .show = read_exists, .perms = READ},
    [AT + OP_GET_DATA] = {.answer = conn_read, .show = read_data, .perms = READ},
    [AT + OP_GET_CHILDREN] = {.answer = conn_read, .show = read_children, .perms = READ},
    [AT + OP_GET_CHILDREN2] = {.answer = conn_read, .show = read_children2, .perms = READ},
    [AT + OP_GET_ACL] = {.answer = conn_read, .show = read_acl, .perms = READ | PERM_ADMIN},
    [AT + OP_GET_ALL_CHILDREN_NUMBER] = {.answer = conn_read,
                                         .show = read_number_below,
                                         .perms = READ,
                                         .shows_others = true},
    [AT + OP_GET_EPHEMERALS] = {.answer = conn_ephemerals},
    [AT + OP_SYNC] = {.answer = conn_sync},
    [AT + OP_MULTI_READ] = {.answer = conn_multi_read},

    [AT + OP_SET_WATCHES] = {.answer = conn_watch, .act = watch_op_set},
    [AT + OP_SET_WATCHES2] = {.answer = conn_watch, .act = watch_op_set},
    [AT + OP_ADD_WATCH] = {.answer = conn_watch, .act = watch_op_add},
    [AT + OP_CHECK_WATCHES] = {.answer = conn_watch, .act = watch_op_check},
    [AT + OP_REMOVE_WATCHES] = {.answer = conn_watch, .act = watch_op_remove},

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
