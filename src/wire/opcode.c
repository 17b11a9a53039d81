/* opcode.c - requests and replies as bytes: the body of each request, the table of opcodes
 * (opcode.h), which says what the bodies of a request and of its reply consist of, and the records
 * of record.h around them. Each pair of functions mirrors one record of Apache's zookeeper.jute. A
 * new opcode is a number in proto.h and a line of the table; several opcodes share a body. Records
 * of the log have opcodes too, so some are here that no client sends. */
#include "wire/opcode.h"

#include <assert.h>
#include <string.h>

#include "wire/record.h"

/* How the body of a request is read and written. */
struct body_format {
    void (*get)(struct jreader *r, union wire_body *b); /* *b is all zero */
    void (*put)(struct jwriter *w, const union wire_body *b);
};

/* In front of each op of a multi, and of each result. */
struct multi_header {
    int32_t type;
    bool done;
    int32_t err;
};

/* For any other opcode we cannot tell where its body ends, so the whole list is invalid. */
static bool multi_may_have(int32_t op)
{
    return clave__opcode(op)->flags & (OPCODE_IN_MULTI | OPCODE_IN_MULTI_READ);
}

static struct wire_stat wire_get_stat(struct jreader *r)
{
    struct wire_stat s;
    s.czxid = clave__jget_long(r);
    s.mzxid = clave__jget_long(r);
    s.ctime = clave__jget_long(r);
    s.mtime = clave__jget_long(r);
    s.version = clave__jget_int(r);
    s.cversion = clave__jget_int(r);
    s.aversion = clave__jget_int(r);
    s.ephemeral_owner = clave__jget_long(r);
    s.data_length = clave__jget_int(r);
    s.num_children = clave__jget_int(r);
    s.pzxid = clave__jget_long(r);
    return s;
}

void clave__wire_put_stat(struct jwriter *w, const struct wire_stat *s)
{
    clave__jput_long(w, s->czxid);
    clave__jput_long(w, s->mzxid);
    clave__jput_long(w, s->ctime);
    clave__jput_long(w, s->mtime);
    clave__jput_int(w, s->version);
    clave__jput_int(w, s->cversion);
    clave__jput_int(w, s->aversion);
    clave__jput_long(w, s->ephemeral_owner);
    clave__jput_int(w, s->data_length);
    clave__jput_int(w, s->num_children);
    clave__jput_long(w, s->pzxid);
}

struct wire_acl clave__wire_get_acl(struct jreader *r)
{
    struct wire_acl a;
    a.perms = clave__jget_int(r);
    a.scheme = clave__jget_bytes(r);
    a.id = clave__jget_bytes(r);
    return a;
}

void clave__wire_put_acl(struct jwriter *w, const struct wire_acl *a)
{
    clave__jput_int(w, a->perms);
    clave__jput_bytes(w, a->scheme);
    clave__jput_bytes(w, a->id);
}

struct jvec clave__wire_get_acls(struct jreader *r)
{
    enum { LEAST = 12 }; /* perms and two empty strings */
    struct jvec v = {.count = clave__jget_count(r, LEAST), .p = r->p};
    for (int32_t i = 0; i < v.count && !r->bad; i++)
        clave__wire_get_acl(r);
    if (r->bad)
        return (struct jvec){0, NULL, 0};
    v.n = (size_t)(r->p - v.p);
    return v;
}

struct wire_connect_request clave__wire_get_connect_request(struct jreader *r)
{
    struct wire_connect_request m;
    m.protocol_version = clave__jget_int(r);
    m.last_zxid_seen = clave__jget_long(r);
    m.timeout_ms = clave__jget_int(r);
    m.session_id = clave__jget_long(r);
    m.passwd = clave__jget_bytes(r);
    m.has_read_only = !r->bad && r->n > 0;
    m.read_only = m.has_read_only && clave__jget_bool(r);
    return m;
}

void clave__wire_put_connect_request(struct jwriter *w, const struct wire_connect_request *m)
{
    clave__jput_int(w, m->protocol_version);
    clave__jput_long(w, m->last_zxid_seen);
    clave__jput_int(w, m->timeout_ms);
    clave__jput_long(w, m->session_id);
    clave__jput_bytes(w, m->passwd);
    if (m->has_read_only)
        clave__jput_bool(w, m->read_only);
}

