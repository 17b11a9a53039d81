/* record.c - readers and writers of Stat and ACL, the handshake, the headers, the watch event, and
 * the bodies of requests; those of replies are in record_reply.c. Client and server both use them;
 * the format is that of zookeeper.jute.
 *
 * The body of a request is a pair of functions; the table in opcode.c says which opcodes have it.
 * In a multi each op follows a MultiHeader {type, done, err}; the header with done set ends the
 * list. */
#include "wire/record.h"

#include "wire/record_internal.h"

struct wire_stat clave__wire_get_stat(struct jreader *r)
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

void clave__wire_put_request_header(struct jwriter *w, int32_t xid, int32_t op)
{
    clave__jput_int(w, xid);
    clave__jput_int(w, op);
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

struct multi_header clave__multi_get_header(struct jreader *r)
{
    struct multi_header h;
    h.type = clave__jget_int(r);
    h.done = clave__jget_bool(r);
    h.err = clave__jget_int(r);
    return h;
}

void clave__multi_put_header(struct jwriter *w, int32_t type, bool done, int32_t err)
{
    clave__jput_int(w, type);
    clave__jput_bool(w, done);
    clave__jput_int(w, err);
}

struct jreader clave__wire_ops_reader(const struct wire_ops *ops)
{
    return clave__jreader(ops->p, ops->n);
}

void clave__wire_put_ops_end(struct jwriter *w)
{
    clave__multi_put_header(w, -1, true, -1);
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

const struct body_format clave__body_none = {request_get_none, request_put_none};

static void request_get_path(struct jreader *r, union wire_body *b)
{
    b->path = clave__jget_bytes(r);
}

static void request_put_path(struct jwriter *w, const union wire_body *b)
{
    clave__jput_bytes(w, b->path);
}

const struct body_format clave__body_path = {request_get_path, request_put_path};

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

const struct body_format clave__body_read = {request_get_read, request_put_read};

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

const struct body_format clave__body_path_version = {request_get_path_version,
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

const struct body_format clave__body_path_type = {request_get_path_type, request_put_path_type};

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

const struct body_format clave__body_create = {request_get_create, request_put_create};

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

const struct body_format clave__body_create_ttl = {request_get_create_ttl, request_put_create_ttl};

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

const struct body_format clave__body_container = {request_get_container, request_put_path};

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

const struct body_format clave__body_set_data = {request_get_set_data, request_put_set_data};

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

const struct body_format clave__body_set_acl = {request_get_set_acl, request_put_set_acl};

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

const struct body_format clave__body_reconfig = {request_get_reconfig, request_put_reconfig};

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

const struct body_format clave__body_set_watches = {request_get_set_watches,
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

const struct body_format clave__body_set_watches2 = {request_get_set_watches2,
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

const struct body_format clave__body_auth = {request_get_auth, request_put_auth};