struct wire_connect_response clave__wire_get_connect_response(struct jreader *r)
{
    struct wire_connect_response m;
    m.protocol_version = clave__jget_int(r);
    m.timeout_ms = clave__jget_int(r);
    m.session_id = clave__jget_long(r);
    m.passwd = clave__jget_bytes(r);
    m.has_read_only = !r->bad && r->n > 0;
    m.read_only = m.has_read_only && clave__jget_bool(r);
    return m;
}

void clave__wire_put_connect_response(struct jwriter *w, const struct wire_connect_response *m)
{
    clave__jput_int(w, m->protocol_version);
    clave__jput_int(w, m->timeout_ms);
    clave__jput_long(w, m->session_id);
    clave__jput_bytes(w, m->passwd);
    if (m->has_read_only)
        clave__jput_bool(w, m->read_only);
}

struct wire_reply_header clave__wire_get_reply_header(struct jreader *r)
{
    struct wire_reply_header h;
    h.xid = clave__jget_int(r);
    h.zxid = clave__jget_long(r);
    h.err = clave__jget_int(r);
    return h;
}

void clave__wire_put_reply_header(struct jwriter *w, const struct wire_reply_header *h)
{
    clave__jput_int(w, h->xid);
    clave__jput_long(w, h->zxid);
    clave__jput_int(w, h->err);
}

struct wire_event clave__wire_get_event(struct jreader *r)
{
    struct wire_event e;
    e.type = clave__jget_int(r);
    e.state = clave__jget_int(r);
    e.path = clave__jget_bytes(r);
    return e;
}

void clave__wire_put_event(struct jwriter *w, const struct wire_event *e)
{
    clave__jput_int(w, e->type);
    clave__jput_int(w, e->state);
    clave__jput_bytes(w, e->path);
}

/* ---- what frames the ops of a multi, and their results --------------------------------------- */

static struct multi_header multi_get_header(struct jreader *r)
{
    struct multi_header h;
    h.type = clave__jget_int(r);
    h.done = clave__jget_bool(r);
    h.err = clave__jget_int(r);
    return h;
}

static void multi_put_header(struct jwriter *w, int32_t type, bool done, int32_t err)
{
    clave__jput_int(w, type);
    clave__jput_bool(w, done);
    clave__jput_int(w, err);
}

void clave__wire_put_ops_end(struct jwriter *w)
{
    multi_put_header(w, -1, true, -1);
}

/* ---- bodies of requests: simple ones --------------------------------------------------------- */

static void request_get_none(struct jreader *r, union wire_body *b)
{
    (void)r;
    (void)b;
}

static void request_put_none(struct jwriter *w, const union wire_body *b)
{
    (void)w;
    (void)b;
}

static const struct body_format body_none = {request_get_none, request_put_none};

static void request_get_path(struct jreader *r, union wire_body *b)
{
    b->path = clave__jget_bytes(r);
}

static void request_put_path(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->path);
}

static const struct body_format body_path = {request_get_path, request_put_path};

static void request_get_read(struct jreader *r, union wire_body *b)
{
    b->read.path = clave__jget_bytes(r);
    b->read.watch = clave__jget_bool(r);
}

static void request_put_read(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->read.path);
    clave__jput_bool(w, b->read.watch);
}

static const struct body_format body_read = {request_get_read, request_put_read};

static void request_get_path_version(struct jreader *r, union wire_body *b)
{
    b->check.path = clave__jget_bytes(r);
    b->check.version = clave__jget_int(r);
}

static void request_put_path_version(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->check.path);
    clave__jput_int(w, b->check.version);
}

static const struct body_format body_path_version = {request_get_path_version,
                                                     request_put_path_version};

static void request_get_path_type(struct jreader *r, union wire_body *b)
{
    b->typed.path = clave__jget_bytes(r);
    b->typed.type = clave__jget_int(r);
}

static void request_put_path_type(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->typed.path);
    clave__jput_int(w, b->typed.type);
}

static const struct body_format body_path_type = {request_get_path_type, request_put_path_type};

/* ---- bodies of requests: writes -------------------------------------------------------------- */

static void request_get_create(struct jreader *r, union wire_body *b)
{
    b->create.path = clave__jget_bytes(r);
    b->create.data = clave__jget_bytes(r);
    b->create.acl = clave__wire_get_acls(r);
    b->create.flags = clave__jget_int(r);
}

static void request_put_create(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->create.path);
    clave__jput_bytes(w, b->create.data);
    clave__jput_vec(w, b->create.acl);
    clave__jput_int(w, b->create.flags);
}

static const struct body_format body_create = {request_get_create, request_put_create};

static void request_get_create_ttl(struct jreader *r, union wire_body *b)
{
    request_get_create(r, b);
    b->create.ttl_ms = clave__jget_long(r);
}

static void request_put_create_ttl(struct jwriter *w, const union wire_body *b)
{
    request_put_create(w, b);
    clave__jput_long(w, b->create.ttl_ms);
}

static const struct body_format body_create_ttl = {request_get_create_ttl, request_put_create_ttl};

/* Up to 3.8 the rest of the frame is the path's bytes; from 3.9 on the path is a buffer. */
static void request_get_container(struct jreader *r, union wire_body *b)
{
    struct jreader peek = *r;
    struct jbytes path = clave__jget_bytes(&peek);
    if (!peek.bad && path.n >= 0 && peek.n == 0) {
        *r = peek;
        b->path = path;
        return;
    }
    b->path = clave__jbytes_n(r->p, r->n);
    r->p += r->n;
    r->n = 0;
}

static const struct body_format body_container = {request_get_container, request_put_path};

static void request_get_set_data(struct jreader *r, union wire_body *b)
{
    b->set.path = clave__jget_bytes(r);
    b->set.data = clave__jget_bytes(r);
    b->set.version = clave__jget_int(r);
}

static void request_put_set_data(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->set.path);
    clave__jput_bytes(w, b->set.data);
    clave__jput_int(w, b->set.version);
}

static const struct body_format body_set_data = {request_get_set_data, request_put_set_data};

static void request_get_set_acl(struct jreader *r, union wire_body *b)
{
    b->set_acl.path = clave__jget_bytes(r);
    b->set_acl.acl = clave__wire_get_acls(r);
    b->set_acl.version = clave__jget_int(r);
}

static void request_put_set_acl(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->set_acl.path);
    clave__jput_vec(w, b->set_acl.acl);
    clave__jput_int(w, b->set_acl.version);
}

static const struct body_format body_set_acl = {request_get_set_acl, request_put_set_acl};

static void request_get_reconfig(struct jreader *r, union wire_body *b)
{
    b->reconfig.joining = clave__jget_bytes(r);
    b->reconfig.leaving = clave__jget_bytes(r);
    b->reconfig.members = clave__jget_bytes(r);
    b->reconfig.config_id = clave__jget_long(r);
}

static void request_put_reconfig(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->reconfig.joining);
    clave__jput_bytes(w, b->reconfig.leaving);
    clave__jput_bytes(w, b->reconfig.members);
    clave__jput_long(w, b->reconfig.config_id);
}

static const struct body_format body_reconfig = {request_get_reconfig, request_put_reconfig};

/* ---- bodies of requests: watches, authentication --------------------------------------------- */

static void request_get_set_watches(struct jreader *r, union wire_body *b)
{
    b->watches.relative_zxid = clave__jget_long(r);
    b->watches.data = clave__jget_strings(r);
    b->watches.exist = clave__jget_strings(r);
    b->watches.child = clave__jget_strings(r);
}

static void request_put_set_watches(struct jwriter *w, const union wire_body *b)
{
    clave__jput_long(w, b->watches.relative_zxid);
    clave__jput_vec(w, b->watches.data);
    clave__jput_vec(w, b->watches.exist);
    clave__jput_vec(w, b->watches.child);
}

static const struct body_format body_set_watches = {request_get_set_watches,
                                                    request_put_set_watches};

static void request_get_set_watches2(struct jreader *r, union wire_body *b)
{
    request_get_set_watches(r, b);
    b->watches.persistent = clave__jget_strings(r);
    b->watches.persistent_recursive = clave__jget_strings(r);
}

static void request_put_set_watches2(struct jwriter *w, const union wire_body *b)
{
    request_put_set_watches(w, b);
    clave__jput_vec(w, b->watches.persistent);
    clave__jput_vec(w, b->watches.persistent_recursive);
}

static const struct body_format body_set_watches2 = {request_get_set_watches2,
                                                     request_put_set_watches2};

static void request_get_auth(struct jreader *r, union wire_body *b)
{
    b->auth.type = clave__jget_int(r);
    b->auth.scheme = clave__jget_bytes(r);
    b->auth.auth = clave__jget_bytes(r);
}

static void request_put_auth(struct jwriter *w, const union wire_body *b)
{
    clave__jput_int(w, b->auth.type);
    clave__jput_bytes(w, b->auth.scheme);
    clave__jput_bytes(w, b->auth.auth);
}

static const struct body_format body_auth = {request_get_auth, request_put_auth};

/* The body of a multi is made of bodies. */
static void opcode_get_ops(struct jreader *r, union wire_body *b);
static void opcode_put_ops(struct jwriter *w, const union wire_body *b);
static const struct body_format body_ops = {opcode_get_ops, opcode_put_ops};

/* Short names, so that each opcode fits on one line. */
enum {
    AT = -OPCODE_FIRST,
    CREATE = EFFECT_CREATE,
    DELETE = EFFECT_DELETE,
    WRITE = OPCODE_WRITE,
    PART = OPCODE_WRITE | OPCODE_IN_MULTI,
    READ_PART = OPCODE_IN_MULTI_READ,
    ON_DATA = OPCODE_WATCH_DATA,
    ON_CHILD = OPCODE_WATCH_CHILD,
    ABSENT = OPCODE_WATCH_ABSENT,
    CREATED = REPLY_PATH | REPLY_STAT,
    DATA = REPLY_DATA,
    NAMES = REPLY_NAMES,
    NUMBER = REPLY_NUMBER,
    STAT = REPLY_STAT,
};

static const struct opcode opcodes[] = {
    [AT + OP_CREATE] = {"create", &body_create, CREATE, PART, REPLY_PATH},
    [AT + OP_CREATE2] = {"create2", &body_create, CREATE, PART, CREATED},
    [AT + OP_CREATE_CONTAINER] = {"createContainer", &body_create, CREATE, PART, CREATED},
    [AT + OP_CREATE_TTL] = {"createTTL", &body_create_ttl, CREATE, PART, CREATED},
    [AT + OP_DELETE] = {"delete", &body_path_version, DELETE, PART, 0},
    [AT + OP_DELETE_CONTAINER] = {"deleteContainer", &body_container, DELETE, WRITE, 0},
    [AT + OP_SET_DATA] = {"setData", &body_set_data, EFFECT_SET_DATA, PART, STAT},
    [AT + OP_SET_ACL] = {"setACL", &body_set_acl, EFFECT_SET_ACL, WRITE, STAT},
    [AT + OP_CHECK] = {"check", &body_path_version, 0, PART, 0},
    [AT + OP_MULTI] = {"multi", &body_ops, 0, WRITE, REPLY_RESULTS},
    [AT + OP_RECONFIG] = {"reconfig", &body_reconfig, 0, WRITE, DATA | STAT},

    [AT + OP_EXISTS] = {"exists", &body_read, 0, ON_DATA | ABSENT, STAT},
    [AT + OP_GET_DATA] = {"getData", &body_read, 0, ON_DATA | READ_PART, DATA | STAT},
    [AT + OP_GET_CHILDREN] = {"getChildren", &body_read, 0, ON_CHILD | READ_PART, NAMES},
    [AT + OP_GET_CHILDREN2] = {"getChildren2", &body_read, 0, ON_CHILD, NAMES | STAT},
    [AT + OP_GET_ACL] = {"getACL", &body_path, 0, 0, REPLY_ACL | STAT},
    [AT + OP_GET_EPHEMERALS] = {"getEphemerals", &body_path, 0, 0, NAMES},
    [AT + OP_GET_ALL_CHILDREN_NUMBER] = {"getAllChildrenNumber", &body_path, 0, 0, NUMBER},
    [AT + OP_MULTI_READ] = {"multiRead", &body_ops, 0, 0, REPLY_RESULTS},
    [AT + OP_SYNC] = {"sync", &body_path, 0, 0, REPLY_PATH},

    [AT + OP_SET_WATCHES] = {"setWatches", &body_set_watches, 0, 0, 0},
    [AT + OP_SET_WATCHES2] = {"setWatches2", &body_set_watches2, 0, 0, 0},
    [AT + OP_ADD_WATCH] = {"addWatch", &body_path_type, 0, 0, NUMBER},
    [AT + OP_CHECK_WATCHES] = {"checkWatches", &body_path_type, 0, 0, 0},
    [AT + OP_REMOVE_WATCHES] = {"removeWatches", &body_path_type, 0, 0, 0},

    [AT + OP_PING] = {"ping", &body_none, 0, 0, 0},
    [AT + OP_AUTH] = {"auth", &body_auth, 0, 0, 0},
    [AT + OP_SASL] = {"sasl", &body_path, 0, 0, DATA},
    [AT + OP_WHO_AM_I] = {"whoAmI", &body_none, 0, 0, REPLY_IDS},
    [AT + OP_CREATE_SESSION] = {"createSession", NULL, 0, WRITE, 0},
    [AT + OP_CLOSE_SESSION] = {"closeSession", &body_none, 0, WRITE, 0},
    [AT + OP_ERROR] = {"error", NULL, 0, WRITE, 0},
};

static_assert((int)OP_CLOSE_SESSION < (int)OP_CREATE_SESSION &&
                  (int)OP_CREATE_SESSION < (int)OP_ERROR,
              "the table begins with OPCODE_FIRST");

const struct opcode *clave__opcode(int32_t op)
{
    static const struct opcode unknown = {"unknown", NULL, EFFECT_NONE, 0, 0};
    size_t at = clave__opcode_place(op);
    bool known = at < sizeof opcodes / sizeof *opcodes && opcodes[at].name;
    return known ? &opcodes[at] : &unknown;
}

/* ---- requests -------------------------------------------------------------------------------- */

void clave__wire_get_body(struct jreader *r, int32_t op, union wire_body *b)
{
    const struct body_format *format = clave__opcode(op)->body;
    memset(b, 0, sizeof *b);
    if (format)
        format->get(r, b);
}

void clave__wire_put_body(struct jwriter *w, int32_t op, const union wire_body *b)
{
    const struct body_format *format = clave__opcode(op)->body;
    if (format)
        format->put(w, b);
}

struct wire_request clave__wire_get_request(struct jreader *r)
{
    struct wire_request q;
    q.xid = clave__jget_int(r);
    q.op = clave__jget_int(r);
    clave__wire_get_body(r, q.op, &q.body);
    q.malformed = r->bad;
    return q;
}

void clave__wire_put_request(struct jwriter *w, const struct wire_request *q)
{
    clave__jput_int(w, q->xid);
    clave__jput_int(w, q->op);
    clave__wire_put_body(w, q->op, &q->body);
}

/* ---- multi ----------------------------------------------------------------------------------- */

bool clave__wire_get_op(struct jreader *r, struct wire_op *op)
{
    struct multi_header h = multi_get_header(r);
    if (r->bad || h.done)
        return false;
    if (!multi_may_have(h.type)) {
        r->bad = true;
        return false;
    }
    op->op = h.type;
    clave__wire_get_body(r, h.type, &op->body);
    return !r->bad;
}

void clave__wire_put_op(struct jwriter *w, const struct wire_op *op)
{
    multi_put_header(w, op->op, false, -1);
    clave__wire_put_body(w, op->op, &op->body);
}

/* The ops run up to the MultiHeader with done set. */
static void opcode_get_ops(struct jreader *r, union wire_body *b)
{
    struct wire_ops ops = {.count = 0, .p = r->p};
    struct wire_op op;
    while (clave__wire_get_op(r, &op))
        ops.count++;
    ops.n = r->bad ? 0 : (size_t)(r->p - ops.p);
    b->multi = ops;
}

static void opcode_put_ops(struct jwriter *w, const union wire_body *b)
{
    struct jreader r = clave__wire_ops_reader(&b->multi);
    struct wire_op op;
    while (clave__wire_get_op(&r, &op))
        clave__wire_put_op(w, &op);
    clave__wire_put_ops_end(w);
}

/* ---- bodies of replies: the parts that the table names, in the order of enum reply_part -------
 */

static struct jvec reply_get_ids(struct jreader *r)
{
    enum { LEAST = 8 }; /* two empty strings */
    struct jvec v = {.count = clave__jget_count(r, LEAST), .p = r->p};
    for (int32_t i = 0; i < v.count && !r->bad; i++) {
        clave__jget_bytes(r);
        clave__jget_bytes(r);
    }
    if (r->bad)
        return (struct jvec){0, NULL, 0};
    v.n = (size_t)(r->p - v.p);
    return v;
}

/* The reply to a multi is made of replies. */
static struct wire_ops reply_get_results(struct jreader *r);
static void reply_put_results(struct jwriter *w, const struct wire_ops *ops);

struct wire_reply clave__wire_get_reply(struct jreader *r, int32_t op)
{
    struct wire_reply m = {.path = JBYTES_NULL, .data = JBYTES_NULL};
    unsigned parts = clave__opcode(op)->reply;
    if (parts & REPLY_PATH)
        m.path = clave__jget_bytes(r);
    if (parts & REPLY_DATA)
        m.data = clave__jget_bytes(r);
    if (parts & REPLY_ACL)
        m.acl = clave__wire_get_acls(r);
    if (parts & REPLY_NAMES)
        m.names = clave__jget_strings(r);
    if (parts & REPLY_IDS)
        m.ids = reply_get_ids(r);
    if (parts & REPLY_NUMBER)
        m.number = clave__jget_int(r);
    if (parts & REPLY_RESULTS)
        m.results = reply_get_results(r);
    if (parts & REPLY_STAT)
        m.stat = wire_get_stat(r);
    return m;
}

void clave__wire_put_reply(struct jwriter *w, int32_t op, const struct wire_reply *m)
{
    unsigned parts = clave__opcode(op)->reply;
    if (parts & REPLY_PATH)
        clave__jput_bytes(w, m->path);
    if (parts & REPLY_DATA)
        clave__jput_bytes(w, m->data);
    if (parts & REPLY_ACL)
        clave__jput_vec(w, m->acl);
    if (parts & REPLY_NAMES)
        clave__jput_vec(w, m->names);
    if (parts & REPLY_IDS)
        clave__jput_vec(w, m->ids);
    if (parts & REPLY_NUMBER)
        clave__jput_int(w, m->number);
    if (parts & REPLY_RESULTS)
        reply_put_results(w, &m->results);
    if (parts & REPLY_STAT)
        clave__wire_put_stat(w, &m->stat);
}

/* ---- the results of a multi ------------------------------------------------------------------ */

bool clave__wire_get_result(struct jreader *r, struct wire_result *res)
{
    struct multi_header h = multi_get_header(r);
    if (r->bad || h.done)
        return false;
    if (h.type != OP_ERROR && !multi_may_have(h.type)) {
        r->bad = true;
        return false;
    }
    res->op = h.type;
    res->err = h.err;
    res->reply = clave__wire_get_reply(r, h.type);
    if (h.type == OP_ERROR)
        res->err = clave__jget_int(r);
    return !r->bad;
}

void clave__wire_put_result_header(struct jwriter *w, int32_t op, int32_t err)
{
    assert(op == OP_ERROR || multi_may_have(op));
    multi_put_header(w, op, false, err);
    if (op == OP_ERROR)
        clave__jput_int(w, err);
}

void clave__wire_put_result(struct jwriter *w, const struct wire_result *res)
{
    clave__wire_put_result_header(w, res->op, res->err);
    clave__wire_put_reply(w, res->op, &res->reply);
}

static struct wire_ops reply_get_results(struct jreader *r)
{
    struct wire_ops ops = {.count = 0, .p = r->p};
    struct wire_result res;
    while (clave__wire_get_result(r, &res))
        ops.count++;
    ops.n = r->bad ? 0 : (size_t)(r->p - ops.p);
    return ops;
}

static void reply_put_results(struct jwriter *w, const struct wire_ops *ops)
{
    struct jreader r = clave__wire_ops_reader(ops);
    struct wire_result res;
    while (clave__wire_get_result(&r, &res))
        clave__wire_put_result(w, &res);
    clave__wire_put_ops_end(w);
}
